package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso"
	"github.com/gesso-go/gesso/hub"
)

// parseLoRAs turns --lora's values, FILE or FILE:WEIGHT, into adapters, and says at once which file is missing. FILE may
// be on the Hub: org/name, where there is one safetensors file, or hf://org/name/FILE.
func parseLoRAs(ctx context.Context, env *environment, values []string, quiet bool) ([]gesso.LoRA, error) {
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
		case err != nil && isRemoteLoRA(l.Path):
			if l.Path, err = pullLoRA(ctx, env, l.Path, quiet); err != nil {
				return nil, fmt.Errorf("--lora: %w", err)
			}
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

// isRemoteLoRA tells a repository from a file that is missing.
func isRemoteLoRA(path string) bool {
	for _, scheme := range []string{"hf://", "https://", "http://"} {
		if strings.HasPrefix(path, scheme) {
			return true
		}
	}
	return !isPath(path) && strings.Count(path, "/") == 1 && !strings.Contains(path, ":")
}

// pullLoRA brings a file from the Hub into the cache. A repository must have one file that it could be.
func pullLoRA(ctx context.Context, env *environment, reference string, quiet bool) (string, error) {
	cfg, ref, err := hubConfig(env, reference, "", quiet)
	if err != nil {
		return "", err
	}
	file := ref.Path
	var only []string
	if file == "" {
		r, err := hub.Pull(ctx, cfg, reference, hub.Options{Include: []string{"*.safetensors"}, DryRun: true})
		if err != nil {
			return "", err
		}
		names := make([]string, len(r.Files))
		for i, f := range r.Files {
			names[i] = f.Path
		}
		if len(names) != 1 {
			return "", fmt.Errorf("%s has %d safetensors files (%s): name one, as hf://%s/FILE", reference, len(names), strings.Join(names, ", "), ref.Repo)
		}
		file, only = names[0], names
	}
	bars := newTransfers(env, quiet)
	r, err := hub.Pull(ctx, cfg, reference, hub.Options{Include: only, Progress: bars.update})
	bars.close()
	if err != nil {
		return "", resumable(ctx, err)
	}
	return filepath.Join(r.Dir, filepath.FromSlash(file)), nil
}
