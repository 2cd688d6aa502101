package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

func TestPauseLetsTheRunningStepFinish(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var first, second atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			if err := c.Do("first", func(ctx context.Context) error { first.Add(1); return g.pass(ctx) }); err != nil {
				return "", err
			}
			return c.Step("second", func(context.Context) (string, error) { second.Add(1); return "done", nil })
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		if got := must(t)(e.Pause(within(t), "run", durable.Reason("look at it"), durable.Actor("ann"))); !counts(got, 1, 0, 1) {
			t.Errorf("pause of a running run: %+v", got)
		}
		info, err := e.Get(within(t), "run")
		if err != nil || info.Status != durable.StatusRunning || info.Requested != "pause" {
			t.Errorf("while its step runs: %+v, %v", info, err)
		}
		close(g.open)
		awaitStatus(t, e, "run", durable.StatusPaused)
		info, err = e.Get(within(t), "run")
		if err != nil || info.Reason != "look at it" || info.PausedBy != "ann" || info.PausedAt.IsZero() {
			t.Errorf("the paused run: %+v, %v", info, err)
		}
		history, err := e.History(within(t), "run")
		if err != nil || len(history) != 1 || history[0].Status != "completed" {
			t.Errorf("history %+v, %v: want the finished step", history, err)
		}
		if second.Load() != 0 {
			t.Error("a step began while the run was paused")
		}
		if _, err := e.Pause(within(t), "run"); err != nil {
			t.Errorf("a second pause: %v", err)
		}
		if got := must(t)(e.Resume(within(t), "run")); got.Done != 1 {
			t.Errorf("resume: %+v", got)
		}
		if out, err := run.Result(within(t)); out != "done" || err != nil {
			t.Errorf("got %q, %v", out, err)
		}
		if first.Load() != 1 || second.Load() != 1 {
			t.Errorf("the steps ran %d and %d times", first.Load(), second.Load())
		}
		for verb, call := range map[durable.Verb]func(context.Context, string, ...durable.ControlOption) (durable.ControlResult, error){
			"pause": e.Pause, "resume": e.Resume, "cancel": e.Cancel,
		} {
			var state *durable.StateError
			_, err := call(within(t), "run")
			if !errors.As(err, &state) || state.Status != durable.StatusCompleted || state.Verb != verb || !errors.Is(err, durable.ErrState) {
				t.Errorf("%s of a completed run: %v", verb, err)
			}
			if _, err := call(within(t), "nobody"); !errors.Is(err, durable.ErrNotFound) {
				t.Errorf("%s of an unknown run: %v", verb, err)
			}
		}
	})
}

// If a resume comes while a step of the paused run is still running, the run stays in its process, and the step is not executed a
// second time concurrently.
func TestResumeBeforeThePauseIsOver(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var ran atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			err := c.Do("slow", func(ctx context.Context) error { ran.Add(1); return g.pass(ctx) })
			return int(ran.Load()), err
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		must(t)(e.Pause(within(t), "run"))
		must(t)(e.Resume(within(t), "run"))
		close(g.open)
		if n, err := run.Result(within(t)); n != 1 || err != nil {
			t.Errorf("the step ran %d times, %v", n, err)
		}
	})
}

