package durable_test

import (
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// A run that stays in memory for a short wait leaves memory for the long wait that follows.
func TestParksAfterAShortWait(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		c.Go("short", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("s", 500*time.Millisecond) })
		return c.Receive[int]("go")
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Second, Concurrency: 1})
	running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	if !becomes(t, e, "a", durable.StatusWaiting) {
		t.Error("a run that waits for a signal alone stays in memory, and in the only slot")
	}
}

// A run whose function computes while a branch waits leaves memory at most for a while.
func TestWorkBesideAWait(t *testing.T) {
	s := openStore(t)
	var first atomic.Bool
	first.Store(true)
	compute := make(chan struct{})
	var e *durable.Engine
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		work := c.Go("work", func(c *durable.Ctx) (int, error) {
			if first.Swap(false) {
				<-compute // the function's own code takes long
			}
			return 0, c.Do("ask", func(ctx context.Context) error { return e.Signal(ctx, "a", "go", 7) })
		})
		got, err := c.Receive[int]("go")
		if err != nil {
			return 0, err
		}
		_, err = work.Wait()
		return got, err
	})
	e = engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 300 * time.Millisecond})
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	second, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	poll(second, func() bool { return read(e.Get(within(t), "a"))(t).Status == durable.StatusWaiting }) // the run has left memory, or stays
	close(compute)
	if got, err := run.Result(within(t)); got != 7 || err != nil {
		info, _ := e.Get(t.Context(), "a")
		t.Errorf("got %d, %v; the run is %s, wakes at %v", got, err, info.Status, info.WakeAt)
	}
}

// The same holds with a plain goroutine instead of a branch, and however short ParkAfter is.
func TestWorkBesideAWaitPlain(t *testing.T) {
	s := openStore(t)
	for _, parkAfter := range []time.Duration{300 * time.Millisecond, time.Millisecond} {
		t.Run(parkAfter.String(), func(t *testing.T) {
			w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
				go func() { _, _ = c.Receive[int]("stop early") }()
				n := 0
				for began := time.Now(); time.Since(began) < 50*time.Millisecond; n++ { // a computation
					runtime.Gosched()
				}
				return c.Step("save", func(context.Context) (int, error) { return 1, nil })
			})
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: parkAfter})
			running(t, e)
			run := read(w.Start(within(t), e, 0, durable.ID(parkAfter.String())))(t)
			if got, err := run.Result(within(t)); got != 1 || err != nil {
				info, _ := e.Get(t.Context(), run.ID())
				t.Errorf("got %d, %v; the run is %s, wakes at %v", got, err, info.Status, info.WakeAt)
			}
		})
	}
}

// A pause takes effect also if a branch does not return.
func TestABranchThatIgnoresItsContextDoesNotDelayAPause(t *testing.T) {
	s := openStore(t)
	log := new(lines)
	entered, release := make(chan struct{}, 9), make(chan struct{})
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		c.Go("deaf", func(*durable.Ctx) (int, error) {
			entered <- struct{}{}
			<-release
			return 0, nil
		})
		return c.Receive[int]("go")
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 100 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))})
	running(t, e)
	t.Cleanup(func() { close(release) })
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	if _, err := e.Pause(within(t), "a"); err != nil {
		t.Fatal(err)
	}
	if !becomes(t, e, "a", durable.StatusPaused) {
		t.Errorf("it is not paused; reported: %v", strings.Contains(log.String(), "does not return"))
	}
}

// A step that waits for a branch while its run is paused is executed again after the resume.
func TestAPauseDoesNotFailAStepThatWaits(t *testing.T) {
	s := openStore(t)
	waiting := make(chan struct{}, 10)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		f := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("go") })
		return c.Step("combine", func(context.Context) (int, error) {
			waiting <- struct{}{}
			return f.Wait()
		})
	})
	e := engineOn(t, s, w)
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-waiting
	if _, err := e.Pause(within(t), "a"); err != nil {
		t.Fatal(err)
	}
	if !becomes(t, e, "a", durable.StatusPaused) {
		t.Fatal("not paused")
	}
	if _, err := e.Resume(within(t), "a"); err != nil {
		t.Fatal(err)
	}
	if err := e.Signal(within(t), "a", "go", 7); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); got != 7 || err != nil {
		t.Errorf("got %d, %v: a pause has failed the step for good", got, err)
	}
}

// A worker does not claim a run repeatedly if its sleep ends later than a timer can be set.
func TestASleepIntoTheFarFutureIsIdle(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.SleepUntil("far", time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Second})
	running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	if !becomes(t, e, "a", durable.StatusWaiting) {
		t.Fatal("not parked")
	}
	before, beats := e.Stats().ClaimQueries, e.Stats().Heartbeats
	waitFor(t, func() bool { return e.Stats().Heartbeats >= beats+4 })
	if n := e.Stats().ClaimQueries - before; n > 25 {
		t.Errorf("%d claims of an idle worker in the time of four heartbeats", n)
	}
}

