package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// begun returns its input and the time at which it began.
var begun = durable.Define("begun", func(c *durable.Ctx, in string) (string, error) {
	at, err := c.Now("now")
	return in + " " + at.Format(time.TimeOnly), err
})

var noon = durabletest.StartClockAt(at("2026-11-22T12:00:00Z"))

func resultOf[T any](t *testing.T, r *durable.Run[T]) T {
	t.Helper()
	out, err := r.Result(quickly(t))
	must(t, err)
	return out
}

// Starts in quick succession become one run with the input of the last. It begins when no further start has come for the quiet time,
// and at the latest after the bound.
func TestDebouncedStartsBecomeOneRun(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, []durable.Definition{begun}, append(opts, noon)...)
		e.FreezeClock()
		start := func(in string, opts ...durable.StartOption) *durable.Run[string] {
			run, err := begun.Start(quickly(t), e.Engine, in, append(opts, durable.Debounce("k", time.Minute, 100*time.Second))...)
			must(t, err)
			return run
		}
		first := start("a", durable.Timeout(time.Hour))
		e.Advance(40 * time.Second)
		second := start("b")
		e.Advance(40 * time.Second)
		third := start("c", durable.Timeout(time.Minute), durable.InQueue("another"))
		if first.ID() != second.ID() || second.ID() != third.ID() {
			t.Errorf("the runs are %s, %s and %s", first.ID(), second.ID(), third.ID())
		}
		other, err := begun.Start(quickly(t), e.Engine, "other", durable.Debounce("another key", time.Minute, time.Hour))
		must(t, err)
		e.Advance(20 * time.Second)
		if got, want := resultOf(t, first), "c 12:01:40"; got != want { // 100 s after the first
			t.Errorf("%s, want %s", got, want)
		}
		info, err := e.Get(quickly(t), first.ID())
		must(t, err)
		if got := info.Deadline.Sub(info.StartedAt); got != time.Minute || info.Queue != durable.DefaultQueue {
			t.Errorf("the timeout is %v, the queue %s", got, info.Queue)
		}
		next := start("d")
		e.Advance(40 * time.Second)
		if got, want := resultOf(t, other), "other 12:02:20"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		e.Advance(time.Hour)
		if got, want := resultOf(t, next), "d 12:02:40"; got != want || next.ID() == first.ID() {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A debounced run that is cancelled while it waits never begins, and the next start makes another. One that is paused takes further
// inputs, and begins after its resume.
func TestADebouncedRunIsCancelledAndPaused(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, []durable.Definition{begun}, append(opts, noon)...)
		e.FreezeClock()
		start := func(in string) *durable.Run[string] {
			run, err := begun.Start(quickly(t), e.Engine, in, durable.Debounce("k", time.Minute, time.Hour))
			must(t, err)
			return run
		}
		gone := start("a")
		_, err := e.Cancel(quickly(t), gone.ID())
		must(t, err)
		if _, err := gone.Result(quickly(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Error(err)
		}
		held := start("b")
		_, err = e.Pause(quickly(t), held.ID())
		must(t, err)
		if again := start("c"); again.ID() != held.ID() || held.ID() == gone.ID() {
			t.Errorf("%s, %s and %s", gone.ID(), held.ID(), again.ID())
		}
		e.Advance(2 * time.Hour)
		_, err = e.Resume(quickly(t), held.ID())
		must(t, err)
		if got, want := resultOf(t, held), "c 14:00:00"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A throttle lets n starts through in any time of the period's length.
func TestASampleSkipsWhatComesTooSoon(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, []durable.Definition{begun}, append(opts, noon)...)
		e.FreezeClock()
		start := func(opts ...durable.StartOption) error {
			_, err := begun.Start(quickly(t), e.Engine, "x", append(opts, durable.Throttle("k", 2, time.Minute))...)
			return err
		}
		must(t, start(durable.ID("first")))
		e.Advance(20 * time.Second)
		must(t, start())
		must(t, start(durable.ID("first"))) // the same start again
		e.Advance(39 * time.Second)
		err := start()
		skipped, ok := errors.AsType[*durable.ThrottledError](err)
		if !ok || !errors.Is(err, durable.ErrThrottled) || !skipped.Until.Equal(at("2026-11-22T12:01:00Z")) || skipped.Key != "k" || skipped.Workflow != "begun" {
			t.Errorf("%+v, %v", skipped, err)
		}
		e.Advance(time.Second)
		must(t, start())
		if err := start(); !errors.Is(err, durable.ErrThrottled) {
			t.Error(err)
		}
		page, err := e.List(quickly(t), durable.Filter{}, durable.Page{})
		must(t, err)
		if len(page.Runs) != 3 {
			t.Errorf("%d runs, want 3", len(page.Runs))
		}
	})
}

// A start that a step makes again, because the step is executed again, does not overwrite a newer one, and leads to the same run.
func TestAStartThatAStepRepeatsOverwritesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var engine *durabletest.Engine
		fold := durable.Debounce("k", time.Minute, time.Hour)
		steps := durable.Define("steps", func(c *durable.Ctx, _ string) (string, error) {
			return c.Step("start", func(ctx context.Context) (string, error) {
				run, err := begun.Start(ctx, engine.Engine, "old", fold)
				if err == nil && durable.Attempt(ctx) == 1 {
					err = errors.New("the step fails after the start")
				}
				if err != nil {
					return "", err
				}
				return run.ID(), nil
			}, durable.Retry(durable.Fixed(10*time.Second, 2)))
		})
		engine = durabletest.NewWithOptions(t, []durable.Definition{begun, steps}, append(opts, noon)...)
		engine.FreezeClock()
		run, err := steps.Start(quickly(t), engine.Engine, "")
		must(t, err)
		engine.Advance(time.Second)
		newer, err := begun.Start(quickly(t), engine.Engine, "new", fold)
		must(t, err)
		engine.Advance(20 * time.Second)
		if id := resultOf(t, run); id != newer.ID() {
			t.Errorf("the repeated start leads to %s, want %s", id, newer.ID())
		}
		engine.Advance(2 * time.Minute)
		if got, want := resultOf(t, newer), "new 12:01:01"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// The calls of a workflow that fold are recorded with the run to which they lead, whatever happens between the start and the record.
func TestFoldingCallsSurviveACrashAnywhere(t *testing.T) {
	calls := durable.Define("calls", func(c *durable.Ctx, in string) (string, error) {
		one, err := c.Start("one", begun, "a", durable.Singleton("k"), durable.Delay(time.Hour))
		if err != nil {
			return "", err
		}
		two, err := c.Start("two", begun, "b", durable.Singleton("k"))
		if err != nil {
			return "", err
		}
		three, err := c.Start("three", begun, "c", durable.Debounce("k", time.Hour, 2*time.Hour))
		if err != nil {
			return "", err
		}
		four, err := c.Start("four", begun, "d", durable.Debounce("k", time.Hour, 2*time.Hour))
		if err != nil {
			return "", err
		}
		five, err := c.Start("five", begun, "e", durable.Throttle("k", 1, time.Hour))
		if err != nil {
			return "", err
		}
		_, err = c.Start("six", begun, "f", durable.Throttle("k", 1, time.Hour))
		if !errors.Is(err, durable.ErrThrottled) {
			return "", fmt.Errorf("not skipped: %w", err)
		}
		return fmt.Sprint(one == two, " ", three == four, " ", five != three && five != one && one != three), nil
	})
	durabletest.CrashEverywhere(t, calls, "", durabletest.Workflows(begun))
}
