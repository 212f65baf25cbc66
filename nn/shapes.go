package nn

import (
	"reflect"
	"strconv"

	"github.com/gesso-go/gesso/tensor"
)

// Shapes returns the parameters that a model, a pointer to a struct, expects in a checkpoint: shapes by name.
func Shapes(model any) map[string]tensor.Shape {
	shapes := map[string]tensor.Shape{}
	collect(reflect.ValueOf(model), "", shapes)
	return shapes
}

func collect(v reflect.Value, name string, shapes map[string]tensor.Shape) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			collect(v.Elem(), name, shapes)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), join(name, strconv.Itoa(i)), shapes)
		}
	case reflect.Struct:
		if v.Type() == paramType {
			if s := v.Interface().(Param).Expect; s != nil {
				shapes[name] = s
			}
			return
		}
		for i := range v.NumField() {
			if tag, ok := v.Type().Field(i).Tag.Lookup("weight"); ok {
				collect(v.Field(i), join(name, tag), shapes)
			}
		}
	}
}
