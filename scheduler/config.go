package scheduler

import (
	"encoding/json"
	"fmt"
	"math"
)

// object is a JSON object whose values are decoded one by one, so that an error names its key. An absent or null key
// leaves the default in place.
type object map[string]json.RawMessage

func (o object) decode(key, expected string, into any) error {
	raw, ok := o[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("key %q is %s, expected %s", key, abridge(raw), expected)
	}
	return nil
}

// abridge keeps a wrong value from filling the screen.
func abridge(raw []byte) string {
	if r := []rune(string(raw)); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return string(raw)
}

func (o object) text(key string, v *string) error    { return o.decode(key, "a string", v) }
func (o object) flag(key string, v *bool) error      { return o.decode(key, "true or false", v) }
func (o object) number(key string, v *float64) error { return o.decode(key, "a number", v) }

// optional decodes a number that may be absent.
func (o object) optional(key string, v **float64) error { return o.decode(key, "a number or null", v) }

// count decodes a whole number, which Python may have written as 1000.0.
func (o object) count(key string, v *int) error {
	f := float64(*v)
	if err := o.decode(key, "a whole number", &f); err != nil {
		return err
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return fmt.Errorf("key %q is %s, expected a whole number", key, abridge(o[key]))
	}
	*v = int(f)
	return nil
}
