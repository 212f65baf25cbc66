package capi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/backend/pjrt/plugintest"
)

const devices = 4

// allReduce sums a tensor<4xf32> over all replicas, or partitions.
func allReduce(spmd bool) string {
	replicas, partitions, channel := devices, 1, ""
	if spmd {
		replicas, partitions = 1, devices
		channel = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, "
	}
	return fmt.Sprintf(`module @ar attributes {mhlo.num_replicas = %d : i32, mhlo.num_partitions = %d : i32} {
  func.func public @main(%%a: tensor<4xf32>) -> tensor<4xf32> {
    %%0 = "stablehlo.all_reduce"(%%a) <{%sreplica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
      ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):
        %%s = stablehlo.add %%x, %%y : tensor<f32>
        stablehlo.return %%s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %%0 : tensor<4xf32>
  }
}`, replicas, partitions, channel)
}

func TestSeveralDevices(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(devices)}})
		for _, p := range []struct {
			name string
			spmd bool
			o    capi.CompileOptions
		}{
			{"replicas", false, capi.CompileOptions{Replicas: devices}},
			{"replicas, assigned", false, capi.CompileOptions{Replicas: devices, Devices: []int{3, 1, 0, 2}}},
			{"partitions", true, capi.CompileOptions{Partitions: devices, SPMD: true, Devices: []int{0, 1, 2, 3}}},
		} {
			t.Run(p.name, func(t *testing.T) {
				e := compile(t, c, allReduce(p.spmd), p.o)
				if len(e.AddressableDevices()) != devices {
					t.Fatalf("the program runs on %d devices", len(e.AddressableDevices()))
				}
				args := make([][]*capi.Buffer, devices)
				for i, d := range e.AddressableDevices() {
					desc, err := d.Description()
					if err != nil {
						t.Fatal(err)
					}
					id, err := desc.ID()
					if err != nil {
						t.Fatal(err)
					}
					args[i] = []*capi.Buffer{put(t, c, id, []float32{1, float32(i), float32(10 * i), -1}, 4)}
				}
				out, done, err := e.Execute(args, capi.ExecuteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for d := range out {
					if err := done[d].Await(); err != nil {
						t.Fatal(err)
					}
					if got := get(t, out[d][0], 4); !slices.Equal(got, []float32{4, 6, 60, -4}) {
						t.Errorf("device %d has %v", d, got)
					}
					out[d][0].Close()
					done[d].Close()
				}
			})
		}
	})
}

// XLA's partitioner splits a product along the axis that is summed over, and so has to communicate itself.
func TestShardy(t *testing.T) {
	text := `module @s attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}`
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(devices)}})
		e := compile(t, c, text, capi.CompileOptions{Partitions: devices, SPMD: true, Shardy: true, Devices: []int{0, 1, 2, 3}})
		args := make([][]*capi.Buffer, devices)
		for d := range args { // A[i][k] = i, B[k][j] = 1: the product is 8i
			a, b := make([]float32, 16), make([]float32, 16)
			for i := range a {
				a[i], b[i] = float32(i/2), 1
			}
			args[d] = []*capi.Buffer{put(t, c, d, a, 8, 2), put(t, c, d, b, 2, 8)}
		}
		out, done, err := e.Execute(args, capi.ExecuteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for d := range out {
			if err := done[d].Await(); err != nil {
				t.Fatal(err)
			}
			for i, v := range get(t, out[d][0], 64) {
				if want := float32(8 * (i / 8)); v != want {
					t.Fatalf("device %d, element %d: %v, expected %v", d, i, v, want)
				}
			}
			out[d][0].Close()
			done[d].Close()
		}
	})
}

func TestTopology(t *testing.T) {
	plugintest.XLACPU(t, func(t *testing.T, path string) {
		c := newClient(t, path, capi.ClientOptions{Options: map[string]any{"cpu_device_count": int64(2)}})
		top, err := c.Topology()
		if err != nil {
			t.Fatal(err)
		}
		defer top.Close()
		if name, err := top.PlatformName(); err != nil || name != "cpu" {
			t.Errorf("platform %q, %v", name, err)
		}
		if ds, err := top.Devices(); err != nil || len(ds) != 2 {
			t.Errorf("%d devices, %v", len(ds), err)
		}
		if _, err := top.Attributes(); err != nil {
			t.Error(err)
		}
		// Only some plugins compile for a topology; those that don't must say so.
		e, err := top.Compile([]byte(double4), capi.FormatMLIR, capi.CompileOptions{})
		if err == nil {
			if n, err := e.NumOutputs(); err != nil || n != 1 {
				t.Errorf("%d outputs, %v", n, err)
			}
			e.Close()
		} else if !strings.HasPrefix(err.Error(), "PJRT_Compile: ") {
			t.Error(err)
		}
	})
}
