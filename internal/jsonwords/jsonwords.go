// Package jsonwords says what is wrong with a JSON document in JSON's own words, not in Go's.
package jsonwords

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Expected names what a document has for a value of type t, such as "a whole number".
func Expected(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "another value"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	}
	return "another value"
}

// Found names a value by its first byte.
func Found(first byte) string {
	switch first {
	case 'n':
		return "null"
	case 't':
		return "true"
	case 'f':
		return "false"
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "a number"
}

// Explain words an error that encoding/json has about data: it names the line, or the key with what it holds and what was
// expected. Other errors, nil among them, stay as they are.
func Explain(data []byte, err error) error {
	var typ *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typ):
		found := typ.Value // of package json: bool, string, number 1.5 …
		switch {
		case found == "bool":
			found = "true or false"
		case strings.HasPrefix(found, "number "):
			found = strings.TrimPrefix(found, "number ")
		default:
			found = Found(map[string]byte{"array": '[', "object": '{', "string": '"'}[found])
		}
		if typ.Field == "" {
			return fmt.Errorf("is %s, expected %s", found, Expected(typ.Type))
		}
		return fmt.Errorf("key %q holds %s, expected %s", typ.Field, found, Expected(typ.Type))
	case errors.As(err, &syntax):
		line := 1 + strings.Count(string(data[:min(int(syntax.Offset), len(data))]), "\n")
		return fmt.Errorf("line %d is not JSON: %w", line, err)
	}
	return err
}
