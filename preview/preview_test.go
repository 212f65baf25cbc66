package preview

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"
	"testing"
)

func gradient(w, h int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, color.RGBA{uint8(x * 7), uint8(y * 5), uint8(x * y), 255})
		}
	}
	return m
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want Protocol
	}{
		{map[string]string{}, Blocks},
		{map[string]string{"TERM": "xterm-256color"}, Blocks},
		{map[string]string{"TERM": "xterm-kitty"}, Kitty},
		{map[string]string{"TERM_PROGRAM": "iTerm.app"}, ITerm2},
		{map[string]string{"TERM": "foot"}, Sixel},
		{map[string]string{"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, Blocks},
	} {
		if got := Detect(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}

// What kitty and iTerm2 are sent is the picture as PNG.
func TestPNGProtocols(t *testing.T) {
	m := gradient(60, 40)
	for p, body := range map[Protocol]string{Kitty: "\x1b_G[^;]*;([^\x1b]*)\x1b\\\\", ITerm2: ":([^\a]*)\a"} {
		var out bytes.Buffer
		if err := Write(&out, m, p, 80); err != nil {
			t.Fatal(err)
		}
		data := ""
		for _, part := range regexp.MustCompile(body).FindAllStringSubmatch(out.String(), -1) {
			if len(part[1]) > chunk && p == Kitty {
				t.Errorf("a part of %d bytes", len(part[1]))
			}
			data += part[1]
		}
		b, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if got.Bounds() != m.Bounds() || got.At(13, 9) != m.At(13, 9) {
			t.Errorf("protocol %d: another picture", p)
		}
	}
}

func TestSixel(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, gradient(12, 12), Sixel, 80); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); !strings.HasPrefix(s, "\x1bP") || !strings.HasSuffix(s, "\x1b\\\n") || !strings.Contains(s, "#") {
		t.Errorf("no sixel sequence: %.40q", s)
	}
}

func TestBlocks(t *testing.T) {
	for _, c := range []struct{ w, h, columns, cells, lines int }{{64, 64, 80, 64, 32}, {64, 64, 32, 32, 16}, {200, 100, 50, 50, 13}, {1, 1, 80, 1, 1}} {
		var out bytes.Buffer
		if err := Write(&out, gradient(c.w, c.h), Blocks, c.columns); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != c.lines || strings.Count(lines[0], "▀") != c.cells {
			t.Errorf("%+v: %d lines of %d cells", c, len(lines), strings.Count(lines[0], "▀"))
		}
	}
}
