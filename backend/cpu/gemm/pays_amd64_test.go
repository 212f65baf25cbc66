package gemm

import (
	"slices"
	"testing"

	"github.com/gesso-go/gesso/backend/cpu/isa"
	"github.com/gesso-go/gesso/tensor"
)

// TestBF16IsWidenedWhereThatIsFaster replaces the measurement, and restores it.
func TestBF16IsWidenedWhereThatIsFaster(t *testing.T) {
	if !slices.Contains(isa.Available(), isa.AVX512BF16) {
		t.Skip("no VDPBF16PS here")
	}
	i := slices.IndexFunc(kernels, func(k kernel) bool { return k.name == "avx512 bf16" })
	old := kernels[i].pays
	defer func() { kernels[i].pays = old }()
	for _, pays := range []bool{true, false} {
		kernels[i].pays = func() bool { return pays }
		k, err := choose(isa.AVX512BF16, tensor.BF16, tensor.BF16)
		if err != nil || (k == &kernels[i]) != pays {
			t.Errorf("pays %v: chose %v (%v)", pays, k.name, err)
		}
	}
	if first := BF16Pays(); first != BF16Pays() {
		t.Error("the measurement is not kept")
	}
}
