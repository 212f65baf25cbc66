package amxemu

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// bytesMemory is memory from address 0x1000 on.
type bytesMemory []byte

func (m bytesMemory) at(addr uint64, n int) ([]byte, error) {
	if addr < 0x1000 || addr-0x1000+uint64(n) > uint64(len(m)) {
		return nil, errors.New("outside of memory")
	}
	return m[addr-0x1000:][:n], nil
}

func (m bytesMemory) Read(addr uint64, dst []byte) error {
	b, err := m.at(addr, len(dst))
	copy(dst, b)
	return err
}

func (m bytesMemory) Write(addr uint64, src []byte) error {
	b, err := m.at(addr, len(src))
	copy(b, src)
	return err
}

// The encodings are those of GNU as.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want instruction
	}{
		{[]byte{0xc4, 0xe2, 0x78, 0x49, 0x00}, instruction{op: opConfig, length: 5, base: 0, index: -1}},
		{[]byte{0xc4, 0xe2, 0x78, 0x49, 0xc0}, instruction{op: opRelease, length: 5}},
		{[]byte{0xc4, 0xe2, 0x7b, 0x49, 0xd8}, instruction{op: opZero, length: 5, dst: 3}},
		{[]byte{0xc4, 0x82, 0x7b, 0x4b, 0x5c, 0x05, 0x40}, instruction{op: opLoad, length: 7, dst: 3, base: 13, index: 8, disp: 64}},
		{[]byte{0xc4, 0x82, 0x79, 0x4b, 0x64, 0x1e, 0x00}, instruction{op: opLoadT1, length: 7, dst: 4, base: 14, index: 11}},
		{[]byte{0xc4, 0xe2, 0x7a, 0x4b, 0x84, 0x16, 0x00, 0x01, 0x00, 0x00}, instruction{op: opStore, length: 10, base: 6, index: 2, disp: 256}},
		{[]byte{0xc4, 0xe2, 0x4a, 0x5c, 0xc4}, instruction{op: opBF16, length: 5, dst: 0, a: 4, b: 6}},
		{[]byte{0xc4, 0xe2, 0x43, 0x5e, 0xdd}, instruction{op: opSSD, length: 5, dst: 3, a: 5, b: 7}},
		{[]byte{0xc4, 0xe2, 0x41, 0x5e, 0xdd}, instruction{op: opUSD, length: 5, dst: 3, a: 5, b: 7}},
	} {
		got, err := decode(c.code)
		if err != nil || got != c.want {
			t.Errorf("% x: %+v, %v; want %+v", c.code, got, err, c.want)
		}
	}
	for _, code := range [][]byte{{}, {0xc4}, {0x0f, 0x0b, 0, 0, 0, 0}, {0xc4, 0xe2, 0x79, 0x18, 0x00, 0, 0}} {
		if _, err := decode(code); !errors.Is(err, ErrNotAMX) {
			t.Errorf("% x: %v, want ErrNotAMX", code, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0xc4, 0x82, 0x7b, 0x4b, 0x5c, 0x05, 0x40})
	f.Add([]byte{0xc4, 0xe2, 0x7a, 0x4b, 0x84, 0x16, 0x00, 0x01, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, code []byte) {
		if in, err := decode(code); err == nil && (in.length < 5 || in.length > len(code)) {
			t.Fatalf("% x: length %d", code, in.length)
		}
	})
}

// configured returns a machine whose tile 0 is rows×16 words, 1 is rows×k words and 2 is k×16 words.
func configured(t *testing.T, rows, k int) *Machine {
	t.Helper()
	mem := make(bytesMemory, 64)
	mem[0] = 1
	for i, s := range [][2]int{{rows, 64}, {rows, 4 * k}, {k, 64}} {
		binary.LittleEndian.PutUint16(mem[16+2*i:], uint16(s[1]))
		mem[48+i] = byte(s[0])
	}
	m := &Machine{}
	if n, err := m.Step([]byte{0xc4, 0xe2, 0x78, 0x49, 0x00}, func(int) uint64 { return 0x1000 }, mem); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	return m
}

func put(row []byte, at int, v ...float32) {
	for i, x := range v {
		binary.LittleEndian.PutUint16(row[2*(at+i):], uint16(math.Float32bits(x)>>16))
	}
}

