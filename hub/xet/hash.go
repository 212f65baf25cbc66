package xet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/zeebo/blake3"
)

// Hash names a chunk, a xorb or a file by its content.
type Hash [32]byte

// String prints the hash as the store does: four little-endian 64-bit words, each as 16 hex digits. Byte order within
// a word is therefore reversed against plain hex.
func (h Hash) String() string {
	var swapped Hash
	for i := 0; i < 32; i += 8 {
		binary.BigEndian.PutUint64(swapped[i:], binary.LittleEndian.Uint64(h[i:]))
	}
	return hex.EncodeToString(swapped[:])
}

// ParseHash reads the form that String prints: 64 lower-case hex digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 64 {
		return h, fmt.Errorf("xet hash has %d characters, expected 64", len(s))
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return h, fmt.Errorf("xet hash %.70q is not lower-case hex", s)
		}
	}
	for i := 0; i < 32; i += 8 {
		word, _ := strconv.ParseUint(s[2*i:2*i+16], 16, 64)
		binary.LittleEndian.PutUint64(h[i:], word)
	}
	return h, nil
}

// The keys that separate the three uses of BLAKE3 (xet-core, merklehash/data_hash.rs). The file key is 32 zero bytes:
// the salt of an unsalted file.
var (
	chunkKey = mustKey("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
	nodeKey  = mustKey("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
	fileKey  = make([]byte, 32)
)

func mustKey(s string) []byte {
	key, err := hex.DecodeString(s)
	if err != nil || len(key) != 32 {
		panic("xet: bad hash key constant")
	}
	return key
}

// keyed starts a BLAKE3 hash with a 32-byte key, the only length for which NewKeyed can't fail.
func keyed(key []byte) *blake3.Hasher {
	h, err := blake3.NewKeyed(key)
	if err != nil {
		panic("xet: hash key is not 32 bytes")
	}
	return h
}

func sum(key, data []byte) (h Hash) {
	b := keyed(key)
	b.Write(data)
	b.Sum(h[:0])
	return h
}

// HashChunk returns the hash of one chunk's uncompressed bytes.
func HashChunk(data []byte) Hash { return sum(chunkKey, data) }

// Leaf is a chunk, or a node above chunks, in the Merkle tree: its hash and how many bytes it covers.
type Leaf struct {
	Hash Hash
	Size uint64
}

// Tree computes the Merkle hash of a sequence of chunks as they come, in memory that grows with the logarithm of their
// number. The zero value is an empty tree.
type Tree struct {
	levels []level
}

// A level holds the nodes that have not been grouped yet: never more than maxGroup.
type level struct {
	pending []Leaf
	total   int // nodes that were ever added at this level
}

const maxGroup = 9

// Add appends the next chunk.
func (t *Tree) Add(chunk Leaf) { t.add(0, chunk) }

func (t *Tree) add(depth int, n Leaf) {
	if depth == len(t.levels) {
		t.levels = append(t.levels, level{})
	}
	l := &t.levels[depth]
	l.pending = append(l.pending, n)
	l.total++
	// A group ends after its third or later node whose last word is a multiple of four, and at nine nodes.
	if k := len(l.pending); k == maxGroup || k > 2 && binary.LittleEndian.Uint64(n.Hash[24:])%4 == 0 {
		t.closeGroup(depth)
	}
}

func (t *Tree) closeGroup(depth int) {
	node := merge(t.levels[depth].pending)
	t.levels[depth].pending = t.levels[depth].pending[:0]
	t.add(depth+1, node)
}

// merge hashes a group of nodes into their parent, by the text form that the store defines.
func merge(group []Leaf) Leaf {
	var size uint64
	text := make([]byte, 0, 96*maxGroup)
	for _, n := range group {
		text = append(text, n.Hash.String()...)
		text = append(text, " : "...)
		text = strconv.AppendUint(text, n.Size, 10)
		text = append(text, '\n')
		size += n.Size
	}
	return Leaf{Hash: sum(nodeKey, text), Size: size}
}

// Root returns the hash of the tree, which is the hash of a xorb made of these chunks. An empty tree has the zero hash.
// The tree can't be added to afterwards.
func (t *Tree) Root() Hash {
	for depth := 0; depth < len(t.levels); depth++ {
		l := &t.levels[depth]
		if l.total == 1 {
			return l.pending[0].Hash // alone on its level: the root
		}
		if len(l.pending) > 0 {
			t.closeGroup(depth) // what is left is a group, even a single node
		}
	}
	return Hash{}
}

// FileHash returns the hash of a file made of these chunks: the root, hashed once more with the salt.
func (t *Tree) FileHash() Hash { return t.SaltedFileHash(fileKey) }

// SaltedFileHash is FileHash with a 32-byte salt, zero for files on the Hub. A file without chunks has the zero hash.
func (t *Tree) SaltedFileHash(salt []byte) Hash {
	if len(t.levels) == 0 {
		return Hash{}
	}
	root := t.Root()
	return sum(salt, root[:])
}
