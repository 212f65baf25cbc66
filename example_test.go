package gesso_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/imageio"
)

func ExampleLoad() {
	ctx := context.Background()
	pipe, err := gesso.Load(ctx, "testdata/golden/checkpoints/flux_schnell", gesso.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pipe.Close()
	res, err := pipe.Generate(ctx, gesso.Request{
		Prompts: []string{"a cat"}, Height: 64, Width: 64, Steps: 4, MaxSequenceLength: 48, Seeds: []uint64{7},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pipe.Class(), res.Images[0].Bounds().Max, res.Seeds)
	// Output: FluxPipeline (64,64) [7]
}

func ExamplePipeline_Generate_progress() {
	ctx := context.Background()
	pipe, err := gesso.Load(ctx, "testdata/golden/checkpoints/flux_schnell", gesso.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pipe.Close()
	_, err = pipe.Generate(ctx, gesso.Request{
		Prompts: []string{"a cat"}, Height: 64, Width: 64, Steps: 2, MaxSequenceLength: 48, Seeds: []uint64{7},
		Progress: func(p gesso.Progress) { fmt.Println(p.Stage, p.Step, p.Steps) },
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// text encoding 0 0
	// denoising 0 2
	// denoising 1 2
	// denoising 2 2
	// decoding 0 0
}

// A LoRA is loaded with the checkpoint; a request may give it another strength.
func ExampleLoad_lora() {
	ctx := context.Background()
	pipe, err := gesso.Load(ctx, "testdata/golden/checkpoints/flux_schnell", gesso.Options{
		LoRAs: []gesso.LoRA{{Path: "testdata/golden/inputs/lora_alpha.safetensors"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer pipe.Close()
	_, err = pipe.Generate(ctx, gesso.Request{
		Prompts: []string{"a cat"}, Height: 64, Width: 64, Steps: 4, MaxSequenceLength: 48, Seeds: []uint64{7},
		LoRAWeights: []float64{0.8},
	})
	fmt.Println(err)
	// Output: <nil>
}

// A run may start from a picture: of 5 steps the last 3 are taken.
func ExamplePipeline_Generate_image() {
	ctx := context.Background()
	pipe, err := gesso.Load(ctx, "testdata/golden/checkpoints/flux_schnell", gesso.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pipe.Close()
	m, err := imageio.ReadFile("testdata/golden/inputs/input_rgb.png", imageio.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	res, err := pipe.Generate(ctx, gesso.Request{
		Prompts: []string{"a cat"}, Height: 64, Width: 64, Steps: 5, MaxSequenceLength: 48, Seeds: []uint64{7},
		Image: m, Strength: 0.6,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Steps, "of", res.Asked)
	// Output: 3 of 5
}
