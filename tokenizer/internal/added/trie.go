package added

import "github.com/gesso-go/gesso/tokenizer/internal/hf"

// trie finds the longest of a set of strings at a place in a text.
type trie struct {
	starts [256]bool // bytes that some token starts with
	nodes  []node
}

type node struct {
	next  map[byte]int32
	token *found // set where a token ends
}

type found struct {
	hf.Token
	id int64
}

// add registers a token under the text to look for; of two with the same text the first counts.
func (t *trie) add(text string, token hf.Token, id int64) {
	if text == "" {
		return
	}
	if t.nodes == nil {
		t.nodes = make([]node, 1)
	}
	t.starts[text[0]] = true
	at := int32(0)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			if t.nodes[at].next == nil {
				t.nodes[at].next = map[byte]int32{}
			}
			next = int32(len(t.nodes))
			t.nodes[at].next[text[i]] = next
			t.nodes = append(t.nodes, node{})
		}
		at = next
	}
	if t.nodes[at].token == nil {
		t.nodes[at].token = &found{token, id}
	}
}

// longest gives the longest token that text starts with, and its length; 0 if there is none.
func (t *trie) longest(text string) (token *found, length int) {
	at := int32(0)
	for i := range len(text) {
		next, ok := t.nodes[at].next[text[i]]
		if !ok {
			break
		}
		at = next
		if end := t.nodes[at].token; end != nil {
			token, length = end, i+1
		}
	}
	return token, length
}
