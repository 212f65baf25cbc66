package weights

import (
	"fmt"
	"iter"
	"sort"
	"strings"

	"github.com/gesso-go/gesso/tensor"
)

// Set is a namespace of tensors: what a [File] and a [Checkpoint] have in common. The zero Set is empty.
type Set struct {
	source  string   // file or folder, for error messages
	tensors []Tensor // sorted by name, names distinct
}

// find returns the tensor called name, or nil. Sorted tensors need no second structure: a map would cost as much as the
// tensors themselves.
func (s *Set) find(name string) *Tensor {
	i := sort.Search(len(s.tensors), func(i int) bool { return s.tensors[i].Name >= name })
	if i < len(s.tensors) && s.tensors[i].Name == name {
		return &s.tensors[i]
	}
	return nil
}

// Len returns the number of tensors.
func (s *Set) Len() int { return len(s.tensors) }

// Has reports whether there is a tensor called name.
func (s *Set) Has(name string) bool { return s.find(name) != nil }

// Tensor returns the tensor called name, or an error that names the file or folder.
func (s *Set) Tensor(name string) (*Tensor, error) {
	if t := s.find(name); t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%s: no tensor %s", s.source, clip(name))
}

// Either returns the first of the names that exists. It serves tied weights, which writers store under any one of their
// names (T5: shared.weight, encoder.embed_tokens.weight).
func (s *Set) Either(names ...string) (*Tensor, error) {
	quoted := make([]string, len(names))
	for i, name := range names {
		if t := s.find(name); t != nil {
			return t, nil
		}
		quoted[i] = clip(name)
	}
	return nil, fmt.Errorf("%s: no tensor %s", s.source, strings.Join(quoted, " or "))
}

// Names returns all names, sorted.
func (s *Set) Names() []string {
	names := make([]string, len(s.tensors))
	for i := range s.tensors {
		names[i] = s.tensors[i].Name
	}
	return names
}

// All yields all tensors, sorted by name.
func (s *Set) All() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) {
		for i := range s.tensors {
			if !yield(&s.tensors[i]) {
				return
			}
		}
	}
}

// NumBytes returns the size of all tensors together.
func (s *Set) NumBytes() int64 {
	var n int64
	for i := range s.tensors {
		n += int64(s.tensors[i].NumBytes())
	}
	return n
}

// Count is how many tensors have one type, and their bytes.
type Count struct {
	Tensors int
	Bytes   int64
}

// DTypes returns the count of every type that occurs.
func (s *Set) DTypes() map[tensor.DType]Count {
	counts := map[tensor.DType]Count{}
	for i := range s.tensors {
		c := counts[s.tensors[i].DType]
		c.Tensors++
		c.Bytes += int64(s.tensors[i].NumBytes())
		counts[s.tensors[i].DType] = c
	}
	return counts
}
