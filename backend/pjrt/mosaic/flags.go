package mosaic

// Flags are options of libtpu's compiler for every program. A program's largest weight is not fetched into the chip's own
// memory before the program starts: it would stay there to the end, and leave no room for what goes from one operation to
// the next (a single block of FLUX.1 on v6e: 1.08 GB through the device's memory and 3.6 M cycles with it, 0.83 and 3.3
// without).
func Flags() map[string]any {
	return map[string]any{"xla_msa_max_cross_program_prefetches": 0}
}
