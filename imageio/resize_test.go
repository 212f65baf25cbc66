package imageio

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/gesso-go/gesso/tensor"
)

// generated is testdata/resize.py's picture.
func generated(h, w int) *tensor.Array {
	a := tensor.New(tensor.U8, 1, h, w, 3)
	x := uint64(12345)
	for i := range a.Data {
		x = (x*1103515245 + 12345) % (1 << 31)
		switch x >> 29 {
		case 0:
			a.Data[i] = 0
		case 1:
			a.Data[i] = 255
		default:
			a.Data[i] = uint8(x >> 16)
		}
	}
	return a
}

// Pictures are resized and made grey as Pillow does it, level for level.
func TestResizeMatchesPillow(t *testing.T) {
	b, err := os.ReadFile("testdata/resize.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		From, To  [2]int
		RGB, Grey string
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 10 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		got, err := Resize(generated(c.From[0], c.From[1]), c.To[0], c.To[1])
		if err != nil {
			t.Fatal(err)
		}
		grey, err := Luma(got)
		if err != nil {
			t.Fatal(err)
		}
		for want, a := range map[string]*tensor.Array{c.RGB: got, c.Grey: grey} {
			if sum := sha256.Sum256(a.Data); hex.EncodeToString(sum[:]) != want {
				t.Errorf("%v to %v: %v is not Pillow's", c.From, c.To, a.Shape)
			}
		}
	}
}

// Pictures of a batch are resized one by one, and what is no picture is refused.
func TestResizeBatchAndMistakes(t *testing.T) {
	a := generated(9, 7)
	two := &tensor.Array{DType: tensor.U8, Shape: tensor.Shape{2, 9, 7, 3}, Data: append(append([]byte{}, a.Data...), a.Data...)}
	one, err := Resize(a, 4, 12)
	if err != nil {
		t.Fatal(err)
	}
	both, err := Resize(two, 4, 12)
	if err != nil {
		t.Fatal(err)
	}
	if string(both.Data) != string(one.Data)+string(one.Data) {
		t.Error("the second picture of a batch differs")
	}
	for _, c := range []struct {
		a    *tensor.Array
		h, w int
	}{{a, 0, 4}, {a, 4, -1}, {tensor.New(tensor.F32, 1, 2, 2, 3), 4, 4}, {tensor.New(tensor.U8, 2, 2, 2), 4, 4}, {tensor.New(tensor.U8, 4), 4, 4}} {
		if _, err := Resize(c.a, c.h, c.w); err == nil {
			t.Errorf("%v to %d×%d was accepted", c.a, c.h, c.w)
		}
	}
}
