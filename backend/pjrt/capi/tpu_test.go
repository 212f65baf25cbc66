package capi_test

import (
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

// Programs are compiled for TPUs that this machine doesn't have.
func TestTPUTopology(t *testing.T) {
	p := loadPlugin(t, plugintest.TPU(t))
	if _, err := p.NewTopology("v6e-8", nil); err == nil {
		t.Error("a name of another form was accepted")
	}
	top, err := p.NewTopology("v6e:2x2", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	ds, err := top.Devices()
	if err != nil || len(ds) != 4 {
		t.Fatalf("%d devices, %v", len(ds), err)
	}
	if kind, err := ds[0].Kind(); err != nil || kind != "TPU v6 lite" {
		t.Errorf("kind %q, %v", kind, err)
	}
	a, err := ds[3].Attributes()
	if limit, _ := a["device_memory_bytes_limit"].(int64); err != nil || limit < 30e9 {
		t.Errorf("attributes %v, %v", a, err)
	}
	data, err := top.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.LoadTopology(data)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	text := strings.ReplaceAll(double4, "4xf32", "1024x1024xbf16")
	e, err := again.Compile([]byte(text), capi.FormatMLIR, capi.CompileOptions{Devices: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if s, err := e.MemoryStats(); err != nil || s.Arguments != 2<<20 || s.Peak < 4<<20 || s.TotalAllocation == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if c, err := e.CostAnalysis(); err != nil || c["flops"] != float32(1<<20) {
		t.Errorf("cost %v, %v", c, err)
	}
	if b, err := e.Serialize(); err != nil || len(b) < 1000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