// A function that does not return takes one more slot in each execution.
func TestAStuckFunctionLeavesSlotsToOthers(t *testing.T) {
	s := openStore(t)
	release := make(chan struct{})
	stuck := durable.Define("stuck", func(c *durable.Ctx, _ int) (int, error) {
		ch := make(chan int, 1)
		c.Go("b", func(c *durable.Ctx) (int, error) {
			v, err := c.Receive[int]("go")
			if err == nil {
				ch <- v
			}
			return v, err
		})
		select {
		case v := <-ch:
			return v, nil
		case <-release:
			return 0, nil
		}
	})
	other := durable.Define("other", double)
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{stuck, other}, ParkAfter: 10 * time.Millisecond, Concurrency: 3})
	running(t, e)
	t.Cleanup(func() { close(release) })
	if _, err := stuck.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	realtime.Pass(time.Second, "nothing tells that the run takes no further slot")
	ctx := within(t)
	run, err := other.Start(ctx, e, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(ctx); err != nil {
		t.Errorf("one run that nobody has signalled has taken every slot: %v", err)
	}
}

// Two pauses come during the attempts of a step whose function gets ErrSuspended.
func TestPausesAreNoAttempts(t *testing.T) {
	s := openStore(t)
	waiting := make(chan struct{}, 10)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		f := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("go") })
		return c.Step("combine", func(context.Context) (int, error) {
			waiting <- struct{}{}
			return f.Wait()
		}, durable.Retry(durable.Fixed(0, 2)))
	})
	e := engineOn(t, s, w)
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-waiting
		awaitCheckpoint(t, e, "a", "combine", durable.CheckpointStarted)
		if _, err := e.Pause(within(t), "a"); err != nil {
			t.Fatal(err)
		}
		if !becomes(t, e, "a", durable.StatusPaused) {
			t.Fatal("not paused")
		}
		if _, err := e.Resume(within(t), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Signal(within(t), "a", "go", 7); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); got != 7 || err != nil {
		t.Errorf("got %d, %v: pauses have failed the step for good", got, err)
	}
}

// A function that ends after its run was parked too early, because it did long work of its own beside a wait, fails the run all the
// same, whether it returns an error or panics.
func TestAFailureAfterTheRunParkedIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, end := range map[string]func() error{"returns": func() error { return errDeclined }, "panics": func() error { panic("broken") }} {
			var parked atomic.Bool
			w := durable.Define(name, func(c *durable.Ctx, _ int) (int, error) {
				c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never", durable.Within(time.Hour)) })
				if !parked.Swap(true) {
					<-c.Done() // the work ends after the run was parked, and sees nothing of that
				}
				return 0, end()
			})
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
			running(t, e)
			read(w.Start(within(t), e, 0, durable.ID(name)))(t)
			if !becomes(t, e, name, durable.StatusFailed) {
				info := read(e.Get(within(t), name))(t)
				t.Errorf("a function that %s: the run is %s, and wakes at %v", name, info.Status, info.WakeAt)
			}
		}
	})
}

// The same holds for the recorded failure of a step, which may wrap context.Canceled: the end of the Ctx has not caused it.
func TestARecordedFailureAfterTheRunParkedIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var parked [2]atomic.Bool
		failLate := func(c *durable.Ctx, i int) (int, error) {
			_, err := c.Step("call", func(context.Context) (int, error) { return 0, durable.Permanent(context.Canceled) })
			if !parked[i].Swap(true) {
				<-c.Done() // the work ends after the run was parked, and sees nothing of that
			}
			return 0, err
		}
		waits := func(c *durable.Ctx) *durable.Future[int] {
			return c.Go("waits", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never", durable.Within(time.Hour)) })
		}
		function := durable.Define("function", func(c *durable.Ctx, _ int) (int, error) {
			waits(c)
			return failLate(c, 0)
		})
		branch := durable.Define("branch", func(c *durable.Ctx, _ int) ([]int, error) {
			return durable.AllOrCancel(c, "first failure", waits(c), c.Go("fails", func(c *durable.Ctx) (int, error) { return failLate(c, 1) }))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{function, branch}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		read(function.Start(within(t), e, 0, durable.ID("function")))(t)
		read(branch.Start(within(t), e, 0, durable.ID("branch")))(t)
		for _, id := range []string{"function", "branch"} {
			if !becomes(t, e, id, durable.StatusFailed) {
				info := read(e.Get(within(t), id))(t)
				t.Errorf("%s: the run is %s, and wakes at %v", id, info.Status, info.WakeAt)
			}
		}
	})
}

// A parent that only waits for its child has no time at which it wakes.
func TestAParentOfAWaitingChildStaysParked(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
		parent := durable.Define("parent", func(c *durable.Ctx, n int) (int, error) { return c.Child("leaf", leaf, n) })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{leaf, parent}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		read(parent.Start(within(t), e, 0, durable.ID("p")))(t)
		awaitStatus(t, e, "p", durable.StatusWaiting)
		if info := read(e.Get(within(t), "p"))(t); !info.WakeAt.IsZero() {
			t.Errorf("the parent is woken at %v, although only the end of its child lets it continue", info.WakeAt)
		}
	})
}
