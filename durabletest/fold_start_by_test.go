package durabletest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// The time by which a debounced run must begin counts from when the run is due.
func TestStartByOfADebouncedRunCountsFromWhenItIsDue(t *testing.T) {
	for name, queue := range map[string]string{"without settings": durable.DefaultQueue, "with settings": "mail"} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, opts ...durabletest.Option) {
				e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
				e.FreezeClock()
				must(t, e.SetQueue(quickly(t), "mail", durable.QueueSettings{}))
				start := func(in string) *durable.Run[string] {
					run, err := begun.Start(quickly(t), e.Engine, in, durable.InQueue(queue), durable.StartBy(5*time.Second), durable.Debounce("k", 10*time.Second, time.Minute))
					must(t, err)
					return run
				}
				run := start("first")
				e.Advance(6 * time.Second)
				start("last")
				e.Advance(10 * time.Second)
				if got, want := resultOf(t, run), "last 12:00:16"; got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if queue == durable.DefaultQueue {
					return
				}
				must(t, e.PauseQueue(quickly(t), queue, durable.Reason("test")))
				late := start("late")
				e.Advance(10 * time.Second)
				e.Advance(6 * time.Second)
				info, err := e.Get(quickly(t), late.ID())
				must(t, err)
				if got, want := info.EndedAt.Format(time.TimeOnly), "12:00:31"; info.Status != durable.StatusExpired || got != want {
					t.Errorf("a run that waits in a paused queue is %s since %s, want that it expires at %s", info.Status, got, want)
				}
			})
		})
	}
}

// A timeout that was removed while the run waited for its debounce does not come back when the run is due.
func TestATimeoutThatWasRemovedWhileARunIsDebouncedStaysRemoved(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
		e.FreezeClock()
		for _, set := range []time.Duration{0, 30 * time.Second} {
			run, err := begun.Start(quickly(t), e.Engine, "in", durable.Timeout(time.Hour), durable.Debounce("k", 10*time.Second, time.Minute))
			must(t, err)
			must(t, e.SetTimeout(quickly(t), run.ID(), set))
			var want time.Time
			if set > 0 {
				want = e.Now().Add(set)
			}
			e.Advance(10 * time.Second)
			resultOf(t, run)
			info, err := e.Get(quickly(t), run.ID())
			must(t, err)
			if !info.Deadline.Equal(want) {
				t.Errorf("the timeout set to %v: the deadline is %v, want %v", set, info.Deadline, want)
			}
		}
	})
}

// A repair that is refused does not take a paused run from the start key for which it waits.
func TestARefusedRepairOfADebouncedRunChangesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
		e.FreezeClock()
		run, err := begun.Start(quickly(t), e.Engine, "in", durable.Debounce("k", 10*time.Second, time.Minute))
		must(t, err)
		_, err = e.Pause(quickly(t), run.ID(), durable.Reason("test"))
		must(t, err)
		if _, err := e.Rerun(quickly(t), run.ID(), "none"); !errors.Is(err, durable.ErrState) {
			t.Errorf("a run that has not begun: %v, want ErrState", err)
		}
		_, err = e.Resume(quickly(t), run.ID())
		must(t, err)
		e.Advance(10 * time.Second)
		if got, want := resultOf(t, run), "in 12:00:10"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
