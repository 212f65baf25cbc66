package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso"
)

// parseLoRAs turns --lora's values, FILE or FILE:WEIGHT, into adapters, and says at once which file is missing.
func parseLoRAs(values []string) ([]gesso.LoRA, error) {
	var loras []gesso.LoRA
	for _, v := range values {
		l := gesso.LoRA{Path: v}
		if _, err := os.Stat(v); err != nil { // a file's own name may have a colon
			if i := strings.LastIndexByte(v, ':'); i >= 0 {
				if w, err := strconv.ParseFloat(v[i+1:], 64); err == nil {
					l = gesso.LoRA{Path: v[:i], Weight: &w}
				}
			}
		}
		info, err := os.Stat(l.Path)
		switch {
		case err != nil && strings.Contains(v, ":") && l.Weight == nil:
			return nil, fmt.Errorf("--lora %s: no such file, or what follows the colon is not a number", v)
		case err != nil:
			return nil, fmt.Errorf("--lora %s: no such file", l.Path)
		case info.IsDir():
			return nil, fmt.Errorf("--lora %s: is a folder, expected a safetensors file", l.Path)
		}
		loras = append(loras, l)
	}
	return loras, nil
}
