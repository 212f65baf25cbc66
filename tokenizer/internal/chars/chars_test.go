package chars

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// every calls f with each character below end.
func every(end rune, f func(r rune)) {
	for r := range end {
		if utf8.ValidRune(r) {
			f(r)
		}
	}
}

// digest is the SHA-256 of one line for each character. The wanted values were made with tokenizers 0.23.3: Replace with
// a Regex for classes, and the Lowercase and NFC normalisers.
func digest(end rune, line func(b *strings.Builder, r rune)) string {
	var b strings.Builder
	every(end, func(r rune) {
		line(&b, r)
		b.WriteByte('\n')
	})
	sum := sha256.Sum256([]byte(strings.TrimSuffix(b.String(), "\n")))
	return hex.EncodeToString(sum[:])
}

func TestClassOfEveryCharacterIsOniguruma(t *testing.T) {
	var classes []byte
	every(utf8.MaxRune+1, func(r rune) { classes = append(classes, byte(ClassOf(r))) })
	sum := sha256.Sum256(classes)
	if got, want := hex.EncodeToString(sum[:]), "d574d35a9a83bf26e4d3e6a9f59925b055a5d1de2f1d4094240570adfb54799e"; got != want {
		t.Errorf("classes hash to %s, want %s: did Go's Unicode tables move?", got, want)
	}
}

func TestLowerOfEveryCharacterIsRust(t *testing.T) {
	got := digest(utf8.MaxRune+1, AppendLower)
	if want := "9dbe491e02df24162a6ab7a165198f7ac804161d6f563724d6a65ba82f734a0f"; got != want {
		t.Errorf("lower case hashes to %s, want %s: did Go's Unicode tables move?", got, want)
	}
}

func TestNFCWithEveryCharacterBelowTheIdeographicPlanes(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"%s", "68ee1d543b461acfaece8492cc3929cf4e8e3a66db2856f122dba82fc08a15eb"},
		{"a%s\u0334", "79bb8d80ff7e62430800c1b6c3f61da0f3e5283bd9238a0c628d9780e14ea551"},
		{"a\u0345%s", "2625c40a269376da3107ab865be6328697cefad5b9f0c52773f9621d918203b4"},
		{"e%s\u0301", "103a9b60e11eddcf9b0e71b0914be103645d93491a6b05ac279046e2797ce71e"},
		{"%s\u0301\u0323", "d85b26655d32de78482224a16e8b133b9d5d555c547e52af48abefea850f2093"},
		{"\u1100%s", "5e9d86edea8f7c72458b8ad06a96e0a20e7a6bec30a83f4edbda29e07afc84ad"},
		{"\uac00%s", "a5ab84c93b97688987d3d8edd13e643a8a727c0fd5ce14629c2cae6d4c3e255f"},
		{"%s\u1161\u11a8", "2769cbb5251ceec415074f67658406f5f4fc1b2e407ccf9ca56615ad81d03e0e"},
		{"\u0b47%s", "becbe26e1c21c3379b17f04fe83d1ce416ddb5c1f82ec21a2c66c22b536c6d6a"},
		{"\u0344\u0344%s\u0327", "dd896f4e58f477da368080ebf248ab001d428623563203f3f50e2d9ac60770d1"},
	} {
		before, after, _ := strings.Cut(c.pattern, "%s")
		got := digest(0x20000, func(b *strings.Builder, r rune) { b.WriteString(NFC(before + string(r) + after)) })
		if got != c.want {
			t.Errorf("pattern %+q: hash %s, want %s", c.pattern, got, c.want)
		}
	}
}

// norm.NFC inserts U+034F after 30 marks; the composed text must not hold it.
func TestNFCLeavesLongRunsOfMarksAlone(t *testing.T) {
	marks := strings.Repeat("\u0300", 100)
	if got, want := NFC("e"+marks), "è"+marks[2:]; got != want {
		t.Errorf("NFC(e + 100 graves) = %+q, want %+q", got, want)
	}
	// Canonical order is a stable sort by class: 202 before 220 before 230.
	mixed := strings.Repeat("\u0301\u0323\u0327", 20)
	want := "ḉ" + strings.Repeat("\u0327", 19) + strings.Repeat("\u0323", 20) + strings.Repeat("\u0301", 19)
	if got := NFC("c" + mixed); got != want {
		t.Errorf("NFC = %+q, want %+q", got, want)
	}
}

func TestValidReplacesMaximalSubparts(t *testing.T) {
	// The wanted texts are bytes.decode("utf-8", errors="replace") of Python.
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"plain é 😀", "plain é 😀"},
		{"a\xffb", "a\ufffdb"},
		{"\xf0\x9f\x98", "\ufffd"},
		{"\xf0\x9f\x98x", "\ufffdx"},
		{"\xe2\x82\xe2\x82\xac", "\ufffd€"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
		{"\xc0\xaf", "\ufffd\ufffd"},
		{"\xe0\x80\x80", "\ufffd\ufffd\ufffd"},
		{"\xf4\x90\x80\x80", "\ufffd\ufffd\ufffd\ufffd"},
		{"\x80\xbf", "\ufffd\ufffd"},
		{"\ufffd", "\ufffd"},
	} {
		if got := Valid(c.in); got != c.want {
			t.Errorf("Valid(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzNFC(f *testing.F) {
	f.Add("é vs e\u0301")
	f.Add("\u1112\u1161\u11ab 한")
	f.Add("a\u0c3c\u0334")
	f.Fuzz(func(t *testing.T, s string) {
		s = Valid(s)
		if !utf8.ValidString(s) {
			t.Fatalf("Valid left bytes that are not UTF-8: %q", s)
		}
		got := NFC(s)
		if again := NFC(got); again != got {
			t.Errorf("NFC is not stable: %+q, then %+q", got, again)
		}
		young := strings.ContainsFunc(s, func(r rune) bool { return in(youngMarks, r) || in(youngComposites, r) })
		// The two agree wherever Unicode's versions and the limit on runs of marks play no part.
		if !young && !longRun(s) && !slices.Equal([]rune(norm.NFC.String(s)), []rune(got)) && !recomposes(s) {
			t.Errorf("NFC(%+q) = %+q, package norm gives %+q", s, got, norm.NFC.String(s))
		}
	})
}

// longRun tells whether more than 30 marks follow each other once s is decomposed.
func longRun(s string) bool {
	run := 0
	for _, c := range decompose(s) {
		if run++; c.ccc == 0 {
			run = 0
		}
		if run > 28 {
			return true
		}
	}
	return false
}

// recomposes tells whether s could compose to a character that is younger than Unicode 9.
func recomposes(s string) bool {
	return strings.ContainsFunc(norm.NFC.String(s), func(r rune) bool { return in(youngComposites, r) })
}
