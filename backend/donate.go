package backend

import (
	"fmt"

	"github.com/gesso-go/gesso/graph"
)

// CheckDonated refuses a buffer that a run of g would take over and use as another argument too.
func CheckDonated(g *graph.Graph, args []Buffer) error {
	for _, d := range g.Donated {
		for i, a := range args {
			if i != d && a == args[d] {
				return fmt.Errorf("argument %d is donated, and argument %d is the same buffer", d, i)
			}
		}
	}
	return nil
}

// FreeDonated frees the arguments that a run of g has taken over.
func FreeDonated(g *graph.Graph, args []Buffer) {
	for _, d := range g.Donated {
		args[d].Free()
	}
}
