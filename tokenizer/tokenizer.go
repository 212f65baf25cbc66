// Package tokenizer holds what all prompt tokenizers share: the interface that pipelines use and the encoding that it
// gives. The tokenizers themselves live in folders of their own, one for each family of vocabularies:
//
//	tokenizer/clip      CLIP's lower-casing byte-pair encoding (FLUX.1 and Stable Diffusion 3: tokenizer, tokenizer_2)
//	tokenizer/unigram   T5's SentencePiece unigram model (FLUX.1: tokenizer_2, Stable Diffusion 3: tokenizer_3)
//	tokenizer/auto      opens a folder with whichever of them it was saved for
//
// Example:
//
//	tok, err := auto.Load("FLUX.1-schnell/tokenizer", tokenizer.Options{})
//	…
//	enc, err := tok.Encode("a golden retriever surfing a wave", 77)
//	// enc.IDs and enc.Mask hold 77 numbers each; enc.Truncated tells what did not fit.
//
// Ids equal those of Hugging Face Transformers 5 (tokenizers 0.23), the library that Diffusers calls.
package tokenizer

// Encoding is one text as token ids.
type Encoding struct {
	IDs       []int64 // (maxLength) ids: special tokens, text, padding
	Mask      []int64 // (maxLength) 1 where IDs holds a token, 0 where it holds padding
	Truncated string  // text of the tokens that did not fit, for a warning; empty if all did
}

// Tokenizer turns prompts into ids. Implementations are immutable and safe for concurrent use.
type Tokenizer interface {
	// Encode gives exactly maxLength ids: the tokens of text between the model's special tokens, cut at its end and
	// padded as the model expects. With a maxLength of 0 nothing is cut and nothing padded. It fails if maxLength is
	// negative or too small for the special tokens. Bytes of text that are not UTF-8 are read as U+FFFD, one for each
	// maximal ill-formed sequence, as Python's decoder does with errors="replace".
	//
	// A special token's name inside text ("<|endoftext|>", "</s>") becomes that token, as in Transformers, unless
	// Options.SpecialAsText is set.
	Encode(text string, maxLength int) (Encoding, error)

	// Decode gives the text of ids, special tokens included. It is meant for messages: lower case, normalised
	// characters and spaces around punctuation are not undone. Unknown ids are left out.
	Decode(ids []int64) string

	// MaxLength is the model_max_length that the tokenizer was saved with, 0 if it has none.
	MaxLength() int

	// VocabSize is the largest id plus one: the fewest rows that an embedding table for this tokenizer can have.
	VocabSize() int
}

// Options change how a tokenizer is loaded; the zero value is what Transformers does.
type Options struct {
	// SpecialAsText keeps the names of special tokens in a prompt as the plain text they are, so that a user's text
	// can never act as a control token.
	SpecialAsText bool
}
