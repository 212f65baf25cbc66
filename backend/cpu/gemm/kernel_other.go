//go:build !amd64 && !arm64

package gemm

// kernels is the table of this architecture, in order of preference.
var kernels = []kernel{portable, portableInt8}
