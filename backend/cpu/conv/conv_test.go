package conv

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/par"
	"github.com/gesso-go/gesso/tensor"
)

// random returns n values in (-1, 1) of type t, and the values widened.
func random(rnd *rand.Rand, t tensor.DType, n int) (gemm.Operand, []float64) {
	words, vals := make([]float32, n), make([]float64, n)
	for i := range words {
		words[i] = tensor.RoundTo(t, 2*rnd.Float32()-1)
		vals[i] = float64(words[i])
	}
	a, err := tensor.FromFloat32(words, n).Convert(t)
	if err != nil {
		panic(err)
	}
	return gemm.Operand{DType: t, Data: a.Data}, vals
}

// naive is the definition of the convolution; abs sums the magnitudes of the products.
func naive(p *Problem, x, w []float64) (y, abs []float64) {
	oh, ow := p.OutSize()
	sy, sx := max(p.StrideY, 1), max(p.StrideX, 1)
	y, abs = make([]float64, p.N*oh*ow*p.O), make([]float64, p.N*oh*ow*p.O)
	i := 0
	for n := range p.N {
		for oy := range oh {
			for ox := range ow {
				for o := range p.O {
					for ky := range p.KH {
						for kx := range p.KW {
							iy, ix := oy*sy-p.Pad.Top+ky, ox*sx-p.Pad.Left+kx
							if iy < 0 || iy >= p.H || ix < 0 || ix >= p.W {
								continue
							}
							for c := range p.C {
								v := x[((n*p.H+iy)*p.W+ix)*p.C+c] * w[((o*p.C+c)*p.KH+ky)*p.KW+kx]
								y[i] += v
								abs[i] += math.Abs(v)
							}
						}
					}
					i++
				}
			}
		}
	}
	return y, abs
}

func cases() []Problem {
	var ps []Problem
	images := [][2]int{{1, 1}, {3, 5}, {17, 33}}
	channels := []int{1, 3, 4, 8, 16, 17, 64}
	for i, c := range channels {
		for j, hw := range images {
			o := channels[(i+j+2)%len(channels)]
			ps = append(ps,
				Problem{N: 1 + j%2, H: hw[0], W: hw[1], C: c, O: o, KH: 3, KW: 3, Pad: Same(1)},
				Problem{N: 1, H: hw[0], W: hw[1], C: c, O: o, KH: 1, KW: 1})
			if hw[0] > 1 {
				ps = append(ps,
					Problem{N: 2, H: hw[0], W: hw[1], C: c, O: o, KH: 3, KW: 3, StrideY: 2, StrideX: 2, Pad: Pad{0, 1, 0, 1}},
					Problem{N: 1, H: hw[0], W: hw[1], C: c, O: o, KH: 2, KW: 5, StrideY: 1, StrideX: 3, Pad: Pad{3, 0, 2, 4}},
					Problem{N: 1, H: hw[0], W: hw[1], C: c, O: o, KH: 1, KW: 1, StrideY: 2, StrideX: 2},
					Problem{N: 2, H: hw[0], W: hw[1], C: c, O: o, KH: 2, KW: 2, StrideY: 2, StrideX: 2})
			}
		}
	}
	for o := 1; o <= FewOutputs; o++ {
		for _, c := range []int{8, 24, 40, 96} {
			ps = append(ps,
				Problem{N: 2, H: 5, W: 13, C: c, O: o, KH: 3, KW: 3, Pad: Same(1)},
				Problem{N: 1, H: 7, W: 31, C: c, O: o, KH: 3, KW: 5, StrideY: 2, StrideX: 3, Pad: Pad{4, 4, 3, 5}})
		}
	}
	return append(ps,
		Problem{N: 1, H: 2, W: 2, C: 3, O: 5, KH: 3, KW: 3}, // the kernel does not fit
		Problem{N: 1, H: 1, W: 2, C: 3, O: 5, KH: 7, KW: 7, Pad: Same(3)},
		Problem{N: 1, H: 9, W: 40, C: 130, O: 33, KH: 3, KW: 3, Pad: Same(1)}) // more than one block of K
}

