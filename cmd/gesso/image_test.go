package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run starts from --image, keeps more of it at less strength, and notes it in the picture.
func TestImageToImage(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "a.png")
	draw := func(args ...string) []byte {
		t.Helper()
		if code, _, stderr := command(t, nil, small(append(args, "--model", checkpoint, "--seed", "1", "--steps", "4", "-o", out, "a cat")...)...); code != exitOK {
			t.Fatalf("%v: exit %d: %s", args, code, stderr)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b[bytes.Index(b, []byte("IDAT")):]
	}
	plain, image, weak := draw(), draw("--image", rgb), draw("--image", rgb, "--strength", "0.25")
	if bytes.Equal(plain, image) || bytes.Equal(image, weak) {
		t.Error("the image or its strength has no effect")
	}
	if _, shown, _ := command(t, nil, "show", out); !strings.Contains(shown, "strength: 0.25") || !strings.Contains(shown, "input_rgb.png") || !strings.Contains(shown, "steps: 4") {
		t.Errorf("show does not tell of the image:\n%s", shown)
	}
	draw("--image", rgb, "--prompt-2", "", "--negative-prompt-2", "b", "--negative-prompt", "", "--true-cfg-scale", "2", "--sigmas", "1,0.5", "--max-sequence-length", "32", "--vae-tiling", "--quantize", "int8",
		"--scheduler", "FlowMatchEulerDiscreteScheduler")
	_, shown, _ := command(t, nil, "show", out)
	for _, want := range []string{"strength: 0.6", "steps: 2", "\nprompt_2: \n", "\nnegative_prompt: \n", "negative_prompt_2: b", "sigmas: [1 0.5]", "max_sequence_length: 32", "vae_tiling: true", "quantize: int8", "scheduler: Flow"} {
		if !strings.Contains(shown, want) {
			t.Errorf("show does not tell %q:\n%s", want, shown)
		}
	}
	draw("--negative-prompt", "b", "--negative-prompt-2", "", "--true-cfg-scale", "2")
	if _, shown, _ = command(t, nil, "show", out); !strings.Contains(shown, "\nnegative_prompt: b\nnegative_prompt_2: \n") {
		t.Errorf("show does not tell the empty negative prompt:\n%s", shown)
	}
	if mask := "../../testdata/golden/inputs/input_mask.png"; bytes.Equal(image, draw("--image", rgb, "--mask", mask)) {
		t.Error("the mask has no effect")
	}
}

// A small file that claims a huge picture is refused before memory is taken for it.
func TestHugeImage(t *testing.T) {
	header := append([]byte("IHDR"), 0, 1, 0, 0, 0, 1, 0, 0, 8, 2, 0, 0, 0) // 65536 × 65536
	png := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	png = binary.BigEndian.AppendUint32(append(png, header...), crc32.ChecksumIEEE(header))
	path := filepath.Join(t.TempDir(), "huge.png")
	if err := os.WriteFile(path, png, 0o666); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command(t, nil, small("--model", checkpoint, "--image", path, "-o", path+".out.png", "x")...)
	if code != exitFailed || !strings.Contains(stderr, "65536 by 65536") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
