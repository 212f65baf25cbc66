package capi

// CompiledMemoryStats is in bytes, for one device. What an older plugin doesn't tell is zero.
type CompiledMemoryStats struct {
	GeneratedCode, Arguments, Outputs, Alias, Temporary                     int64
	HostGeneratedCode, HostArguments, HostOutputs, HostAlias, HostTemporary int64

	Peak                   int64 // not comparable: XLA's CPU leaves temporaries out, libtpu counts what lies in the chip's own memory too
	Total, TotalAllocation int64 // since 0.90
	Indefinite             int64 // since 0.104
	PeakUnpadded           int64 // since 0.104
}

// MemoryStats returns what one execution needs.
func (e *Executable) MemoryStats() (CompiledMemoryStats, error) {
	h, err := e.get(slotExecutableMemoryStats)
	if err != nil {
		return CompiledMemoryStats{}, err
	}
	a := &memoryStatsArgs{exe: h}
	err = call(e.p, slotExecutableMemoryStats, a)
	return a.stats, err
}

// CostAnalysis returns the compiler's estimates, such as flops and "bytes accessed" (float32). Loop bodies count once.
func (e *Executable) CostAnalysis() (map[string]any, error) {
	h, err := e.get(slotExecutableCostAnalysis)
	if err != nil {
		return nil, err
	}
	a := &countFirstArgs{h: h}
	if err := call(e.p, slotExecutableCostAnalysis, a); err != nil {
		return nil, err
	}
	return readNamed(a.p, a.n), nil
}
