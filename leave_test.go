package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// If a function does not return after its run has been suspended, its stack is logged. The run continues in another execution,
// and the function keeps its slot.
func TestFunctionThatDoesNotReturn(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		var entered atomic.Int32
		stuckFunction := func(c *durable.Ctx, _ int) (string, error) {
			if entered.Add(1) == 1 {
				_ = c.Sleep("nap", 500*time.Millisecond)
				<-release // ignores its context
				return "too late", nil
			}
			return "woken", c.Sleep("nap", 500*time.Millisecond)
		}
		w := durable.Define("w", stuckFunction)
		log := new(lines)
		e := engineWith(t, s, durable.Config{
			Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond, Concurrency: 2, Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); got != "woken" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if text := log.String(); !strings.Contains(text, "does not return") || !strings.Contains(text, "TestFunctionThatDoesNotReturn.func") {
			t.Errorf("its stack is not in the log: %s", text)
		}
		// The function still holds one of the two slots; the other one is free.
		other, err := w.Start(within(t), e, 0, durable.ID("other"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Result(within(t)); err != nil {
			t.Error(err)
		}
		close(release)
		stop()
	})
}

// slowStore is a store that withholds the commits that record the step "slow".
type slowStore struct {
	durable.Store
	gate
}

func (s *slowStore) Commit(ctx context.Context, b *store.Batch) error {
	if slices.ContainsFunc(b.Steps, func(w *store.StepWrite) bool { return w.Step.Name == "slow" }) {
		if err := s.pass(ctx); err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, b)
}

// If a function returns while a goroutine of its own still records a step, the run is released only when that step is recorded,
// even if other writes are committed meanwhile. A worker that claimed the run before would not see the step.
func TestAReleaseWaitsForTheStepsOfItsRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		stray := make(chan error, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			go func() { stray <- c.Do("slow", func(context.Context) error { return nil }) }()
			<-c.Done()
			return 0, context.Cause(c)
		})
		slow := &slowStore{s, newGate()}
		e, other := engineOn(t, slow, w), engineOn(t, s)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		<-slow.entered
		must(t)(other.Pause(within(t), "run"))
		for e.Stats().PendingWrites == 0 { // until the release of the run waits for a flush
		}
		var crowd sync.WaitGroup
		beside := make(chan struct{}, 100)
		for range cap(beside) { // enough for a second flush, concurrent with the first; the last of them may wait for a third one
			crowd.Go(func() {
				if _, err := w.Start(within(t), e, 0, durable.Delay(time.Hour)); err != nil {
					t.Error(err)
				}
				beside <- struct{}{}
			})
		}
		<-beside // if the release had not waited, it would be in this flush, because it was queued first
		if info, err := other.Get(within(t), "run"); err != nil || info.Status != durable.StatusRunning {
			t.Errorf("while its step is being recorded the run is %+v, %v", info, err)
		}
		close(slow.open)
		crowd.Wait()
		if err := <-stray; err != nil {
			t.Errorf("the step: %v", err)
		}
		awaitStatus(t, other, "run", durable.StatusPaused)
	})
}

// A run that is cancelled while goroutines of its own wait leaves no goroutine behind.
func TestCancelOfBranches(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			var plain sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				plain.Go(func() { errs[i] = c.Sleep(string(rune('a'+i)), time.Hour) })
			}
			branch := c.Go("branch", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
			plain.Wait()
			_, err := branch.Wait()
			return 0, errors.Join(append(errs, err)...)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Hour})
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		for len(historyOf(t, e, "run")) < 4 {
		}
		must(t)(e.Cancel(within(t), "run"))
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("got %v", err)
		}
	})
}

// A pause, a cancel or a shutdown during the compensations: the compensations continue, and each is executed once.
func TestControlWhileCompensating(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var first, second atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("second", func(context.Context) error { second.Add(1); return nil }); err != nil {
				return 0, err
			}
			if err := c.Compensate("first", func(ctx context.Context) error { first.Add(1); return g.pass(ctx) }); err != nil {
				return 0, err
			}
			panic("boom")
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		must(t)(e.Pause(within(t), "run"))
		close(g.open)
		awaitStatus(t, e, "run", durable.StatusPaused)
		if first.Load() != 1 || second.Load() != 0 {
			t.Errorf("while paused: %d and %d", first.Load(), second.Load())
		}
		must(t)(e.Cancel(within(t), "run"))
		var failed *durable.RunError
		if _, err := run.Result(within(t)); !errors.As(err, &failed) || failed.Status != durable.StatusCancelled {
			t.Errorf("got %v", err)
		}
		if first.Load() != 1 || second.Load() != 1 {
			t.Errorf("at the end: %d and %d", first.Load(), second.Load())
		}
	})
}

// If a cancel comes together with the end of the last step, the run is cancelled or it completes, never both.
func TestCancelAgainstCompletion(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 60
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("only", func(context.Context) (int, error) { return 1, nil })
		})
		e, other := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		var completed, cancelled atomic.Int32
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				run, err := w.Start(within(t), e, 0)
				if err != nil {
					t.Error(err)
					return
				}
				realtime.Pass(time.Duration(i%20)*time.Millisecond, "each cancel meets another moment of its run")
				_, asked := other.Cancel(within(t), run.ID())
				_, err = run.Result(within(t))
				switch {
				case asked == nil && errors.Is(err, durable.ErrCancelled):
					cancelled.Add(1)
				case errors.Is(asked, durable.ErrState) && err == nil:
					completed.Add(1)
				default:
					t.Errorf("cancel returned %v, the run %v", asked, err)
				}
			})
		}
		all.Wait()
		t.Logf("%d cancelled, %d completed", cancelled.Load(), completed.Load())
	})
}
