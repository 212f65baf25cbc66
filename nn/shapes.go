package nn

import (
	"reflect"
	"strconv"

	"github.com/gesso-go/gesso/tensor"
)

// Shapes returns the parameters that a model, a pointer to a struct, expects in a checkpoint: shapes by name.
func Shapes(model any) map[string]tensor.Shape {
	shapes := map[string]tensor.Shape{}
	walkTagged(reflect.ValueOf(model), "", func(name string, v reflect.Value) bool {
		if v.Type() != paramType {
			return true
		}
		if s := v.Interface().(Param).Expect; s != nil {
			shapes[name] = s
		}
		return false
	})
	return shapes
}

// walkTagged visits the structs of a model by their names in a checkpoint; visit says whether to go on inside.
func walkTagged(v reflect.Value, name string, visit func(name string, v reflect.Value) bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkTagged(v.Elem(), name, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkTagged(v.Index(i), join(name, strconv.Itoa(i)), visit)
		}
	case reflect.Struct:
		if !visit(name, v) {
			return
		}
		for i := range v.NumField() {
			if tag, ok := v.Type().Field(i).Tag.Lookup("weight"); ok {
				walkTagged(v.Field(i), join(name, tag), visit)
			}
		}
	}
}
