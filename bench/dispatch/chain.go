package dispatch

import (
	"context"
	"errors"

	"github.com/gesso-go/gesso/backend"
	"github.com/gesso-go/gesso/backend/pjrt"
	"github.com/gesso-go/gesso/backend/pjrt/capi"
	"github.com/gesso-go/gesso/graph"
	"github.com/gesso-go/gesso/tensor"
)

// twice is the program of one operation that chains are made of.
func twice(t graph.Type) (*graph.Graph, error) {
	x := graph.NewInput(0, t)
	y, err := graph.Make(graph.Add, nil, x, x)
	if err != nil {
		return nil, err
	}
	return graph.New("add", []*graph.Node{x}, []*graph.Node{y})
}

// backendChain is a chain on the client, without the engine.
func backendChain(client backend.Client, device int, a *tensor.Array) (Chain, error) {
	g, err := twice(graph.Type{DType: a.DType, Shape: a.Shape})
	if err != nil {
		return nil, err
	}
	exe, err := client.Compile(context.Background(), g, device)
	if err != nil {
		return nil, err
	}
	return func(n int) error {
		x, err := client.Upload(a, device)
		if err != nil {
			return err
		}
		for range n {
			out, _, err := exe.Run([]backend.Buffer{x})
			if err != nil {
				return err
			}
			x.Free()
			x = out[0]
		}
		defer x.Free()
		return x.Wait()
	}, nil
}

// Plugin makes a chain on the plugin at path alone: execute, free the argument, no waiting. close ends it.
func Plugin(path string) (chain Chain, close func() error, err error) {
	p, err := pjrt.Load(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := p.NewClient(capi.ClientOptions{})
	if err != nil {
		return nil, nil, err
	}
	devices := c.AddressableDevices()
	if len(devices) == 0 {
		return nil, nil, errors.Join(errors.New("the plugin has no device"), c.Close())
	}
	g, err := twice(graph.Type{DType: tensor.F32, Shape: tensor.Shape{4}})
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	prog, err := pjrt.Options{}.Program(g)
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	exe, err := c.Compile(prog.Text, capi.FormatMLIR, prog.Options)
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	host := make([]byte, 16)
	run := func(n int) error {
		x, done, err := c.BufferFromHost(capi.HostBuffer{Data: host, Type: capi.F32, Dims: []int64{4}, Device: devices[0]})
		if err != nil {
			return err
		}
		done.Close()
		for range n {
			out, events, err := exe.Execute([][]*capi.Buffer{{x}}, capi.ExecuteOptions{})
			if err != nil {
				return err
			}
			events[0].Close()
			x.Close()
			x = out[0][0]
		}
		defer x.Close()
		ready, err := x.ReadyEvent()
		if err != nil {
			return err
		}
		defer ready.Close()
		return ready.Await()
	}
	return run, func() error { return errors.Join(exe.Close(), c.Close()) }, nil
}
