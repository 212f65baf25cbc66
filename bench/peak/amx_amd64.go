package peak

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// tiles is what the AMX loops multiply: four tiles of small bfloat16 numbers. Zeros would be a fifth faster than numbers.
var tiles, tileConfig = func() (data [4096]byte, config [64]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < len(data); i += 2 {
		binary.LittleEndian.PutUint16(data[i:], uint16(math.Float32bits(r.Float32()-0.5)>>16))
	}
	config[0] = 1 // palette
	for t := range 8 {
		binary.LittleEndian.PutUint16(config[16+2*t:], 64)
		config[48+t] = 16
	}
	return
}()

// amxLoop does rounds of four products of 16×16 sums over 64 bytes.
func amxLoop(perByte float64, f func(rounds int, data, config *byte)) loop {
	return loop{4 * 16 * 16 * 64 * 2 * perByte, func(rounds int) { f(rounds, &tiles[0], &tileConfig[0]) }}
}

//go:noescape
func amxBF16(rounds int, data, config *byte)

//go:noescape
func amxI8(rounds int, data, config *byte)
