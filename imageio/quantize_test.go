package imageio

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/internal/reference"
	"github.com/gesso-go/gesso/internal/shareddata"
	"github.com/gesso-go/gesso/tensor"
)

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error is %v, want one with %q", err, p)
		}
	}
}

// hashes returns the SHA-256 of each picture's RGB bytes.
func hashes(t *testing.T, decoded *tensor.Array) []string {
	t.Helper()
	pixels, err := Quantize(decoded, Convention{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	n := pixels.Shape[0]
	for i := range n {
		size := len(pixels.Data) / n
		sum := sha256.Sum256(pixels.Data[i*size:][:size])
		out = append(out, hex.EncodeToString(sum[:]))
	}
	return out
}

func TestQuantizeIsDiffusers(t *testing.T) {
	all := reference.Tensors(t, "testdata/decoded.safetensors")
	for name, want := range map[string]string{
		"flux_schnell_base": "d2a0e96ab84eb4f55f782fb70361e6823f6057492bc0b7d7e1b7ab17be5b4ea5", // f32
		"flux_schnell_bf16": "7c2e3ddbe87c5b3f18f81947ec4f76f7d17f5eec99d6aae27a6c41f9b1d0b127",
		"sd35_fp16":         "7020cb0c63e86edf1fe7a2ce3030c06281d24dda72518f6e02e7890412bc859f",
	} {
		if got := hashes(t, all[name]); len(got) != 1 || got[0] != want {
			t.Errorf("%s (%s) hashes to %v, want %s", name, all[name], got, want)
		}
	}
}

// TestQuantizeIsDiffusersInAllCases compares with every picture of the full reference set, and reads its PNG file.
func TestQuantizeIsDiffusersInAllCases(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shareddata.Dir(t, "golden", "cases"), "*", "case.json"))
	if err != nil || len(files) < 60 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	compared := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Name        string
			ImageSHA256 []string `json:"image_sha256"`
			Recorded    struct {
				DTypes map[string]string `json:"component_dtypes"`
			}
		}
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		if len(c.ImageSHA256) == 0 { // an expected error, or latents as output
			continue
		}
		dir := filepath.Dir(file)
		decoded := reference.Tensors(t, filepath.Join(dir, "tensors.safetensors"))["vae.decode0.out"]
		d, err := tensor.ParseDType(c.Recorded.DTypes["vae"])
		if err != nil || decoded == nil {
			t.Fatalf("%s: %v, %v", c.Name, decoded, err)
		}
		if decoded, err = decoded.Convert(d); err != nil {
			t.Fatal(err)
		}
		if got := hashes(t, decoded); !slices.Equal(got, c.ImageSHA256) {
			t.Errorf("%s: hashes %v, want %v", c.Name, got, c.ImageSHA256)
		}
		m, err := ReadFile(filepath.Join(dir, "image_0.png"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(Pixels(m).Data)
		if got := hex.EncodeToString(sum[:]); got != c.ImageSHA256[0] {
			t.Errorf("%s: image_0.png hashes to %s, want %s", c.Name, got, c.ImageSHA256[0])
		}
		compared++
	}
	if compared < 55 {
		t.Errorf("only %d cases were compared", compared)
	}
}

func TestLevelsRoundHalfToEven(t *testing.T) {
	// k + 1/2 levels that float32 holds exactly: 127.5 rounds up to the even 128
	for x, want := range map[float32]uint8{0: 0, 1: 255, 0.5: 128, -3: 0, 7: 255, 0.0019607844: 0, 0.0019607846: 1} {
		if got := level(x); got != want {
			t.Errorf("level(%v) = %d, want %d", x, got, want)
		}
	}
}

// TestLayoutsAndRangesAgree quantizes one picture in every convention.
func TestLayoutsAndRangesAgree(t *testing.T) {
	want := tensor.New(tensor.U8, 2, 3, 5, 3)
	for i := range want.Data {
		want.Data[i] = uint8(i * 37)
	}
	for _, c := range []Convention{{NCHW, Symmetric}, {NCHW, Unit}, {NHWC, Symmetric}, {NHWC, Unit}} {
		f, err := Floats(want, c)
		if err != nil {
			t.Fatal(err)
		}
		shape := tensor.Shape{2, 3, 3, 5}
		if c.Layout == NHWC {
			shape = tensor.Shape{2, 3, 5, 3}
		}
		if !f.Shape.Equal(shape) {
			t.Errorf("%v: floats are %s", c, f)
		}
		lo := slices.Min(f.Float32s())
		if c.Range == Symmetric && lo > -0.9 || c.Range == Unit && lo < 0 {
			t.Errorf("%v: least value is %v", c, lo)
		}
		got, err := Quantize(f, c)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Shape.Equal(want.Shape) || !slices.Equal(got.Data, want.Data) {
			t.Errorf("%v: the picture came back as %s %v", c, got, got.Data)
		}
	}
	// row 1, column 2, green
	f, _ := Floats(want, Convention{Range: Unit})
	if got, want := f.Float32s()[1*15+1*5+2], float32(want.Data[(1*5+2)*3+1])/255; got != want {
		t.Errorf("NCHW value is %v, want %v", got, want)
	}
}

