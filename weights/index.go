package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gesso-go/gesso/internal/outfile"
)

// readIndex reads NAME.safetensors.index.json and returns its weight_map: tensor name to shard file.
func readIndex(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxHeader {
		err = fmt.Errorf("the index has %d bytes, the limit is %d", info.Size(), maxHeader)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, outfile.Cause(err))
	}
	m, err := parseIndex(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// parseIndex reads {"metadata": {"total_size": 123}, "weight_map": {TENSOR: FILE, …}}. Only weight_map is used; published
// total sizes are often wrong, and every file knows its own.
func parseIndex(data []byte) (map[string]string, error) {
	if what := sniff(data); what != "" {
		return nil, errors.New(what)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the index is not UTF-8 text")
	}
	var m map[string]string
	s := &scanner{data: data}
	err := s.object(func(key []byte) error {
		if string(key) != "weight_map" {
			return s.skip(0)
		}
		if m != nil {
			return errors.New("weight_map occurs twice")
		}
		m = map[string]string{}
		return readWeightMap(s, m)
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the index is not valid: %w", err)
	case m == nil:
		return nil, errors.New("the index has no weight_map")
	case len(m) == 0:
		return nil, errors.New("the index lists no tensors")
	}
	return m, nil
}

func readWeightMap(s *scanner, m map[string]string) error {
	shards := map[string]string{} // one string a shard, not one a tensor
	if s.peek() != '{' {
		return s.errorf("weight_map must be an object of strings, found %s", s.found())
	}
	return s.object(func(key []byte) error {
		name := string(key)
		if s.peek() != '"' {
			return s.errorf("weight_map: the value of %s must be a file name, found %s", clip(name), s.found())
		}
		file, err := s.string()
		if err != nil {
			return err
		}
		if _, twice := m[name]; twice {
			return fmt.Errorf("weight_map: tensor %s occurs twice", clip(name))
		}
		shard, known := shards[string(file)]
		if !known {
			shard = string(file)
			if !plainName(shard) {
				return fmt.Errorf("weight_map: tensor %s is in %s, expected a file of the same folder", clip(name), clip(shard))
			}
			shards[shard] = shard
		}
		m[name] = shard
		return nil
	})
}

// plainName reports whether name is a file name without any path, on every system.
func plainName(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.ContainsAny(name, "/\\:\x00")
}

// absent is an error about a file that is not there; it is fs.ErrNotExist.
type absent string

func (a absent) Error() string      { return string(a) }
func (absent) Is(target error) bool { return target == fs.ErrNotExist }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// few joins the first names of a list that may be long.
func few(names []string) string {
	const limit = 4
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}
