package durable_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable"
)

// The loop receives whichever of two signals comes first. With KeepLosers the listener that did not win continues and takes part
// in the next choice, so that no signal is lost. The loop starts only the winner again.
func ExampleAny_selectorLoop() {
	store, remove := temporary()
	defer remove()
	loop := durable.Define("loop", func(c *durable.Ctx, wanted int) (got []string, err error) {
		names := []string{"order", "refund"}
		listen := func(i, round int) *durable.Future[string] {
			return c.Go(fmt.Sprint(names[i], "-", round), func(c *durable.Ctx) (string, error) {
				return c.Receive[string](names[i]) // the branch makes no further call: the loop handles the signal
			})
		}
		listeners := []*durable.Future[string]{listen(0, 0), listen(1, 0)}
		for round := 1; ; round++ {
			i, v, err := durable.Any(c, fmt.Sprint("next-", round), durable.KeepLosers, listeners...)
			if err != nil {
				return nil, err
			}
			if got = append(got, v); len(got) == wanted {
				slices.Sort(got)
				return got, nil
			}
			listeners[i] = listen(i, round)
		}
	})
	e := newEngine(store, loop)
	ctx := context.Background()
	run, err := loop.Start(ctx, e, 4, durable.ID("loop"))
	if err != nil {
		panic(err)
	}
	for _, n := range []string{"1", "2"} {
		if err := e.Signal(ctx, "loop", "order", "order "+n); err != nil {
			panic(err)
		}
		if err := e.Signal(ctx, "loop", "refund", "refund "+n); err != nil {
			panic(err)
		}
	}
	fmt.Println(loop.Call(ctx, e, 4, durable.ID(run.ID())))
	// Output: [order 1 order 2 refund 1 refund 2] <nil>
}
