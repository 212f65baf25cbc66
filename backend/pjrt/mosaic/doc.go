// Package mosaic writes kernels for TPUs: attention, and the norm and rotation of queries and keys before it.
//
//	o := mosaic.Options(mosaic.V6e)   // how stablehlo.Text writes programs for that generation of chips
//	text, err := stablehlo.Text(g, o)
//
// XLA on a TPU has no attention of its own: written in plain operations, it reads and writes the whole matrix of scores.
// libtpu takes kernels as Mosaic modules inside a custom call, and accepts the module as MLIR text, so a kernel is a text
// that this package prints. The form is the versioned one (operations in the namespace stable_mosaic), in a version that
// libtpu releases of a whole year understand.
//
// Operands are token-major, (tokens, heads·head size), as projections leave them; a block of one head is a column that is
// aligned to the chip's tiles, so there is no transpose anywhere. A kernel's body and the types of its operands come from
// one call: a body for other shapes than the operands' compiles without an error, and reads rows that don't exist.
//
// What a kernel doesn't cover is written as plain operations over groups of heads and blocks of queries, small enough for
// their scores to stay in the chip's own memory.
//
// Differences from the definition of the operations in package graph, all within the rounding of bfloat16: the
// probabilities are rounded to bfloat16 before they multiply the values; a query is rounded once after norm and rotation,
// not after each, and is scaled before that rounding, not after it.
package mosaic