func TestDotBF16(t *testing.T) {
	m := configured(t, 2, 2)
	// Row 1 of A times column 3 of B; the even and the odd elements are summed apart.
	put(m.tile[1][1][:], 0, 1.5, 2, -3, 0.25)
	put(m.tile[2][0][:], 6, 2, 4)
	put(m.tile[2][1][:], 6, 8, 16)
	binary.LittleEndian.PutUint32(m.tile[0][1][12:], math.Float32bits(100))
	// Row 0: a product that is subnormal counts for nothing, and neither does a subnormal operand.
	put(m.tile[1][0][:], 0, 0x1p-100, 0x1p-130)
	put(m.tile[2][0][:], 0, 0x1p-40, 0x1p30)
	if _, err := m.Step([]byte{0xc4, 0xe2, 0x6a, 0x5c, 0xc1}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(m.tile[0][1][12:])); got != 100+(3-24)+(8+4) {
		t.Errorf("got %v", got)
	}
	if got := binary.LittleEndian.Uint32(m.tile[0][0][:]); got != 0 {
		t.Errorf("subnormal numbers: %#x, want 0", got)
	}
}

// The even sum is rounded before the odd one is added to it, and both before C.
func TestDotBF16RoundsInOrder(t *testing.T) {
	m := configured(t, 1, 1)
	put(m.tile[1][0][:], 0, 1, 1)
	put(m.tile[2][0][:], 0, 0x1p-24, 0x1p-24)
	binary.LittleEndian.PutUint32(m.tile[0][0][:], math.Float32bits(1))
	if _, err := m.Step([]byte{0xc4, 0xe2, 0x6a, 0x5c, 0xc1}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(m.tile[0][0][:])); got != 1+0x1p-23 {
		t.Errorf("got %v: the halves must be added before they meet C", got)
	}
}

func TestDotBytes(t *testing.T) {
	for _, c := range []struct {
		pp   byte
		want int32
	}{{0x6b, -1*-2 + 127*-128}, {0x69, 255*-2 + 127*-128}, {0x6a, -1*254 + 127*128}, {0x68, 255*254 + 127*128}} {
		m := configured(t, 1, 1)
		copy(m.tile[1][0][:], []byte{0xff, 127})
		copy(m.tile[2][0][:], []byte{0xfe, 0x80})
		if _, err := m.Step([]byte{0xc4, 0xe2, c.pp, 0x5e, 0xc1}, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got := int32(binary.LittleEndian.Uint32(m.tile[0][0][:])); got != c.want {
			t.Errorf("prefix %#x: %d, want %d", c.pp, got, c.want)
		}
	}
}

func TestLoadAndStore(t *testing.T) {
	m := configured(t, 3, 2)
	mem := make(bytesMemory, 1024)
	for i := range mem {
		mem[i] = byte(i)
	}
	regs := func(i int) uint64 { return map[int]uint64{13: 0x1000, 8: 100}[i] }
	if _, err := m.Step([]byte{0xc4, 0x82, 0x7b, 0x4b, 0x4c, 0x05, 0x40}, regs, mem); err != nil { // tile 1: 3 rows of 8 bytes
		t.Fatal(err)
	}
	for r := range 3 {
		if m.tile[1][r][0] != byte(64+100*r) || m.tile[1][r][7] != byte(64+100*r+7) || m.tile[1][r][8] != 0 {
			t.Errorf("row %d: % x", r, m.tile[1][r][:9])
		}
	}
	out := make(bytesMemory, 1024)
	if _, err := m.Step([]byte{0xc4, 0x82, 0x7a, 0x4b, 0x4c, 0x05, 0x00}, regs, out); err != nil {
		t.Fatal(err)
	}
	if out[200] != 8 || out[207] != 15 || out[208] != 0 || out[300] != 0 {
		t.Errorf("stored % x", out[200:209])
	}
}

func TestMistakes(t *testing.T) {
	dot := []byte{0xc4, 0xe2, 0x6a, 0x5c, 0xc1}
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"not configured", func() error { _, err := new(Machine).Step(dot, nil, nil); return err }, "no tile configuration"},
		{"sizes", func() error {
			m := configured(t, 2, 2)
			m.rows[2] = 3
			_, err := m.Step(dot, nil, nil)
			return err
		}, "don't fit"},
		{"the same tile", func() error {
			_, err := configured(t, 2, 2).Step([]byte{0xc4, 0xe2, 0x72, 0x5c, 0xc1}, nil, nil)
			return err
		}, "not different"},
		{"palette", func() error {
			mem := make(bytesMemory, 64)
			mem[0] = 2
			_, err := new(Machine).Step([]byte{0xc4, 0xe2, 0x78, 0x49, 0x00}, func(int) uint64 { return 0x1000 }, mem)
			return err
		}, "palette 2"},
	} {
		if err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
