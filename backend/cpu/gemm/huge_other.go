//go:build !linux

package gemm

func adviseHuge([]uint32) {}
