package gemm

var vector512 = &vectorOps{
	lanes: 16,
	transpose: [3]func(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int){
		transposeWords_512, transposeBF16_512, transposeF16_512},
	rows: [3]func(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int){
		rowsWords_512, rowsBF16_512, rowsF16_512},
	pairs:     rowsPairs_512,
	widenBF16: widenBF16_512, widenF16: widenF16_512,
	narrowBF16: narrowBF16_512, narrowF16: narrowF16_512,
	maxAbs: maxAbs_512, maxAbsBF16: maxAbsBF16_512, quantize: quantize_512, quantizeBF16: quantizeBF16_512,
	dequantize: dequantize_512,
}

var vector256 = &vectorOps{
	lanes: 8,
	transpose: [3]func(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int){
		transposeWords_256, transposeBF16_256, transposeF16_256},
	rows: [3]func(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int){
		rowsWords_256, rowsBF16_256, rowsF16_256},
	pairs:     rowsPairs_256,
	widenBF16: widenBF16_256, widenF16: widenF16_256,
	narrowBF16: narrowBF16_256, narrowF16: narrowF16_256,
	maxAbs: maxAbs_256, maxAbsBF16: maxAbsBF16_256, quantize: quantize_256, quantizeBF16: quantizeBF16_256,
	dequantize: dequantize_256,
}

//go:noescape
func transposeWords_512(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsWords_512(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func transposeBF16_512(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsBF16_512(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func transposeF16_512(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsF16_512(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func rowsPairs_512(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func widenBF16_512(dst *float32, src *uint16, blocks int)

//go:noescape
func narrowBF16_512(dst *uint16, src *float32, blocks int)

//go:noescape
func widenF16_512(dst *float32, src *uint16, blocks int)

//go:noescape
func narrowF16_512(dst *uint16, src *float32, blocks int)

//go:noescape
func transposeWords_256(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsWords_256(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func transposeBF16_256(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsBF16_256(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func transposeF16_256(dst *uint32, width uintptr, src *byte, stride uintptr, cols, blocks int)

//go:noescape
func rowsF16_256(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func rowsPairs_256(dst *uint32, dstStride uintptr, src *byte, stride uintptr, n int)

//go:noescape
func widenBF16_256(dst *float32, src *uint16, blocks int)

//go:noescape
func narrowBF16_256(dst *uint16, src *float32, blocks int)

//go:noescape
func widenF16_256(dst *float32, src *uint16, blocks int)

//go:noescape
func narrowF16_256(dst *uint16, src *float32, blocks int)

//go:noescape
func maxAbs_512(src *float32, blocks int) uint32

//go:noescape
func maxAbsBF16_512(src *uint16, blocks int) uint32

//go:noescape
func quantizeBF16_512(dst *byte, src *uint16, blocks int, scale float32, flip uint32)

//go:noescape
func quantize_512(dst *byte, src *float32, blocks int, scale float32, flip uint32)

//go:noescape
func dequantize_512(c *float32, offset *int32, scale *float32, blocks int, row float32, next *float32)

//go:noescape
func maxAbs_256(src *float32, blocks int) uint32

//go:noescape
func maxAbsBF16_256(src *uint16, blocks int) uint32

//go:noescape
func quantizeBF16_256(dst *byte, src *uint16, blocks int, scale float32, flip uint32)

//go:noescape
func quantize_256(dst *byte, src *float32, blocks int, scale float32, flip uint32)

//go:noescape
func dequantize_256(c *float32, offset *int32, scale *float32, blocks int, row float32, next *float32)
