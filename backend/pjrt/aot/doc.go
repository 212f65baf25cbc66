// Package aot compiles programs for devices that this machine doesn't have. libtpu may abort the process that it compiles
// in, so it is loaded in child processes only: they are this same program, started again. A crash becomes an error that
// names the program.
//
//	func main() {
//		if aot.Main() { // this process is a compiler
//			return
//		}
//		…
//		c := aot.New(aot.Options{Plugin: "libtpu.so", Topology: "v6e:1x1"})
//		defer c.Close()
//		r, err := c.Compile(ctx, program)
package aot
