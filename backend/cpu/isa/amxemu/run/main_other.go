//go:build !linux || !amd64

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "amxemu: only on linux/amd64")
	os.Exit(1)
}
