// Package imageio takes pictures from arrays to files and back: the last step of a pipeline, as Diffusers'
// VaeImageProcessor takes it, and the first of image-to-image.
//
// A picture in memory is a U8 array of shape (N, H, W, C), C being 3 for RGB or 1 for grey, or an [image.Image]:
//
//	pixels, err := imageio.Quantize(decoded, imageio.Convention{}) // decoded: (N, 3, H, W) in [-1, 1]
//	pictures, err := imageio.Images(pixels)
//	err = imageio.WriteFile("cat.png", pictures[0], imageio.Options{Text: []imageio.Text{{"Software", "Gesso"}}})
//
// Files are written whole or not at all. What is read may come from anyone: sizes are checked before memory is taken.
package imageio

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Format is a file format that pictures are written in.
type Format uint8

// The formats.
const (
	PNG Format = iota
	JPEG
)

// String returns "PNG" or "JPEG".
func (f Format) String() string {
	if f == JPEG {
		return "JPEG"
	}
	return "PNG"
}

// FormatOf returns the format that a file name asks for by its extension.
func FormatOf(path string) (Format, error) {
	switch ext := filepath.Ext(path); strings.ToLower(ext) {
	case ".png":
		return PNG, nil
	case ".jpg", ".jpeg":
		return JPEG, nil
	default:
		return PNG, fmt.Errorf("output %s: extension %q, expected .png, .jpg or .jpeg", path, ext)
	}
}
