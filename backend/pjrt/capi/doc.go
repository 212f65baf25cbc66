// Package capi binds the PJRT C API, the interface of XLA's compiled-program runtimes, without cgo.
//
// A [Plugin] is a shared library that exports GetPjrtApi (libtpu.so, XLA's CPU and CUDA plugins). From it come a
// [Client] with its devices, a [LoadedExecutable] from StableHLO text, a [Buffer] on a device and an [Event]:
//
//	p, err := capi.Load("libpjrt_cpu.so")
//	err = p.Initialize()
//	c, err := p.NewClient(capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(8)}})
//	defer c.Close()
//	exe, err := c.Compile([]byte(text), capi.FormatMLIR, capi.CompileOptions{})
//	defer exe.Close()
//	x, done, err := c.BufferFromHost(capi.HostBuffer{Data: b, Type: capi.F32, Dims: []int64{4}, Device: c.AddressableDevices()[0]})
//	out, events, err := exe.Execute([][]*capi.Buffer{{x}}, capi.ExecuteOptions{})
//
// # Versions
//
// The API's table of functions and its argument structs only grow within major version 0: new functions and fields are
// appended, and every struct carries its size. One layout therefore serves all plugins: a function beyond the plugin's
// table gives [Unimplemented], a field that an older plugin doesn't know stays zero. The oldest plugin accepted is
// [MinMinor]; layouts follow pjrt_c_api.h 0.81 and the fields appended up to 0.114.
//
// # Lifetimes
//
// What a method returns with a Close method belongs to the caller, who must close it; nothing relies on finalisers.
// Close may be called twice, and other methods of a closed object return an error. A client must outlive what came from
// it. Devices, memories and device descriptions belong to their client or topology. Plugins stay loaded until the process
// ends, as their threads do.
//
// All methods may be called from several goroutines. Close must not run beside another method of the same object.
package capi
