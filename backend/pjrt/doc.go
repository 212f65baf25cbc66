// Package pjrt runs programs on any PJRT plugin: TPUs through libtpu, NVIDIA GPUs and plain processors through XLA.
//
//	c, err := pjrt.New("libpjrt_cpu.so", pjrt.Options{Name: "xla-cpu"})
//	exe, err := c.Compile(ctx, g, 0)
//	out, done, err := exe.Run([]backend.Buffer{x})
//
// A graph goes to the plugin as StableHLO text (package stablehlo), through our own binding (package capi). Which plugins
// there are, and what they need in the environment, is package platform's business.
//
// # Order and errors
//
// Run queues a program and returns. For each device one goroutine hands programs to the plugin in the order of the calls
// (a plugin may run a small one at once, or wait when it has enough to do), and another waits for their ends and keeps the
// first error for Sync. An execution that fails for its argument's failure takes over the argument's error, so that one
// mistake has one text.
//
// What doesn't fit a device is an [OutOfMemory], which names the program, what it needs, what was free, and what would fit.
//
// # Programs
//
// With Options.Cache a program is compiled once on a machine (package diskcache): the key is the program's text, the
// compiler's options, the plugin's version and the kind of devices. A program of one operation, as strict mode makes, is
// compiled with less effort. On processors XLA is told to keep NaN in maxima, which it forgets by itself.
//
// # Memory
//
// A buffer's memory goes back to the plugin when Free is called or when the collector finds the buffer unreachable; the
// plugin keeps it until the programs issued before have used it. Because the collector doesn't see a device's memory, the
// client asks for a collection when the bytes of results have grown by more than 64 MB, and by more than half, over their
// lowest point since the last one. Results of executions under way take at most Options.InFlight bytes: the queue waits
// beyond that.
package pjrt
