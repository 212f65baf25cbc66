package nn

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/gesso-go/gesso/engine"
	"github.com/gesso-go/gesso/tensor"
)

// Params supplies the parameters of one component by their checkpoint names.
type Params interface {
	// Names lists every tensor of the checkpoint.
	Names() []string
	// Shape returns the shape of a tensor in the checkpoint.
	Shape(name string) (tensor.Shape, bool)
	// Value returns the parameter as a value of the component's dtype.
	Value(name string) (engine.Value, error)
}

// Quantizer is Params that supplies the weights of some linear layers in 8 bits.
type Quantizer interface {
	Params
	// Quantized returns the weight as i8 and its scale a row as f32, see graph.QuantizedLinearAttr, or false where the
	// layer keeps its dtype.
	Quantized(name string) (weight, scale engine.Value, ok bool, err error)
}

// BindError lists everything that is wrong between a model and a checkpoint.
type BindError struct {
	Component  string
	Missing    []string // expected, but not in the checkpoint
	Unexpected []string // in the checkpoint, but nobody's
	Misshapen  []string // "name: file has [2 3], the configuration needs [3 2]"
}

// shown is how many names of a kind an error line lists.
const shown = 5

// Error lists the first few names of each kind in one line.
func (e *BindError) Error() string {
	var parts []string
	add := func(what string, names []string) {
		if len(names) == 0 {
			return
		}
		list := names
		more := ""
		if len(list) > shown {
			more = fmt.Sprintf(" and %d more", len(list)-shown)
			list = list[:shown]
		}
		parts = append(parts, fmt.Sprintf("%d %s (%s%s)", len(names), what, strings.Join(list, ", "), more))
	}
	add("missing", e.Missing)
	add("unexpected", e.Unexpected)
	add("with a wrong shape", e.Misshapen)
	return fmt.Sprintf("%s: the checkpoint does not fit its configuration: %s", e.Component, strings.Join(parts, "; "))
}

// Bind fills every Param of model, a pointer to a struct, from params, and names its modules below component. Names in
// ignore (exact, or a prefix ending in "*") may be in the checkpoint without being anybody's. A *BindError lists all
// mismatches together.
func Bind(model any, params Params, component string, ignore ...string) error {
	b := &binder{params: params, used: map[string]bool{}, err: &BindError{Component: component}}
	err := b.walk(reflect.ValueOf(model), "", component)
	if err == nil {
		err = b.failed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	for _, n := range params.Names() {
		if !b.used[n] && !ignored(n, ignore) {
			b.err.Unexpected = append(b.err.Unexpected, n)
		}
	}
	sort.Strings(b.err.Unexpected)
	if len(b.err.Missing)+len(b.err.Unexpected)+len(b.err.Misshapen) > 0 {
		return b.err
	}
	return nil
}

func ignored(name string, patterns []string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); name == p || (ok && strings.HasPrefix(name, prefix)) {
			return true
		}
	}
	return false
}

type binder struct {
	params Params
	used   map[string]bool
	err    *BindError
	failed error
}

var paramType = reflect.TypeFor[Param]()

// walk visits v, whose parameters have names that begin with prefix.
func (b *binder) walk(v reflect.Value, prefix, path string) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil // the configuration has no such part
		}
		return b.walk(v.Elem(), prefix, path)
	case reflect.Slice:
		for i := range v.Len() {
			n := strconv.Itoa(i)
			if err := b.walk(v.Index(i), join(prefix, n), join(path, n)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
	default:
		return fmt.Errorf("field %s cannot hold parameters (%s)", path, v.Type())
	}
	if v.Type() == paramType {
		return b.bind(v.Addr().Interface().(*Param), prefix)
	}
	if m, ok := v.Addr().Interface().(interface{ setPath(string) }); ok {
		m.setPath(path)
	}
	if l, ok := v.Addr().Interface().(*Linear); ok {
		defer b.quantize(l, join(prefix, "weight"))
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, ok := f.Tag.Lookup("weight")
		if !ok {
			continue
		}
		if err := b.walk(v.Field(i), join(prefix, tag), join(path, tag)); err != nil {
			return err
		}
	}
	return nil
}

// quantize replaces the weight of a layer that was bound by its 8-bit form, where params has one.
func (b *binder) quantize(l *Linear, name string) {
	q, ok := b.params.(Quantizer)
	if !ok || !l.Weight.Valid() {
		return
	}
	w, scale, ok, err := q.Quantized(name)
	if err != nil && b.failed == nil {
		b.failed = fmt.Errorf("%s: %w", name, err)
	}
	if ok && err == nil {
		l.Weight.Value, l.scale, l.plain = w, scale, l.Weight.DType()
	}
}

func join(prefix, name string) string {
	if prefix == "" || name == "" {
		return prefix + name
	}
	return prefix + "." + name
}

func (b *binder) bind(p *Param, name string) error {
	if p.Expect == nil {
		return nil
	}
	shape, ok := b.params.Shape(name)
	if !ok {
		b.err.Missing = append(b.err.Missing, name)
		return nil
	}
	b.used[name] = true
	if !shape.Equal(p.Expect) {
		b.err.Misshapen = append(b.err.Misshapen, fmt.Sprintf("%s: file has %v, the configuration needs %v", name, shape, p.Expect))
		return nil
	}
	v, err := b.params.Value(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Value = v
	return nil
}
