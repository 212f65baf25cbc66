package weights_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gesso-go/gesso/tensor"
	"github.com/gesso-go/gesso/weights"
)

// component makes a small component folder to open.
func component() string {
	dir, err := os.MkdirTemp("", "transformer")
	if err != nil {
		log.Fatal(err)
	}
	err = weights.Save(filepath.Join(dir, "diffusion_pytorch_model.safetensors"), map[string]*tensor.Array{
		"proj_out.weight": tensor.FromFloat32([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 4),
		"proj_out.bias":   tensor.FromFloat32([]float32{9, 10}, 2),
	}, map[string]string{"format": "pt"})
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

func ExampleOpen() {
	dir := component()
	defer os.RemoveAll(dir)

	c, err := weights.Open(dir, weights.Options{Variant: "fp16"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Printf("variant %q, %d warning\n", c.Variant, len(c.Warnings)) // there is no fp16 variant in this folder
	for t := range c.All() {
		fmt.Println(t)
	}
	bias, err := c.Tensor("proj_out.bias")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bias.Array().Float32s(), c.BytesRead(), "of", c.NumBytes(), "bytes read")
	// Output:
	// variant "", 1 warning
	// "proj_out.bias" f32[2]
	// "proj_out.weight" f32[2 4]
	// [9 10] 8 of 40 bytes read
}

// A rank of a tensor-parallel group takes its columns of a row-parallel layer.
func ExampleTensor_Slice() {
	dir := component()
	defer os.RemoveAll(dir)
	f, err := weights.OpenFile(filepath.Join(dir, "diffusion_pytorch_model.safetensors"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	w, err := f.Tensor("proj_out.weight")
	if err != nil {
		log.Fatal(err)
	}
	part, err := w.Slice(1, 2, 4)
	if err != nil {
		log.Fatal(err)
	}
	for r := range part.Ranges() {
		fmt.Println(r.Len, "bytes at", r.Off)
	}
	a, err := part.Array()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a, a.Float32s())
	// Output:
	// 8 bytes at 8
	// 8 bytes at 24
	// f32[2 2] [3 4 7 8]
}

// A rank of two takes its half of each block of a packed projection: here blocks of 2 and 2 columns.
func ExampleTensor_Gather() {
	dir := component()
	defer os.RemoveAll(dir)
	f, err := weights.OpenFile(filepath.Join(dir, "diffusion_pytorch_model.safetensors"))
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()

	w, err := f.Tensor("proj_out.weight")
	if err != nil {
		log.Fatal(err)
	}
	part, err := w.Gather(1, [][2]int{{1, 2}, {3, 4}})
	if err != nil {
		log.Fatal(err)
	}
	a, err := part.Array()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a, a.Float32s())
	// Output: f32[2 2] [2 4 6 8]
}

func ExampleParse() {
	_, err := weights.Parse("lora.safetensors", []byte("PK\x03\x04\x00\x00\x08\x08data.pkl"))
	fmt.Println(err)
	// Output: lora.safetensors: not a safetensors file (looks like a PyTorch archive): pickled files are not read because they can run code; convert it to safetensors
}

func ExampleSave() {
	path := filepath.Join(os.TempDir(), "example.safetensors")
	defer os.Remove(path)
	err := weights.Save(path, map[string]*tensor.Array{
		"latents.initial": tensor.New(tensor.F32, 1, 16, 64),
		"timesteps":       tensor.FromFloat32([]float32{1000, 750, 500, 250}, 4),
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	f, err := weights.OpenFile(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.Names(), f.NumBytes())
	// Output: [latents.initial timesteps] 4112
}
