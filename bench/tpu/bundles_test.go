package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Three bundles outside, four in the grid's loop, three in the one inside it; one in a second loop inside.
const code = `LB: loop body

     0   :  { %s1 = smov.u32 0 }
   0x1 LB: > { %p1 = scmp.ge.s32.totalorder %s2, 1 }
   0x2   : > { %190 = sbr.rel (%p1) target = $region36  ;;  %s1 = smov.u32 0 }
   0x3 LB: >> { %v1 = vld [vmem:[%s1905_s13] sm:$0xf]  ;;  %p417 = scmp.ge.s32.totalorder %s420_s9, 24 /* loop exit test */ }
   0x3   :  {} /* Start region 1 */
   0x4   : >> { %v2 = vadd.f32 %v1, %v1 }
   0x5 LB: >> { %p418 = scmp.ge.s32.totalorder %s421_s9, 10 /* loop exit test */ }
   0x6 PF: > { %p3 = scmp.ge.s32.totalorder %s2, 2 }
   0x7   : > { %p4 = scmp.ge.s32.totalorder %s14_s15, 18 /* loop exit test */ }
   0x8   :  { %11 = sbr.rel (!%p11_p6) target = $region95 }
   0x9   :  {}
`

func TestCount(t *testing.T) {
	for steps, want := range map[int64]int64{16: 3 + 16*(4+24*3+10), 20: 3 + 18*(4+24*3+10)} {
		if n, err := count(strings.NewReader(code), steps); err != nil || n != want {
			t.Errorf("a grid of %d: %d bundles, %v, expected %d", steps, n, err, want)
		}
	}
	for _, bad := range []string{"", "0x1 LB: > {}\n   0x2   : > {}\n", "Schedule analysis:\n"} {
		if n, err := count(strings.NewReader(bad), 1); err == nil {
			t.Errorf("%q has %d bundles", bad, n)
		}
	}
}

// Kernels of one text are compiled once and counted each; what isn't a kernel doesn't count.
func TestKernels(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	call := func(name, body string) string {
		return "  %" + name + ` = bf16[8]{0} custom-call(%a), custom_call_target="tpu_custom_call", backend_config={"custom_call_config":{"body":"` +
			base64.StdEncoding.EncodeToString([]byte(body)) + `"}}` + "\n"
	}
	const norm, attention = "iteration_bounds = array<i64: 8, 2>", "iteration_bounds = array<i64: 16> stable_mosaic.tpu.matmul"
	write("7-TLP-hlo.txt", call("name.1", norm)+`%c = custom-call(), custom_call_target="ConcatBitcast"`+"\n"+call("name.11", norm)+call("name.2", attention))
	write("8-name.1-01-final_bundles.txt", code)
	write("8-name.1-00-schedule-analysis_final_bundles.txt", "Schedule analysis:\n")
	if list, err := kernels(dir); err == nil || !strings.Contains(err.Error(), "name.2") {
		t.Errorf("a kernel without machine code: %v, %v", list, err)
	}
	write("9-name.2-01-final_bundles.txt", "   0x1   : {}\n")
	list, err := kernels(dir)
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	const n = 3 + 16*(4+24*3+10)
	for i, want := range []kernel{{"name.1", n, false}, {"name.11", n, false}, {"name.2", 1, true}} {
		if list[i] != want {
			t.Errorf("%+v, expected %+v", list[i], want)
		}
	}
}