func TestCancelEndsTheRunningStepAndCompensates(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var undone []string
		undo := func(what string) func(context.Context) error {
			return func(ctx context.Context) error {
				if ctx.Err() != nil {
					return fmt.Errorf("its context has ended: %w", ctx.Err())
				}
				undone = append(undone, what)
				return nil
			}
		}
		var cause error
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for _, what := range []string{"charge", "reserve"} {
				if err := c.Do(what, func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				if err := c.Compensate("undo "+what, undo(what)); err != nil {
					return 0, err
				}
			}
			if err := c.Do("ship", g.pass); err != nil {
				cause = context.Cause(c)
				return 0, err
			}
			return 1, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		if got := must(t)(e.Cancel(within(t), "run", durable.Reason("changed my mind"), durable.Actor("bob"))); got.Requested != 1 {
			t.Errorf("cancel of a running run: %+v", got)
		}
		_, err = run.Result(within(t))
		var failed *durable.RunError
		if !errors.As(err, &failed) || failed.Status != durable.StatusCancelled || !errors.Is(err, durable.ErrCancelled) || failed.Message != "cancelled by bob: changed my mind" {
			t.Errorf("got %v", err)
		}
		if !errors.Is(cause, durable.ErrCancelled) {
			t.Errorf("the function saw %v as the cause", cause)
		}
		if fmt.Sprint(undone) != "[reserve charge]" {
			t.Errorf("undone %v, want the last first", undone)
		}
		info, err := e.Get(within(t), "run")
		if err != nil || info.Cancellation == nil || info.Cancellation.Reason != "changed my mind" || info.Cancellation.Actor != "bob" {
			t.Errorf("%+v, %v", info, err)
		}
		history, err := e.History(within(t), "run")
		kinds := map[string]string{}
		for _, h := range history {
			kinds[h.Name] = fmt.Sprint(h.Kind, " ", h.Status)
		}
		if err != nil || kinds["undo charge"] != "compensation completed" || kinds["undo reserve"] != "compensation completed" {
			t.Errorf("history %v, %v", kinds, err)
		}
		if again, err := e.Cancel(within(t), "run"); err != nil || !counts(again, 1, 0, 0) {
			t.Errorf("cancel of a cancelled run: %+v, %v", again, err)
		}
	})
}

// A waiting run that is not in memory is replayed by a worker that has never executed it, for its compensations.
func TestCancelOfAWaitingRunCompensates(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var undone, charged atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Do("charge", func(context.Context) error { charged.Add(1); return nil }); err != nil {
				return 0, err
			}
			if err := c.Compensate("refund", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return 0, err
			}
			return c.Receive[int]("approval")
		})
		first := engineOn(t, s, w)
		stop := running(t, first)
		run, err := w.Start(within(t), first, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, first, "run", durable.StatusWaiting)
		info, err := first.Get(within(t), "run")
		if err != nil || len(info.OpenCalls) != 1 || info.OpenCalls[0].Name != "approval" || info.OpenCalls[0].Kind != "receive" {
			t.Errorf("it waits for %+v, %v", info.OpenCalls, err)
		}
		must(t)(first.Pause(within(t), "run"))
		stop()
		if got := must(t)(first.Cancel(within(t), "run")); got.Requested != 1 {
			t.Errorf("cancel of a paused run: %+v", got)
		}
		running(t, engineOn(t, s, w))
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("got %v", err)
		}
		if charged.Load() != 1 || undone.Load() != 1 {
			t.Errorf("charged %d times, undone %d times", charged.Load(), undone.Load())
		}
	})
}

func TestCancelOfWhatHasNotStarted(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		client := engineOn(t, s)
		run, err := w.Start(within(t), client, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		if got := must(t)(client.Cancel(within(t), "run", durable.OnlyUnstarted())); !counts(got, 1, 1, 0) {
			t.Errorf("%+v", got)
		}
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunTimeout(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var registered, undone atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, memory bool) (int, error) {
			if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return 0, err
			}
			registered.Add(1)
			if memory {
				return 0, c.Do("hang", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			}
			return 0, c.Sleep("for long", time.Hour)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		for _, memory := range []bool{true, false} {
			registered.Store(0)
			undone.Store(0)
			// On a slow machine the time may be over before the function begins, so another run gets more.
			for timeout := 300 * time.Millisecond; registered.Load() == 0; timeout *= 4 {
				run, err := w.Start(within(t), e, memory, durable.Timeout(timeout))
				if err != nil {
					t.Fatal(err)
				}
				_, err = run.Result(within(t))
				var failed *durable.RunError
				if !errors.Is(err, durable.ErrTimeout) || !errors.As(err, &failed) || failed.Status != durable.StatusExpired {
					t.Errorf("in memory %v: got %v", memory, err)
				}
			}
			if undone.Load() != 1 {
				t.Errorf("in memory %v: compensated %d times", memory, undone.Load())
			}
		}
		if _, err := w.Start(within(t), e, true, durable.Timeout(-1)); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a negative timeout: %v", err)
		}
	})
}

