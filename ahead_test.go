package durable_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A worker whose runs end quickly prefetches more runs than it has slots, executes at most as many as it has slots, and leaves
// runs that would wait for long to other workers.
func TestRunsArePrefetched(t *testing.T) {
	const slots, long = 2, 10
	s := openStore(t)
	var now, most atomic.Int64
	stuck, let := make(chan struct{}, long), make(chan struct{})
	here := durable.Define("w", func(_ *durable.Ctx, blocks bool) (int, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if blocks {
			stuck <- struct{}{}
			<-let
		}
		return 1, nil
	})
	there := durable.Define("w", func(*durable.Ctx, bool) (int, error) { return 2, nil })
	client := engineOn(t, s)
	start := func(n int, blocks bool) []*durable.Run[int] {
		items := make([]durable.StartItem[bool], n)
		for i := range items {
			items[i].Input = blocks
		}
		runs, err := here.StartMany(within(t), client, items)
		if err != nil {
			t.Fatal(err)
		}
		return runs
	}
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{here}, Concurrency: slots, Lease: time.Minute})
	running(t, e)
	for patience := within(t); e.Stats().RunsInMemory <= slots; runtime.Gosched() {
		if patience.Err() != nil {
			t.Fatalf("nothing was claimed ahead: %+v", e.Stats())
		}
		if stats := e.Stats(); stats.ClaimedRuns-stats.EndedExecutions < 50 {
			start(100, false)
		}
	}
	blocked := start(long, true)
	for range slots {
		<-stuck
	}
	running(t, engineOn(t, s, there))
	ended := make(chan int, long)
	for _, run := range blocked {
		go func() {
			got, err := run.Result(within(t))
			if err != nil {
				t.Error(err)
			}
			ended <- got
		}()
	}
	for range long - slots {
		if got := <-ended; got != 2 {
			t.Errorf("a run that was to wait returned %d, so it was not executed elsewhere", got)
		}
	}
	close(let)
	for range slots {
		if got := <-ended; got != 1 {
			t.Errorf("a run that was executed here returned %d", got)
		}
	}
	if got := most.Load(); got > slots {
		t.Errorf("%d runs were executed at once in %d slots", got, slots)
	}
	if lost := e.Stats().LostExecutions; lost > 0 {
		t.Errorf("%d runs were taken over", lost)
	}
}
