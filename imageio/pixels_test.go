package imageio

import (
	"image"
	"image/color"
	"testing"
)

// The colour under transparency is kept, in every form that a decoder returns.
func TestPixelsUnderTransparency(t *testing.T) {
	r := image.Rect(3, 5, 4, 6)
	wide, narrow, ycc := image.NewNRGBA64(r), image.NewNRGBA(r), image.NewNYCbCrA(r, image.YCbCrSubsampleRatio420)
	paletted := image.NewPaletted(r, color.Palette{color.NRGBA{200, 100, 50, 0}})
	ycc.Y[0], ycc.Cb[0], ycc.Cr[0] = color.RGBToYCbCr(200, 100, 50)
	for _, alpha := range []uint8{0, 1, 255} {
		wide.SetNRGBA64(3, 5, color.NRGBA64{200<<8 | 7, 100 << 8, 50<<8 | 255, uint16(alpha) << 8})
		narrow.SetNRGBA(3, 5, color.NRGBA{200, 100, 50, alpha})
		ycc.A[0] = alpha
		for _, m := range []image.Image{wide, narrow, ycc, paletted} {
			p := Pixels(m).Data
			for i, want := range []uint8{200, 100, 50} {
				if d := int(p[i]) - int(want); d < -1 || d > 1 {
					t.Errorf("%T with alpha %d: %v", m, alpha, p)
					break
				}
			}
		}
	}
}
