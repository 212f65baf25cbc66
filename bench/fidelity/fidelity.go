// Package fidelity says how far quantised products move pictures, stage by stage.
//
//	report, err := fidelity.Run(ctx, fidelity.Options{Dir: model, Prompts: prompts, Steps: 8})
//	fmt.Println(report.Picture) // peak signal-to-noise ratio in dB
//
// Every prompt is run twice with one seed: in the model's dtype, and with int8. Stages are compared by the names of
// Diffusers; a stage's input is what the run itself computed, so differences add up along the way.
package fidelity

import (
	"context"
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/pipeline"
	"github.com/gesso-go/gesso/tensor"
)

// Options say what is compared.
type Options struct {
	Dir     string       // the model
	Prompts []string     // the i-th has the seed i
	Steps   int          // 0 means the model's default
	DType   tensor.DType // of the first run, and of what int8 leaves; 0 means bf16
	Load    gesso.Options
}

// Stage is the worst of all prompts.
type Stage struct {
	Name   string  `json:"name"`
	Cosine float64 `json:"cosine"`
	PSNR   float64 `json:"psnr"` // in dB, against the range of the values
}

// Report is the outcome. Picture is the mean over the prompts and Worst the lowest, in dB against 255 levels.
type Report struct {
	Stages  []Stage `json:"stages"`
	Picture float64 `json:"picture_psnr"`
	Worst   float64 `json:"worst_picture_psnr"`
}

// Run compares.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.DType == tensor.Invalid {
		o.DType = tensor.BF16
	}
	plain, err := o.generate(ctx, "")
	if err != nil {
		return nil, err
	}
	quantized, err := o.generate(ctx, pipeline.Int8)
	if err != nil {
		return nil, err
	}
	r := &Report{Worst: math.Inf(1)}
	at := map[string]int{}
	for i := range plain {
		for _, name := range plain[i].order {
			a, b := plain[i].stages[name], quantized[i].stages[name]
			if b == nil || !a.Shape.Equal(b.Shape) {
				return nil, fmt.Errorf("%s: the runs differ in shape", name)
			}
			s := compare(name, a, b)
			k, ok := at[name]
			if !ok {
				at[name] = len(r.Stages)
				r.Stages = append(r.Stages, s)
				continue
			}
			r.Stages[k].Cosine = min(r.Stages[k].Cosine, s.Cosine)
			r.Stages[k].PSNR = min(r.Stages[k].PSNR, s.PSNR)
		}
		p := psnrOfPictures(plain[i].picture, quantized[i].picture)
		r.Picture += p / float64(len(plain))
		r.Worst = min(r.Worst, p)
	}
	return r, nil
}

// outcome is one picture and the stages on the way to it.
type outcome struct {
	picture image.Image
	stages  map[string]*tensor.Array
	order   []string
}

func (o *Options) generate(ctx context.Context, quantize string) ([]outcome, error) {
	load := o.Load
	load.DType, load.Quantize = o.DType, quantize
	if load.Mode == engine.Strict {
		load.Mode = engine.Compiled // the same bits, sooner
	}
	p, err := gesso.Load(ctx, o.Dir, load)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var all []outcome
	for i, prompt := range o.Prompts {
		out := outcome{stages: map[string]*tensor.Array{}}
		res, err := p.Generate(ctx, gesso.Request{
			Prompts: []string{prompt}, Seeds: []uint64{uint64(i)}, Steps: o.Steps,
			Dump: func(name string, a *tensor.Array) {
				if interesting(name) && a.DType.IsFloat() {
					out.stages[name] = a
					out.order = append(out.order, name)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		out.picture = res.Images[0]
		all = append(all, out)
	}
	return all, nil
}

// interesting leaves out what is an input, and what other stages show.
func interesting(name string) bool {
	if name == "prompt_embeds" || name == "latents.final" || name == "vae.decode0.out" {
		return true
	}
	return strings.HasPrefix(name, "transformer.call") && strings.HasSuffix(name, ".out")
}

func compare(name string, a, b *tensor.Array) Stage {
	x, y := a.Float64s(), b.Float64s()
	var xy, xx, yy, diff float64
	for i := range x {
		xy, xx, yy = xy+x[i]*y[i], xx+x[i]*x[i], yy+y[i]*y[i]
		diff += (x[i] - y[i]) * (x[i] - y[i])
	}
	span := slices.Max(x) - slices.Min(x)
	return Stage{name, xy / math.Sqrt(xx*yy), psnr(diff/float64(len(x)), span)}
}

// psnr is infinite where nothing differs.
func psnr(mse, span float64) float64 { return 10 * math.Log10(span*span/mse) }

func psnrOfPictures(a, b image.Image) float64 {
	diff, n := 0.0, 0
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r, g, bl, _ := a.At(x, y).RGBA()
			r2, g2, bl2, _ := b.At(x, y).RGBA()
			for _, d := range []float64{float64(r) - float64(r2), float64(g) - float64(g2), float64(bl) - float64(bl2)} {
				diff += d * d / 257 / 257 // 16 bits to 8
				n++
			}
		}
	}
	return psnr(diff/float64(n), 255)
}