func TestRunAgreesWithDefinition(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, level := range isa.Available() {
		for _, dt := range [][2]tensor.DType{{tensor.F32, tensor.F32}, {tensor.BF16, tensor.BF16}, {tensor.F16, tensor.F16}, {tensor.F32, tensor.BF16}} {
			t.Run(fmt.Sprintf("%v/%v·%v", level, dt[0], dt[1]), func(t *testing.T) {
				for i, p := range cases() {
					rnd := rand.New(rand.NewPCG(2, uint64(i)))
					var x, w []float64
					p.X, x = random(rnd, dt[0], p.N*p.H*p.W*p.C)
					p.Weight, w = random(rnd, dt[1], p.O*p.C*p.KH*p.KW)
					want, abs := naive(&p, x, w)
					check := func(how string) {
						got := make([]float32, len(want))
						emit := func(_, row, col int, acc []float32) {
							copy(got[row*p.O+col:], acc)
							clear(acc) // as the receiver may
						}
						if err := Run(pool, level, &p, emit); err != nil {
							t.Fatalf("%+v: %v", p, err)
						}
						for j := range want {
							if d := math.Abs(float64(got[j]) - want[j]); !(d <= 5e-6*abs[j]+1e-30) {
								t.Fatalf("%s, image %d×%d×%d×%d kernel %d×%d: value %d is %v, want %v", how, p.N, p.H, p.W, p.C, p.KH, p.KW, j, got[j], want[j])
							}
						}
					}
					check("weight")
					q, err := PackWeight(nil, pool, level, p.Weight, p.O, p.C, p.KH*p.KW, dt[0])
					if err != nil {
						t.Fatal(err)
					}
					p.Packed, p.Weight = q, gemm.Operand{}
					check("packed")
				}
			})
		}
	}
}

func TestRunReportsMistakes(t *testing.T) {
	x := gemm.Operand{DType: tensor.F32, Data: make([]byte, 4*4*4*3)}
	w := gemm.Operand{DType: tensor.F32, Data: make([]byte, 4*5*3*9)}
	good := Problem{N: 1, H: 4, W: 4, C: 3, O: 5, KH: 3, KW: 3, Pad: Same(1), X: x, Weight: w}
	run := func(p Problem) error { return Run(nil, isa.Portable, &p, func(_, _, _ int, _ []float32) {}) }
	if err := run(good); err != nil {
		t.Fatal(err)
	}
	q, err := PackWeight(nil, nil, isa.Portable, w, 5, 3, 9, tensor.F32)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p *Problem){
		"short image":          func(p *Problem) { p.H = 5 },
		"short weight":         func(p *Problem) { p.O = 6 },
		"no kernel":            func(p *Problem) { p.KH = 0 },
		"negative padding":     func(p *Problem) { p.Pad.Left = -1 },
		"integer image":        func(p *Problem) { p.X.DType = tensor.I32 },
		"half image":           func(p *Problem) { p.X.DType = tensor.BF16 },
		"packed for another":   func(p *Problem) { p.Packed = q; p.KH = 1 },
		"packed for bf16 rows": func(p *Problem) { p.Packed = q; p.X.DType = tensor.BF16 },
	} {
		p := good
		spoil(&p)
		if run(p) == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// TestRunUpsampled compares with the definition on the large image. The sums of weights are rounded to the weight's type.
func TestRunUpsampled(t *testing.T) {
	pool := par.New(2)
	defer pool.Close()
	for _, level := range isa.Available() {
		for dt, tol := range map[tensor.DType]float64{tensor.F32: 5e-6, tensor.BF16: 0x1p-9 + 5e-6, tensor.F16: 0x1p-12 + 5e-6} {
			for i, size := range [][5]int{{1, 1, 1, 3, 5}, {2, 3, 4, 17, 33}, {1, 9, 8, 64, 16}, {1, 5, 7, 8, 3}, {1, 2, 2, 0, 3}} {
				rnd := rand.New(rand.NewPCG(3, uint64(i)))
				p := Problem{N: size[0], H: size[1], W: size[2], C: size[3], O: size[4], KH: 3, KW: 3, Pad: Same(1)}
				var x, w []float64
				p.X, x = random(rnd, dt, p.N*p.H*p.W*p.C)
				p.Weight, w = random(rnd, dt, p.O*p.C*9)
				big := p
				big.H, big.W = 2*p.H, 2*p.W
				up := make([]float64, big.N*big.H*big.W*p.C)
				for j := range up {
					c, px := j%p.C, j/p.C
					up[j] = x[((px/big.W/big.H*p.H+px/big.W%big.H/2)*p.W+px%big.W/2)*p.C+c]
				}
				want, abs := naive(&big, up, w)
				got, seen := make([]float32, len(want)), make([]int, len(want))
				emit := func(_, row, col int, acc []float32) {
					copy(got[row*p.O+col:], acc)
					for j := range acc {
						seen[row*p.O+col+j]++
					}
				}
				if err := RunUpsampled(pool, level, &p, emit); err != nil {
					t.Fatal(err)
				}
				for j := range want {
					if d := math.Abs(float64(got[j]) - want[j]); !(d <= tol*abs[j]+1e-30) || seen[j] != 1 {
						t.Fatalf("%v %v %v: value %d is %v (given %d times), want %v", level, dt, size, j, got[j], seen[j], want[j])
					}
				}
			}
		}
	}
	if err := RunUpsampled(pool, isa.Portable, &Problem{N: 1, H: 2, W: 2, C: 1, O: 1, KH: 2, KW: 2, Pad: Same(1)}, nil); err == nil {
		t.Error("a kernel of 2×2: want an error")
	}
}
