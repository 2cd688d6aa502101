package durable_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A fork with NewID belongs to the version that has executed the copied calls, whatever the version of the process that forks.
func TestForkBelongsToTheVersionOfTheForkedRun(t *testing.T) {
	for what, c := range map[string]struct {
		opts         []durable.WorkflowOption
		source, fork string
	}{"pinned, by a later version": {[]durable.WorkflowOption{durable.Pinned(0)}, "v1", "v2"}, "by an earlier version": {nil, "v2", "v1"}} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				ctx := within(t)
				lastSeen(t, s, "v1", time.Hour)
				source := twoSteps(c.source, c.opts...)
				stop := atVersion(t, s, c.source, source)
				client := engineWith(t, s, durable.Config{Version: c.source})
				orFail(source.Start(ctx, client, 0, durable.ID("run")))(t)
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				e, _ := works(t, s, c.fork, twoSteps(c.fork, c.opts...))
				orFail(e.Fork(ctx, "run", durable.FromEnd(), durable.NewID("copy")))(t)
				awaitVersionWait(t, e, "copy", c.source)
				if err := e.Signal(ctx, "copy", "go", 1); err != nil {
					t.Fatal(err)
				}
				atVersion(t, s, c.source, source)
				want := c.source + " " + c.source
				if got, err := orFail(source.Handle(ctx, e, "copy"))(t).Result(ctx); got != want || err != nil {
					t.Errorf("the fork was executed by %q, %v; want %q", got, err, want)
				}
			})
		})
	}
}
