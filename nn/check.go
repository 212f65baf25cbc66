package nn

import "fmt"

// MaxLayers is more than any model has of one kind of layer: a configuration that asks for more is damaged.
const MaxLayers = 1000

// CheckLayers refuses numbers of layers that a configuration can't mean; key names it there.
func CheckLayers(key string, n, least int) error {
	if n < least || n > MaxLayers {
		return fmt.Errorf("%s must be from %d to %d, got %d", key, least, MaxLayers, n)
	}
	return nil
}
