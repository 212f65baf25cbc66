package placement

import "strings"

// Whole says that every device has all of a parameter.
const Whole = -1

// The linear layers whose weights tensor parallelism divides, by the names that checkpoints give them. Source: Shoeybi et
// al. 2019 (Megatron-LM), section 3. Of a columnwise layer each device has some outputs: rows of the weight (out, in) and of
// the bias. A rowwise one takes them: each device has the weight's columns for those inputs, the partial products are summed
// over all devices, and the bias is added once. So attention goes by heads.
var (
	columnwise = []string{
		"to_q", "to_k", "to_v", "add_q_proj", "add_k_proj", "add_v_proj", "net.0.proj", "proj_mlp", // FLUX.1, SD3
		"norm.linear", "norm1.linear", "norm1_context.linear", "norm_out.linear", // modulation
		"q", "k", "v", "wi", "wi_0", "wi_1", // T5
		"q_proj", "k_proj", "v_proj", "fc1", // CLIP
	}
	rowwise = []string{
		"to_out.0", "to_add_out", "net.2", "proj_out",
		"o", "wo",
		"out_proj", "fc2",
	}
	// tables, (rows, width), are divided along the width: T5's embedding, and its bias of a head each.
	tables = []string{"shared", "relative_attention_bias"}
)

// Split returns the axis along which tensor parallelism divides a parameter among n devices, given its name, which
// begins with its component's, and its shape, or Whole: small parameters, whatever the table doesn't name, the autoencoder,
// whose convolutions would pay for the exchange, and what n doesn't divide.
func Split(name string, shape []int, n int) int {
	axis := Whole
	if strings.HasPrefix(name, "vae.") {
		return Whole
	}
	if layer, ok := strings.CutSuffix(name, ".weight"); ok && len(shape) == 2 {
		switch {
		case named(layer, columnwise):
			axis = 0
		case named(layer, rowwise), named(layer, tables):
			axis = 1
		}
	} else if layer, ok := strings.CutSuffix(name, ".bias"); ok && named(layer, columnwise) {
		axis = 0
	}
	if axis == Whole || n < 1 || shape[axis]%n != 0 {
		return Whole
	}
	return axis
}

// named reports whether a layer's path ends in one of the names.
func named(layer string, names []string) bool {
	for _, n := range names {
		if layer == n || strings.HasSuffix(layer, "."+n) {
			return true
		}
	}
	return false
}
