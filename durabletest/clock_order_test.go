package durabletest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// Advance by zero waits until the run has handled all signals, also several that were sent at one instant of the clock.
func TestAdvanceByZeroHandlesEverySignal(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		received := 0
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for i := range 6 {
				if _, err := c.Receive[int](fmt.Sprint("r", i), durable.OnSignal("add")); err != nil {
					return 0, err
				}
				if err := c.Do(fmt.Sprint("s", i), func(context.Context) error { received++; return nil }); err != nil {
					return 0, err
				}
			}
			return received, nil
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		run, err := w.Start(quickly(t), e.Engine, 0)
		must(t, err)
		for i := range 3 {
			e.Advance(0)
			must(t, e.Signal(quickly(t), run.ID(), "add", 1))
			must(t, e.Signal(quickly(t), run.ID(), "add", 1))
			if e.Advance(0); received != 2*i+2 {
				t.Errorf("%d of %d signals are handled", received, 2*i+2)
			}
		}
		if got := resultOf(t, run); got != 6 {
			t.Errorf("%d signals", got)
		}
	})
}

// Time passes while a step or a workflow function waits for the result of another run.
func TestTimePassesWhileAStepWaitsForARun(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var e *durabletest.Engine
		slow := durable.Define("slow", func(c *durable.Ctx, n int) (int, error) { return 2 * n, c.Sleep("a day", day) })
		inStep := durable.Define("in a step", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("await", func(ctx context.Context) (int, error) {
				run, err := slow.Start(ctx, e.Engine, n)
				if err != nil {
					return 0, err
				}
				return run.Result(ctx)
			})
		})
		inFunction := durable.Define("in the function", func(c *durable.Ctx, n int) (int, error) {
			id, err := c.Start("slow", slow, n)
			if err != nil {
				return 0, err
			}
			run, err := slow.Handle(c, e.Engine, id)
			if err != nil {
				return 0, err
			}
			return run.Result(c)
		})
		e = durabletest.NewWithOptions(t, defs(slow, inStep, inFunction), opts...)
		for _, w := range []*durable.Workflow[int, int]{inStep, inFunction} {
			from := e.Now()
			got, err := w.Call(quickly(t), e.Engine, 4)
			if took := e.Now().Sub(from); got != 8 || err != nil || took < day || took > 2*day {
				t.Errorf("%s: %d, %v, after %v", w.Name(), got, err, took)
			}
		}
	})
}

// Runs of one key begin in the order of their starts, although the clock stands still between the starts.
func TestRunsOfAKeyBeginInTheOrderOfTheirStarts(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var mu sync.Mutex
		var order []int
		w := durable.Define("w", func(_ *durable.Ctx, n int) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, n)
			return n, nil
		}, durable.Queue("mail"))
		e := durabletest.NewWithOptions(t, defs(w), append(opts, durabletest.Configure(func(c *durable.Config) {
			c.QueueSettings = map[string]durable.QueueSettings{"mail": {MaxInProgressPerKey: 1}}
		}))...)
		must(t, e.PauseQueue(quickly(t), "mail"))
		var runs []*durable.Run[int]
		for n := range 8 {
			run, err := w.Start(quickly(t), e.Engine, n, durable.GroupKey("k"))
			must(t, err)
			runs = append(runs, run)
		}
		many, err := w.StartMany(quickly(t), e.Engine, []durable.StartItem[int]{{Input: 8}, {Input: 9}, {Input: 10}}, durable.GroupKey("k"))
		must(t, err)
		must(t, e.ResumeQueue(quickly(t), "mail"))
		for _, run := range append(runs, many...) {
			resultOf(t, run)
		}
		if !slices.IsSorted(order) {
			t.Errorf("the order is %v", order)
		}
	})
}

// A wait for the result of a run that has ended takes no time, also if the clock could move to something that is due later.
func TestTheResultOfAnEndedRunTakesNoTime(t *testing.T) {
	t.Parallel()
	quick := durable.Define("quick", func(c *durable.Ctx, n int) (int, error) { return step(c, "one", n) })
	sleeper := durable.Define("sleeper", func(c *durable.Ctx, n int) (int, error) { return n, c.Sleep("a year", 365*day) })
	e := durabletest.New(t, quick, sleeper)
	if _, err := sleeper.Start(t.Context(), e.Engine, 1); err != nil {
		t.Fatal(err)
	}
	run, err := quick.Start(t.Context(), e.Engine, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := run.Result(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := e.Get(t.Context(), run.ID()); err != nil || e.Now().Sub(info.EndedAt) > day {
		t.Errorf("the clock shows %s, and the run ended at %s: %v", e.Now(), info.EndedAt, err)
	}
}
