package gemm

// MultiplyTiles is C (rows, 32) = A (rows, k) · B (k, 32) by AMX tiles, or C += A·B with acc 1, with float32 sums. Elements of A
// and B are words of two bfloat16 along k, a multiple of 16. B's rows follow each other; those of A and C are lda and ldc bytes
// apart. Only level AMX may call it.
func MultiplyTiles(rows, k int, a *uint32, lda uintptr, b *uint32, c *float32, ldc uintptr, acc int) {
	panelBF16_amx(rows, k, a, lda, b, c, ldc, acc)
}
