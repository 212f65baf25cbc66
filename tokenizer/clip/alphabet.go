package clip

// alphabet gives each byte a printable character, GPT-2's choice: itself where it is printable in Latin-1, and the
// characters from U+0100 on for the rest, in order.
var alphabet = func() (t [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' && b <= 'ÿ' {
			t[b] = b
			continue
		}
		t[b] = next
		next++
	}
	return t
}()

var fromAlphabet = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range alphabet {
		m[r] = byte(b)
	}
	return m
}()

// appendBytes appends the bytes that a token stands for. A token with a character outside the alphabet is text.
func appendBytes(dst []byte, token string) []byte {
	start := len(dst)
	for _, r := range token {
		b, ok := fromAlphabet[r]
		if !ok {
			return append(dst[:start], token...)
		}
		dst = append(dst, b)
	}
	return dst
}