func TestDenormalizeRoundsToTheType(t *testing.T) {
	// halves of the third and fourth are half-way between two bf16 values above 0.5: they go to the even one
	in := []float32{-5, -1, 0.00390625, 0.01171875, 1, 5}
	for d, want := range map[tensor.DType][]float64{
		tensor.F32:  {0, 0, .501953125, .505859375, 1, 1},
		tensor.F64:  {0, 0, .501953125, .505859375, 1, 1},
		tensor.F16:  {0, 0, .501953125, .505859375, 1, 1},
		tensor.BF16: {0, 0, .5, .5078125, 1, 1},
	} {
		a, err := tensor.FromFloat32(in, len(in)).Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Denormalize(a)
		if err != nil || got.DType != d {
			t.Fatalf("%s: %v, %v", d, got, err)
		}
		if !slices.Equal(got.Float64s(), want) {
			t.Errorf("%s: %v, want %v", d, got.Float64s(), want)
		}
	}
	_, err := Denormalize(tensor.New(tensor.I32, 2))
	wantError(t, err, "array i32[2]")
}

func TestNonFiniteValuesAreReported(t *testing.T) {
	v := make([]float32, 1*3*2*2)
	v[5], v[7] = float32(math.NaN()), float32(math.Inf(-1))
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		a, err := tensor.FromFloat32(v, 1, 3, 2, 2).Convert(d)
		if err != nil {
			t.Fatal(err)
		}
		if count, first := NonFinite(a); count != 2 || first != 5 {
			t.Errorf("%s: %d values, first %d", d, count, first)
		}
		_, err = Quantize(a, Convention{})
		var nf *NonFiniteError
		if !errors.As(err, &nf) || nf.Count != 2 || nf.First != 5 {
			t.Fatalf("%s: error is %v", d, err)
		}
		wantError(t, err, "2 of 12 values", "at [0 1 0 1] of [1 3 2 2]")
	}
	if count, first := NonFinite(tensor.New(tensor.F32, 4)); count != 0 || first != -1 {
		t.Errorf("zeros: %d, %d", count, first)
	}
}

func TestArraysThatAreNoPicture(t *testing.T) {
	u8 := func(shape ...int) *tensor.Array { return tensor.New(tensor.U8, shape...) }
	f32 := func(shape ...int) *tensor.Array { return tensor.New(tensor.F32, shape...) }
	short := &tensor.Array{DType: tensor.F32, Shape: tensor.Shape{1, 3, 2, 2}, Data: make([]byte, 8)}
	for _, c := range []struct {
		a    *tensor.Array
		c    Convention
		want string
	}{
		{f32(2, 2), Convention{}, "3 or 4 axes"},
		{f32(1, 4, 2, 2), Convention{}, "4 channels"},
		{f32(1, 3, 2, 2), Convention{Layout: NHWC}, "2 channels"},
		{f32(1, 3, 0, 2), Convention{}, "holds no picture"},
		{f32(1, 3, 2, 0), Convention{}, "holds no picture"},
		{tensor.New(tensor.I64, 1, 3, 2, 2), Convention{}, "i64[1 3 2 2]"},
		{short, Convention{}, "8 bytes"},
	} {
		_, err := Quantize(c.a, c.c)
		wantError(t, err, c.want)
	}
	for a, want := range map[*tensor.Array]string{
		f32(1, 2, 2, 3): "expected u8", u8(1, 3, 2, 2): "2 channels", u8(1, 2, 0, 3): "holds no picture",
		{DType: tensor.U8, Shape: tensor.Shape{1, 2, 2, 3}, Data: make([]byte, 5)}: "5 bytes",
	} {
		_, err := Floats(a, Convention{})
		wantError(t, err, want)
		_, err = Images(a)
		wantError(t, err, want)
	}
}

func BenchmarkQuantize(b *testing.B) {
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		b.Run(d.String(), func(b *testing.B) {
			a := tensor.New(d, 1, 3, 1024, 1024)
			for b.Loop() {
				if _, err := Quantize(a, Convention{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
