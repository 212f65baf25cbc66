package mosaic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gesso-go/gesso/backend/pjrt/stablehlo"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// kernel is a kernel's text with the types of its operands, which must be those of the call.
type kernel struct {
	name     string
	body     string
	operands []graph.Type
	result   graph.Type
	cost     cost
	vmem     int  // bytes of the chip's own memory that it may use
	inPlace  bool // the result may lie where the first operand does
}

// cost is what the compiler takes over into its cost analysis.
type cost struct {
	Flops           int64 `json:"flops"`
	Transcendentals int64 `json:"transcendentals"`
	Bytes           int64 `json:"bytes_accessed"`
	Remote          int64 `json:"remote_bytes_transferred"`
}

// config is the call's backend_config, JSON of libtpu's CustomCallConfig.
func (k *kernel) config() string {
	type call struct {
		Body    string `json:"body"`
		Cost    cost   `json:"cost_estimate"`
		Format  int    `json:"serialization_format"`
		Layouts bool   `json:"needs_layout_passes"`
	}
	type memory struct {
		Space  int `json:"memory_space"`
		Offset int `json:"offset"`
		Size   int `json:"size"`
	}
	b, err := json.Marshal(struct {
		Call   call     `json:"custom_call_config"`
		Memory []memory `json:"scoped_memory_configs"`
	}{
		call{base64.StdEncoding.EncodeToString([]byte(k.body)), k.cost, 1, true},
		[]memory{{1, 0, k.vmem}},
	})
	if err != nil {
		panic("mosaic: " + err.Error()) // numbers and text
	}
	return string(b)
}

// write calls the kernel.
func (k *kernel) write(w *stablehlo.Writer, args ...stablehlo.Value) (stablehlo.Value, error) {
	if len(args) != len(k.operands) {
		return stablehlo.Value{}, fmt.Errorf("kernel %s: %d operands, expected %d", k.name, len(args), len(k.operands))
	}
	var names, types, layouts []string
	for i, a := range args {
		if !a.Type.Equal(k.operands[i]) {
			return stablehlo.Value{}, fmt.Errorf("kernel %s: operand %d is %s, expected %s", k.name, i, a.Type, k.operands[i])
		}
		names, types, layouts = append(names, a.Name), append(types, a.TypeText()), append(layouts, rowMajor(a.Type))
	}
	alias := ""
	if k.inPlace {
		alias = "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], "
	}
	config := strings.ReplaceAll(k.config(), `"`, `\22`)
	return w.Op(k.result, `stablehlo.custom_call @tpu_custom_call(%s) {backend_config = "%s", kernel_name = "%s", %soperand_layouts = [%s], result_layouts = [%s]} : (%s) -> %s`,
		strings.Join(names, ", "), config, k.name, alias, strings.Join(layouts, ", "), rowMajor(k.result), strings.Join(types, ", "), stablehlo.TypeText(k.result)), nil
}

func rowMajor(t graph.Type) string {
	n := len(t.Shape)
	if n == 1 {
		return "dense<0> : tensor<1xindex>"
	}
	axes := make([]string, n)
	for i := range axes {
		axes[i] = itoa(n - 1 - i)
	}
	return fmt.Sprintf("dense<[%s]> : tensor<%dxindex>", strings.Join(axes, ", "), n)
}

func typeOf(d tensor.DType, shape ...int) graph.Type { return graph.Type{DType: d, Shape: shape} }

// attentionKernel returns the kernel with its operands: the number of keys, q, k, v.
func attentionKernel(s attentionShape) *kernel {
	q, kv := typeOf(tensor.BF16, s.queries, s.heads*s.headSize), typeOf(tensor.BF16, s.keys, s.heads*s.headSize)
	out := typeOf(tensor.BF16, s.queries, max(s.width, q.Shape[1]))
	pairs := int64(s.queries) * int64(s.keys) * int64(s.heads)
	return &kernel{
		name: "gesso_attention", body: attentionBody(s),
		operands: []graph.Type{typeOf(tensor.I32, 1), q, kv, kv}, result: out,
		cost: cost{Flops: 4 * pairs * int64(s.headSize), Transcendentals: pairs, Bytes: int64(2*q.Bytes() + 2*kv.Bytes())},
		vmem: max(32<<20, s.vmemBytes()+8<<20),
	}
}

// normRopeKernel returns the kernel with its operands: x, the weight, cos and sin of tableRows rows.
func normRopeKernel(s normRopeShape, tableRows int) *kernel {
	x, table := typeOf(tensor.BF16, max(s.rows, s.total), s.heads*s.headSize), typeOf(tensor.F32, tableRows, s.headSize)
	n := int64(s.rows) * int64(s.heads)
	return &kernel{
		name: "gesso_norm_rope", body: normRopeBody(s),
		operands: []graph.Type{x, typeOf(tensor.BF16, 1, s.headSize), table, table}, result: x,
		cost: cost{Flops: 8 * n * int64(s.headSize), Transcendentals: n, Bytes: 4*n*int64(s.headSize) + int64(8*s.rows*s.headSize)},
		vmem: 32 << 20, inPlace: true,
	}
}

// normModulateKernel returns the kernel with its operands: x, scale, shift.
func normModulateKernel(s normModulateShape) *kernel {
	x, row := typeOf(tensor.BF16, s.rows, s.width), typeOf(tensor.BF16, 1, s.width)
	n := int64(s.rows) * int64(s.width)
	return &kernel{
		name: "gesso_norm_modulate", body: normModulateBody(s), operands: []graph.Type{x, row, row}, result: x,
		cost: cost{Flops: 8 * n, Transcendentals: int64(s.rows), Bytes: int64(2 * x.Bytes())}, vmem: 32 << 20,
	}
}
