package durable_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A function whose own code takes long twice, so that its run is released without it, is not stuck: it has returned since. Its run is executed again
// soon, and not only when the wait of its branch is over.
func TestAFunctionThatReturnsLateIsExecutedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		log := new(lines)
		ctx := within(t)
		var executions atomic.Int64
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			c.Go("waits", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never", durable.Within(time.Hour)) })
			if n := int(executions.Add(1)); n <= 2 {
				poll(ctx, func() bool { return strings.Count(log.String(), "does not return although") >= n })
			}
			return 7, nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
		running(t, e)
		read(w.Start(within(t), e, 0, durable.ID("a")))(t)
		if !becomes(t, e, "a", durable.StatusCompleted) {
			info := read(e.Get(within(t), "a"))(t)
			t.Errorf("the run is %s, and wakes at %v", info.Status, info.WakeAt)
		}
	})
}
