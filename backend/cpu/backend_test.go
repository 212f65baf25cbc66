package cpu_test

import (
	"testing"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/backendtest"
	"github.com/gesso-go/gesso/backend/cpu"
	"github.com/gesso-go/gesso/backend/cpu/isa"
)

// TestBackend runs the table that all backends pass at every level that this machine has.
func TestBackend(t *testing.T) {
	for _, level := range isa.Available() {
		t.Run(level.String(), func(t *testing.T) {
			open := func(t *testing.T) backend.Client {
				c, err := cpu.New(cpu.Options{ISA: level.String(), Threads: 3})
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			backendtest.Run(t, open)
			backendtest.RunExact(t, open)
		})
	}
}

// TestThreads: the number of threads never changes a bit.
func TestThreads(t *testing.T) {
	open := func(threads int) backendtest.NewClient {
		return func(t *testing.T) backend.Client {
			c, err := cpu.New(cpu.Options{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	backendtest.RunSame(t, open(1), open(4))
}
