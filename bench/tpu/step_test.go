package main

import (
	"errors"
	"testing"

	"github.com/gesso-go/gesso/backend/pjrt/aot"
	"github.com/gesso-go/gesso/backend/pjrt/hlo"
)

func TestStep(t *testing.T) {
	var s step
	r := &result{kernels: []kernel{{"a", 7, true}, {"b", 2, false}, {"c", 3, false}}, figures: aot.Figures{Cost: &hlo.Cost{HBM: 100, Cycles: 20}}}
	s.add(r, 19)
	s.add(r, 0.25)
	s.add(&result{err: errors.New("no")}, 2)
	if want := (step{programs: 19.25, hbm: 1925, cycles: 385, attention: 134.75, others: 96.25, missing: 2}); s != want {
		t.Errorf("%+v, expected %+v", s, want)
	}
}
