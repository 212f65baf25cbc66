package nn_test

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/flux2"
	"github.com/gesso-go/gesso/model/sd3"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/model/vae"
)

// No number of layers in a configuration makes a model without end.
func TestLayerCounts(t *testing.T) {
	for _, n := range []int{-1, 1 << 20, 1 << 40} {
		transformer, single, other := flux.Defaults(), flux.Defaults(), flux2.Defaults()
		transformer.Layers, single.SingleLayers, other.SingleLayers = n, n, n
		sd, long, short, auto := sd3.Defaults(), t5.Defaults(), clip.Defaults(), vae.Defaults()
		sd.Layers, long.Layers, short.Layers, auto.LayersPerBlock = n, n, n, n
		for key, c := range map[string]interface{ Validate() error }{
			"num_layers": &transformer, "num_single_layers": &single, "num_single_layers ": &other, "num_layers ": &sd, "num_layers  ": &long,
			"num_hidden_layers": &short, "layers_per_block": &auto,
		} {
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), strings.TrimSpace(key)) {
				t.Errorf("%T with %d: %v", c, n, err)
			}
		}
	}
}
