package clip

import (
	"testing"

	"github.com/gesso-go/gesso/tokenizer"
)

func BenchmarkLoad(b *testing.B) {
	folder := realFolder(b, "flux_")
	for b.Loop() {
		if _, err := LoadFS(folder, tokenizer.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A prompt that fills the 77 tokens of a text encoder.
const prompt = "a golden retriever surfing a huge turquoise wave at sunset, photorealistic, cinematic lighting, 35mm lens, " +
	"intricate details, water droplets frozen in the air, vibrant colours, shallow depth of field, award-winning sports " +
	"photograph, sharp focus, dramatic clouds over the ocean, rule of thirds, by a professional photographer, 8k, " +
	"trending on a well known portfolio site, masterpiece"

func BenchmarkEncode(b *testing.B) {
	tok := load(b, realFolder(b, "flux_"), tokenizer.Options{})
	b.SetBytes(int64(len(prompt)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tok.Encode(prompt, 77); err != nil {
			b.Fatal(err)
		}
	}
}
