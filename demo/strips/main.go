// Command strips draws the rows of pictures in the demo's README, with the built-in model, its LoRA, and a sketch to start
// from. Run it from the repository's root:
//
//	go run ./demo/strips
package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"os"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/demo"
	"github.com/gesso-go/gesso/imageio"
)

const (
	loraFile = "demo/lora/blue.safetensors"
	sketch   = "demo/sketch.png"
	side     = 64
)

// subjects are drawn without and with the LoRA.
var subjects = []string{"a red apple", "a hamburger", "a fox", "a sunflower", "a sailboat", "a castle", "a soccer ball", "a robot"}

// becomes is what the sketch is turned into, at each strength.
var (
	becomes   = []string{"a red apple", "a wolf"}
	strengths = []float64{0.2, 0.3, 0.5, 0.8}
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "strips:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cache, err := os.MkdirTemp("", "strips")
	if err != nil {
		return err
	}
	defer os.RemoveAll(cache)
	dir, err := demo.Folder(cache)
	if err != nil {
		return err
	}
	pipe, err := gesso.Load(ctx, dir, gesso.Options{LoRAs: []gesso.LoRA{{Path: loraFile}}})
	if err != nil {
		return err
	}
	defer pipe.Close()
	one := func(r gesso.Request) (image.Image, error) {
		r.Seeds = []uint64{0}
		res, err := pipe.Generate(ctx, r)
		if err != nil {
			return nil, err
		}
		return res.Images[0], nil
	}

	var blue []image.Image
	for _, weight := range []float64{0, 1} {
		for _, s := range subjects {
			m, err := one(gesso.Request{Prompts: []string{s}, LoRAWeights: []float64{weight}})
			if err != nil {
				return err
			}
			blue = append(blue, m)
		}
	}
	if err := write("demo/lora/before-after.png", len(subjects), blue); err != nil {
		return err
	}

	start, err := imageio.ReadFile(sketch, imageio.Limits{})
	if err != nil {
		return err
	}
	pixels, err := imageio.Resize(imageio.Pixels(start), side, side)
	if err != nil {
		return err
	}
	small, err := imageio.Images(pixels)
	if err != nil {
		return err
	}
	var rows []image.Image
	for _, s := range becomes {
		rows = append(rows, small[0])
		for _, strength := range strengths {
			m, err := one(gesso.Request{
				Prompts: []string{s}, Image: start, Strength: strength, Steps: 20, LoRAWeights: []float64{0},
			})
			if err != nil {
				return err
			}
			rows = append(rows, m)
		}
	}
	return write("demo/image-to-image.png", 1+len(strengths), rows)
}

// write saves pictures as rows of so many.
func write(path string, columns int, all []image.Image) error {
	out := image.NewNRGBA(image.Rect(0, 0, columns*side, len(all)/columns*side))
	draw.Draw(out, out.Rect, image.NewUniform(color.White), image.Point{}, draw.Src)
	for i, m := range all {
		at := image.Pt(i%columns*side, i/columns*side)
		draw.Draw(out, m.Bounds().Add(at), m, m.Bounds().Min, draw.Src)
	}
	return imageio.WriteFile(path, out, imageio.Options{})
}
