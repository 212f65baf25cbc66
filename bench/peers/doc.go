package main

import (
	"fmt"
	"os"
	"strings"
)

func marks(name string) (begin, end string) {
	return "<!-- begin " + name + ": go run ./bench/peers -rows " + name + " -->", "<!-- end " + name + " -->"
}

// replaceSection puts text between a section's markers in a document.
func replaceSection(path, name, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	doc, err := splice(string(b), name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(doc), 0o644)
}

func splice(doc, name, text string) (string, error) {
	begin, end := marks(name)
	i := strings.Index(doc, begin)
	j := strings.Index(doc, end)
	if i < 0 || j < i {
		return "", fmt.Errorf("the markers of section %s are missing: %s … %s", name, begin, end)
	}
	return doc[:i+len(begin)] + "\n" + strings.TrimSpace(text) + "\n" + doc[j:], nil
}
