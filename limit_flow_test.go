package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// askCounter counts what one process asks of the lines.
type askCounter struct {
	durable.Store
	asks, calls atomic.Int64
}

func (s *askCounter) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	s.asks.Add(int64(len(b.Requests)))
	s.calls.Add(1)
	return s.Store.GrantAndReturnPermits(ctx, b)
}

// completes waits for the results of runs, and returns how long that took.
func completes[O any](t *testing.T, runs []*durable.Run[O]) time.Duration {
	t.Helper()
	began := time.Now()
	for _, run := range runs {
		if _, err := run.Result(patience(t)); err != nil {
			t.Fatalf("run %s: %v", run.ID(), err)
		}
	}
	return time.Since(began)
}

// briefly is a workflow whose step needs a permit and returns at once.
func briefly(limit *durable.Limit) *durable.Workflow[int, int] {
	return durable.Define("brief", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("call", func(context.Context) (int, error) { return n, nil }, limit.Permit())
	})
}

// Steps that wait for each other in two processes go on as soon as their permit is free, whether they are in
// memory or not: no step waits until somebody looks at the line.
func TestLineGoesOnAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := briefly(durable.NewLimit("one", durable.Concurrent(1)))
		cfg := durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond}
		one, other := engineWith(t, s, cfg), engineWith(t, s, cfg)
		var runs []*durable.Run[int]
		const n = 60
		for i := range n {
			run, err := w.Start(within(t), one, i)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		running(t, one)
		running(t, other)
		took := completes(t, runs)
		t.Logf("%v for %d permits in turn", took, n)
		if took > n*time.Second/2 { // a line is looked at once a second
			t.Errorf("%d steps in turn took %v: they wait for a look at the line", n, took)
		}
	})
}

// A step that has waited for a place is not delayed when the rate allows it only a moment later.
func TestRateIsUsedUpWithConcurrent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := briefly(durable.NewLimit("both", durable.Concurrent(1), durable.Rate(20, time.Second)))
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		var runs []*durable.Run[int]
		for i := range 41 {
			run, err := w.Start(within(t), e, i)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		running(t, e)
		took := completes(t, runs)
		t.Logf("%v for 41 permits at 20 a second", took)
		if took > 30*time.Second { // a step that is delayed waits for a second
			t.Errorf("41 steps at 20 a second took %v, want about 2s", took)
		}
	})
}

// The steps of one run that wait in one line do not all ask whenever one of them may go on.
func TestManyStepsOfOneRunAskLittle(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 400
		limit := durable.NewLimit("five", durable.Concurrent(5))
		w := durable.Define("many", func(c *durable.Ctx, _ int) (int, error) {
			items := make([]int, n)
			_, err := c.Map("items", items, func(context.Context, int) (int, error) {
				realtime.Pass(5*time.Millisecond, "each permit is given back in a transaction of its own")
				return 0, nil
			}, durable.ItemOptions(limit.Permit()), durable.Parallel(n))
			return 0, err
		})
		counted := &askCounter{Store: s}
		e := engineWith(t, counted, durable.Config{Workflows: []durable.Definition{w}})
		run, err := w.Start(within(t), e, 0)
		if err != nil {
			t.Fatal(err)
		}
		running(t, e)
		took := completes(t, []*durable.Run[int]{run})
		t.Logf("%v, %d asks, %d calls", took, counted.asks.Load(), counted.calls.Load())
		if asks := counted.asks.Load(); asks > 5*n {
			t.Errorf("%d steps asked %d times", n, asks)
		}
	})
}
