// Package plan says what a generation needs on devices that this machine doesn't have: which programs it runs, what the
// compiler says of each, whether it fits the devices' memory, and about how long it takes. Nothing is computed and no
// weight is read: a pipeline runs once on a client that only notes the programs.
//
//	t, err := plan.Trace(ctx, load, plan.Request{Height: 1024, Width: 1024, Steps: 4})
//	r, err := plan.Compile(ctx, t, target, plan.Options{})
//	report := plan.Judge(t, r, target)
package plan
