package main

import (
	"fmt"
	"image"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/imageio"
	"github.com/spf13/pflag"
)

// imageFlags say which picture a run starts from.
type imageFlags struct {
	image, mask string
	strength    float64
}

func (f *imageFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.image, "image", "", "picture to start from (PNG, JPEG or WebP), resized to the output's size")
	fl.Float64Var(&f.strength, "strength", 0, "with --image: how much is made anew, above 0 and at most 1 (default 0.6)")
	fl.StringVar(&f.mask, "mask", "", "with --image: picture that is light where the image is made anew; the rest stays")
}

// apply reads the pictures into a request.
func (f *imageFlags) apply(fl *pflag.FlagSet, r *gesso.Request) error {
	if f.image == "" {
		for _, flag := range []string{"strength", "mask"} {
			if fl.Changed(flag) {
				return usagef("--%s needs --image", flag)
			}
		}
		return nil
	}
	if fl.Changed("strength") && !(f.strength > 0 && f.strength <= 1) {
		return usagef("--strength must be above 0 and at most 1, got %g", f.strength)
	}
	r.Strength = f.strength
	for _, p := range []struct {
		flag, path string
		to         *image.Image
	}{{"image", f.image, &r.Image}, {"mask", f.mask, &r.Mask}} {
		if p.path == "" {
			continue
		}
		m, err := imageio.ReadFile(p.path, imageio.Limits{})
		if err != nil {
			return fmt.Errorf("--%s: %w", p.flag, err)
		}
		*p.to = m
	}
	return nil
}
