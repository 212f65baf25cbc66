package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Versions that requirements.txt leaves to the commands below.
const (
	torch = "torch==2.15.0"
	sdCPP = "stable-diffusion-cpp-python==0.4.7"
)

// install makes a virtual environment with the peers, unless it is there, and returns its Python.
//
// PyTorch's wheel is a CUDA build whose CUDA libraries are further wheels of several gigabytes. A processor never calls
// them, so they are left out and stand-ins take their place (demo/torch_stubs.py). stable-diffusion.cpp is compiled for
// this machine; where that fails its row says so.
func install(ctx context.Context, venv string) (string, error) {
	python, err := filepath.Abs(filepath.Join(venv, "bin", "python"))
	if err != nil {
		return "", err
	}
	done := filepath.Join(venv, "installed")
	if _, err := os.Stat(done); err == nil {
		return python, nil
	}
	step := func(program string, args ...string) error {
		fmt.Fprintln(os.Stderr, "+", program, args)
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %v: %w", program, args, err)
		}
		return nil
	}
	for _, c := range [][]string{
		{"python3", "-m", "venv", venv},
		{python, "-m", "pip", "install", "-q", "--no-deps", torch},
		{python, "-m", "pip", "install", "-q", "-r", filepath.Join("bench", "peers", "requirements.txt")},
		{python, filepath.Join("demo", "torch_stubs.py")},
	} {
		if err := step(c[0], c[1:]...); err != nil {
			return "", err
		}
	}
	if err := step(python, "-m", "pip", "install", "-q", "--no-deps", sdCPP); err != nil {
		fmt.Fprintln(os.Stderr, "stable-diffusion.cpp will be reported as failed:", err)
	}
	return python, os.WriteFile(done, nil, 0o644)
}
