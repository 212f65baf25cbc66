package kernels

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// job is one operation: its name, the shapes of its operands, and the flops that count for it (0: bandwidth bound).
type job struct {
	name   string
	op     graph.Op
	attr   graph.Attr
	shapes []tensor.Shape
	flops  float64
}

// jobs lists the operations at the shapes of FLUX.1, SD3.5 and their autoencoder.
func jobs() []job {
	var js []job
	linear := func(m, k, n int, act graph.Activation) {
		js = append(js, job{fmt.Sprintf("linear %d×%d×%d %s", m, k, n, act), graph.Linear, graph.LinearAttr{Bias: true, Act: act},
			[]tensor.Shape{{m, k}, {n, k}, {n}}, 2 * float64(m) * float64(k) * float64(n)})
	}
	linear(1, 3072, 3072, graph.NoActivation)
	linear(16, 3072, 3072, graph.NoActivation)
	linear(77, 3072, 3072, graph.NoActivation)
	linear(333, 1536, 1536, graph.NoActivation)
	linear(1024, 3072, 3072, graph.ActGeluTanh)
	linear(1357, 1536, 6144, graph.ActGeluTanh)
	linear(4608, 3072, 12288, graph.ActGeluTanh)
	attention := func(n, h, d int) {
		s := tensor.Shape{1, n, h, d}
		js = append(js, job{fmt.Sprintf("attention %d×%d×%d", h, n, d), graph.Attention, graph.AttentionAttr{Scale: 0.1},
			[]tensor.Shape{s, s, s}, 4 * float64(n) * float64(n) * float64(h*d)})
	}
	attention(77, 12, 64)
	attention(1357, 24, 64)
	attention(1536, 24, 128)
	attention(4608, 24, 128)
	attention(4096, 1, 512)
	conv := func(size, in, out, k, stride int) {
		pad := [2]int{k / 2, k / 2}
		o := size / stride
		js = append(js, job{fmt.Sprintf("conv %d×%d %d² %d→%d stride %d", k, k, size, in, out, stride), graph.Convolution,
			graph.ConvolutionAttr{Stride: [2]int{stride, stride}, Low: pad, High: pad, Bias: true},
			[]tensor.Shape{{1, size, size, in}, {out, in, k, k}, {out}}, 2 * float64(o*o) * float64(in*out*k*k)})
	}
	conv(64, 512, 512, 3, 1)
	conv(256, 256, 256, 3, 1)
	conv(512, 128, 128, 3, 1)
	conv(512, 128, 3, 3, 1)
	conv(256, 512, 256, 1, 1)
	conv(256, 128, 128, 3, 2)
	x := tensor.Shape{1, 4608, 3072}
	js = append(js,
		job{"layer_norm 4608×3072", graph.LayerNorm, graph.LayerNormAttr{Eps: 1e-6}, []tensor.Shape{x}, 0},
		job{"rms_norm 4608×24×128", graph.RMSNorm, graph.RMSNormAttr{Eps: 1e-6, Weight: true}, []tensor.Shape{{1, 4608, 24, 128}, {128}}, 0},
		job{"gelu_tanh 4608×12288", graph.Gelu, graph.GeluAttr{Form: graph.ActGeluTanh}, []tensor.Shape{{4608, 12288}}, 0},
		job{"silu 4608×12288", graph.Silu, nil, []tensor.Shape{{4608, 12288}}, 0},
		job{"add 4608×3072", graph.Add, nil, []tensor.Shape{x, x}, 0},
		job{"modulate 4608×3072", graph.Modulate, nil, []tensor.Shape{x, {1, 1, 3072}, {1, 1, 3072}}, 0},
		job{"softmax 24×512×512", graph.Softmax, nil, []tensor.Shape{{24, 512, 512}}, 0},
		job{"group_norm 256×256×256", graph.GroupNorm, graph.GroupNormAttr{Groups: 32, Eps: 1e-6}, []tensor.Shape{{1, 256, 256, 256}, {256}, {256}}, 0},
		job{"upsample 128×128×256", graph.UpsampleNearest, graph.UpsampleAttr{Factor: 2}, []tensor.Shape{{1, 128, 128, 256}}, 0},
	)
	return js
}
