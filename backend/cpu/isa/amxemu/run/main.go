//go:build linux && amd64

// Command run runs a program of this module with AMX emulated: see package amxemu.
//
//	run PROGRAM [ARGUMENT …]
package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: run PROGRAM [ARGUMENT …]")
		os.Exit(2)
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	res, err := amxemu.Run(path, os.Args[2:], &os.ProcAttr{Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "amxemu:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "amxemu: %d instructions\n", res.Instructions)
	os.Exit(res.ExitCode)
}
