// Command checkpoint writes a FLUX.1 folder of about 1.2 GB (in bf16) with random weights, for measuring memory and start.
//
//	go run ./bench/checkpoint -dtype bf16 DIR
//	gesso generate --model DIR --height 512 --width 512 --steps 2 --stats s.json "a cat"
//
// With -arch it writes the transformer of a published model alone, of any number of blocks:
//
//	go run ./bench/checkpoint -arch sd3.5-medium DIR
//	gesso bench step --arch sd3.5-medium --weights DIR
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/gesso-go/gesso/bench/random"
	"github.com/gesso-go/gesso/bench/step"
	"github.com/gesso-go/gesso/model/clip"
	"github.com/gesso-go/gesso/model/flux"
	"github.com/gesso-go/gesso/model/t5"
	"github.com/gesso-go/gesso/model/vae"
	"github.com/gesso-go/gesso/nn"
	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

func main() {
	dtype := flag.String("dtype", "bf16", "dtype of the weights")
	arch := flag.String("arch", "", "write only the transformer of this network, see gesso bench step --help")
	layers := flag.String("layers", "all", "with -arch: repeated blocks of each kind")
	source := flag.String("tokenizers", "testdata/golden/checkpoints/flux_schnell", "folder that tokenizers and scheduler are copied from")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	var err error
	if *arch != "" {
		err = transformer(*arch, *layers, *dtype, flag.Arg(0))
	} else {
		err = run(*dtype, *source, flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// component is a model to be filled: its config.json is the source's, with some keys changed.
type component struct {
	name, file string
	config     map[string]any
	model      any
}

func components() []component {
	c := clip.Defaults()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.Layers, c.Heads = 1314, 768, 3072, 12, 12
	t := t5.Defaults()
	t.VocabSize, t.DModel, t.DKV, t.DFF, t.Layers, t.Heads = 32128, 2048, 64, 5120, 4, 32
	t.FeedForwardProj = "gated-gelu"
	f := flux.Defaults()
	f.Layers, f.SingleLayers, f.Heads, f.JointDim, f.PooledDim = 2, 4, 12, t.DModel, c.HiddenSize
	v := vae.Defaults()
	v.LatentChannels, v.BlockOut, v.LayersPerBlock = 16, []int{128, 256, 512, 512}, 2
	v.SampleSize, v.UseQuantConv, v.UsePostQuant = 1024, false, false
	return []component{
		{"text_encoder", "model.safetensors", map[string]any{
			"hidden_size": c.HiddenSize, "intermediate_size": c.IntermediateSize, "num_hidden_layers": c.Layers, "num_attention_heads": c.Heads,
		}, clip.New(c)},
		{"text_encoder_2", "model.safetensors", map[string]any{
			"vocab_size": t.VocabSize, "d_model": t.DModel, "d_kv": t.DKV, "d_ff": t.DFF, "num_layers": t.Layers, "num_heads": t.Heads,
			"feed_forward_proj": t.FeedForwardProj,
		}, t5.New(t)},
		{"transformer", "diffusion_pytorch_model.safetensors", map[string]any{
			"in_channels": f.InChannels, "attention_head_dim": f.HeadDim, "axes_dims_rope": f.RopeAxes, "num_layers": f.Layers,
			"num_single_layers": f.SingleLayers, "num_attention_heads": f.Heads, "joint_attention_dim": f.JointDim, "pooled_projection_dim": f.PooledDim,
		}, flux.New(f)},
		{"vae", "diffusion_pytorch_model.safetensors", map[string]any{
			"latent_channels": v.LatentChannels, "block_out_channels": v.BlockOut, "layers_per_block": v.LayersPerBlock, "norm_num_groups": 32,
			"sample_size": v.SampleSize,
		}, vae.New(v)},
	}
}

func run(dtype, source, dir string) error {
	d, err := tensor.ParseDType(dtype)
	if err != nil {
		return err
	}
	for _, name := range []string{"tokenizer", "tokenizer_2", "scheduler"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(source, name))); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(filepath.Join(source, "model_index.json"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model_index.json"), b, 0o644)
	}
	if err != nil {
		return err
	}
	for _, c := range components() {
		if err := write(c, d, source, dir); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// transformer writes one network of real size, with numbers that keep activations at their scale.
func transformer(arch, layers, dtype, dir string) error {
	d, err := tensor.ParseDType(dtype)
	if err != nil {
		return err
	}
	model, class, config, err := step.Network(step.Options{Arch: arch, Layers: layers})
	if err != nil {
		return err
	}
	if class == "" {
		return fmt.Errorf("-arch %s: not a transformer", arch)
	}
	keys := map[string]any{"_class_name": class}
	b, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(b, &keys)
	}
	if err == nil {
		b, err = json.MarshalIndent(keys, "", "  ")
	}
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "transformer")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), b, 0o644); err != nil {
		return err
	}
	arrays := map[string]*tensor.Array{}
	w := random.New(d)
	for name, s := range nn.Shapes(model) {
		if arrays[name], err = w.Make(name, s); err != nil {
			return err
		}
	}
	return weights.Save(filepath.Join(folder, "diffusion_pytorch_model.safetensors"), arrays, map[string]string{"format": "pt"})
}

func write(c component, d tensor.DType, source, dir string) error {
	config := map[string]any{}
	b, err := os.ReadFile(filepath.Join(source, c.name, "config.json"))
	if err == nil {
		err = json.Unmarshal(b, &config)
	}
	if err != nil {
		return err
	}
	for k, v := range c.config {
		config[k] = v
	}
	if b, err = json.MarshalIndent(config, "", "  "); err != nil {
		return err
	}
	folder := filepath.Join(dir, c.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), b, 0o644); err != nil {
		return err
	}
	shapes := nn.Shapes(c.model)
	arrays := map[string]*tensor.Array{}
	var wg sync.WaitGroup
	for name, s := range shapes {
		a := tensor.New(d, s...)
		arrays[name] = a
		wg.Go(func() { fill(name, a) })
	}
	wg.Wait()
	return weights.Save(filepath.Join(folder, c.file), arrays, map[string]string{"format": "pt"})
}

// fill writes numbers that keep activations at their scale: ones for norms, small ones elsewhere.
func fill(name string, a *tensor.Array) {
	r := rand.New(rand.NewPCG(uint64(len(name)), uint64(a.Shape.Size())))
	scale := float32(0.02)
	base := float32(0)
	if len(a.Shape) == 1 && filepath.Ext(name) == ".weight" {
		base, scale = 1, 0
	}
	size := a.DType.Size()
	for i := range a.Shape.Size() {
		f := base + scale*(float32(r.Uint32()>>8)/(1<<23)-1)
		switch a.DType {
		case tensor.F32:
			tensor.View[float32](a.Data[i*size:][:size])[0] = f
		case tensor.BF16:
			tensor.View[uint16](a.Data[i*size:][:size])[0] = tensor.Float32ToBF16(f)
		case tensor.F16:
			tensor.View[uint16](a.Data[i*size:][:size])[0] = tensor.Float32ToF16(f)
		}
	}
}