// While a run is paused nothing begins: neither the attempt after a backoff, nor the call after a sleep.
func TestPauseInBackoffSleepAndWait(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var attempts sync.Map // of the runs' IDs to counters
		attemptsOf := func(id string) *atomic.Int32 {
			n, _ := attempts.LoadOrStore(id, new(atomic.Int32))
			return n.(*atomic.Int32)
		}
		w := durable.Define("w", func(c *durable.Ctx, wait time.Duration) (string, error) {
			switch kind, _, _ := strings.Cut(c.ID(), "-"); kind {
			case "backoff":
				return kind, c.Do("try", func(context.Context) error {
					if attemptsOf(c.ID()).Add(1) == 1 {
						return errors.New("not yet")
					}
					return nil
				}, durable.Retry(durable.Exponential(wait, time.Minute, 5)))
			case "sleep":
				return kind, c.Sleep("nap", wait)
			default:
				return c.Receive[string]("go")
			}
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 50 * time.Millisecond})
		running(t, e)
		over := dbNow(t, s) // when every backoff and sleep is over
		// paused returns a run that was paused while it waited. On a slow machine the wait may be over before,
		// so another run gets a longer one.
		paused := func(kind string) *durable.Run[string] {
			for wait := 200 * time.Millisecond; ; wait *= 4 {
				id := fmt.Sprintf("%s-%v", kind, wait)
				run := read(w.Start(within(t), e, wait, durable.ID(id)))(t)
				for len(historyOf(t, e, id)) == 0 {
				}
				if _, err := e.Pause(within(t), id); err != nil && !errors.Is(err, durable.ErrState) {
					t.Fatal(err)
				}
				status := durable.StatusRunning
				for status != durable.StatusPaused && status != durable.StatusCompleted {
					status = read(e.Get(within(t), id))(t).Status
				}
				if status == durable.StatusPaused && attemptsOf(id).Load() < 2 {
					if end := dbNow(t, s).Add(wait + wait/10); end.After(over) {
						over = end
					}
					return run
				}
			}
		}
		runs := make(map[string]*durable.Run[string])
		for _, kind := range []string{"backoff", "sleep", "wait"} {
			runs[kind] = paused(kind)
		}
		if err := e.Signal(within(t), runs["wait"].ID(), "go", "wait"); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, s, over)
		for kind, run := range runs {
			if info, err := e.Get(within(t), run.ID()); err != nil || info.Status != durable.StatusPaused {
				t.Errorf("%s: %+v, %v", kind, info, err)
			}
		}
		if n := attemptsOf(runs["backoff"].ID()).Load(); n != 1 {
			t.Errorf("%d attempts while paused", n)
		}
		for kind, run := range runs {
			must(t)(e.Resume(within(t), run.ID()))
			if got, err := run.Result(within(t)); got != kind || err != nil {
				t.Errorf("%s: %q, %v", kind, got, err)
			}
		}
	})
}

func TestFreezeTimers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Sleep("nap", time.Hour) })
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("run"), durable.Timeout(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		due := historyOf(t, e, "run")[0].NextAt
		before, _ := e.Get(within(t), "run")
		must(t)(e.Pause(within(t), "run"))
		waitUntil(t, s, dbNow(t, s).Add(100*time.Millisecond))
		must(t)(e.Resume(within(t), "run", durable.FreezeTimers()))
		if moved := historyOf(t, e, "run")[0].NextAt.Sub(due); moved < 50*time.Millisecond || moved > 10*time.Second {
			t.Errorf("the timer moved by %v", moved)
		}
		after, _ := e.Get(within(t), "run")
		if moved := after.Deadline.Sub(before.Deadline); moved < 50*time.Millisecond || moved > 10*time.Second {
			t.Errorf("the deadline moved by %v", moved)
		}
		if _, err := e.Pause(within(t), "run", durable.FreezeTimers()); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("freeze at a pause: %v", err)
		}
	})
}

// counts reports whether an effect has these numbers, and as many IDs.
func counts(f durable.ControlResult, matched, done, requested int) bool {
	return f.Matched == matched && f.Done == done && f.Requested == requested && len(f.DoneIDs) == done && len(f.RequestedIDs) == requested
}
