package amxtest

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gesso-go/gesso/backend/cpu/gemm"
	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/backend/cpu/isa/amxemu"
)

// TestMistake: a tile that is read from where no memory is ends the program, which has several threads, and is what Run reports.
func TestMistake(t *testing.T) {
	if os.Getenv(OnlyAMX) != "" {
		for range 8 {
			go func() {
				for {
					time.Sleep(time.Microsecond)
				}
			}()
		}
		time.Sleep(50 * time.Millisecond)
		gemm.MultiplyTiles(1, 16, &make([]uint32, 16)[0], 64, nil, &make([]float32, 32)[0], 128, 0)
		return
	}
	levels := isa.Available()
	if slices.Contains(levels, isa.AMX) || !slices.Contains(levels, isa.AVX512BF16) {
		t.Skip("AMX isn't emulated here")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	env := append(os.Environ(), OnlyAMX+"=1")
	_, err = amxemu.Run(exe, []string{"-test.run", "^TestMistake$"}, &os.ProcAttr{Env: env, Files: []*os.File{null, null, null}})
	if err == nil || !strings.Contains(err.Error(), "TILELOADD: read 64 bytes at 0x0") {
		t.Errorf("Run reports %v", err)
	}
}
