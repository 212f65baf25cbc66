// Package preview shows a picture in a terminal: by the protocols of kitty and iTerm2, as sixels, or elsewhere as
// half blocks of coloured text.
//
//	err := preview.Write(os.Stdout, img, preview.Detect(os.Getenv), 80)
package preview

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"

	"github.com/mattn/go-sixel"
	"golang.org/x/image/draw"
)

// Protocol is a way to show pictures.
type Protocol int

// The protocols.
const (
	Blocks Protocol = iota // any terminal with 24-bit colour
	Kitty
	ITerm2
	Sixel
)

// Detect tells the protocol from the environment that terminals set. It never asks the terminal, so it cannot hang.
func Detect(getenv func(string) string) Protocol {
	term, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case getenv("TMUX") != "" || strings.HasPrefix(term, "screen"):
		return Blocks // a multiplexer passes none of the others on unasked
	case getenv("KITTY_WINDOW_ID") != "" || strings.Contains(term, "kitty") || program == "ghostty":
		return Kitty
	case program == "iTerm.app" || program == "WezTerm" || getenv("LC_TERMINAL") == "iTerm2":
		return ITerm2
	case strings.Contains(term, "sixel") || strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "mlterm"):
		return Sixel
	}
	return Blocks
}

// Write shows m, at most so many columns wide.
func Write(w io.Writer, m image.Image, p Protocol, columns int) error {
	switch p {
	case Kitty:
		return writeKitty(w, m)
	case ITerm2:
		b, err := encode(m)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "\x1b]1337;File=inline=1;size=%d:%s\a\n", len(b), base64.StdEncoding.EncodeToString(b))
		return err
	case Sixel:
		if err := sixel.NewEncoder(w).Encode(m); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n")
		return err
	}
	return writeBlocks(w, m, columns)
}

func encode(m image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return b.Bytes(), err
}

// chunk is the most base64 that one escape sequence of kitty's may carry.
const chunk = 4096

func writeKitty(w io.Writer, m image.Image) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	data := base64.StdEncoding.EncodeToString(b)
	keys := "a=T,f=100,"
	for {
		part, more := data, 0
		if len(data) > chunk {
			part, more = data[:chunk], 1
		}
		if _, err := fmt.Fprintf(w, "\x1b_G%sm=%d;%s\x1b\\", keys, more, part); err != nil {
			return err
		}
		if more == 0 {
			_, err := io.WriteString(w, "\n")
			return err
		}
		data, keys = data[chunk:], ""
	}
}

// writeBlocks draws two pixels a character, the upper one as foreground.
func writeBlocks(w io.Writer, m image.Image, columns int) error {
	b := m.Bounds()
	if b.Empty() || columns < 1 {
		return nil
	}
	width := min(columns, b.Dx())
	height := max(1, (b.Dy()*width/b.Dx()+1)/2) * 2
	small := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.CatmullRom.Scale(small, small.Bounds(), m, b, draw.Src, nil)
	var out strings.Builder
	for y := 0; y < height; y += 2 {
		for x := range width {
			u, l := small.RGBAAt(x, y), small.RGBAAt(x, y+1)
			fmt.Fprintf(&out, "\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm▀", u.R, u.G, u.B, l.R, l.G, l.B)
		}
		out.WriteString("\x1b[0m\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
