package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/sqlite"
)

// load counts the functions that are executed at once.
type load struct{ now, most, all atomic.Int32 }

func (l *load) enter() (leave func()) {
	n := l.now.Add(1)
	l.all.Add(1)
	for {
		most := l.most.Load()
		if n <= most || l.most.CompareAndSwap(most, n) {
			return func() { l.now.Add(-1) }
		}
	}
}

// At most Config.StepConcurrency functions of steps, Map items, Tx steps and compensations are executed at once, however they
// end.
func TestStepConcurrencyBoundsWhatIsExecutedAtOnce(t *testing.T) {
	var l load
	work := func(context.Context) error {
		defer l.enter()()
		for range 20 {
			runtime.Gosched()
		}
		return nil
	}
	w := durable.Define("busy", func(c *durable.Ctx, n int) (int, error) {
		if err := c.Compensate("undo", work); err != nil {
			return 0, err
		}
		if err := c.Do("once", work, durable.AtMostOnce()); err != nil {
			return 0, err
		}
		if err := c.Do("bounded", work, durable.AttemptTimeout(time.Minute)); err != nil {
			return 0, err
		}
		if _, err := c.Map("items", []int{1, 2, 3, 4}, func(ctx context.Context, _ int) (int, error) { return 0, work(ctx) }); err != nil {
			return 0, err
		}
		if _, err := sqlite.Tx(c, "tx", func(ctx context.Context, _ *sql.Tx) (int, error) { return 0, work(ctx) }); err != nil {
			return 0, err
		}
		if err := c.Do("panics", func(ctx context.Context) error { defer l.enter()(); panic("no") }); !errors.Is(err, durable.ErrPanic) {
			t.Errorf("the panic: %v", err)
		}
		if _, err := c.UUID("id"); err != nil {
			return 0, err
		}
		return 0, errors.New("so that it is compensated")
	})
	e := engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{w}, StepConcurrency: 3})
	running(t, e)
	ctx := within(t)
	var runs []*durable.Run[int]
	for range 12 {
		run, err := w.Start(ctx, e, 0)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		if _, err := run.Result(ctx); err == nil || errors.Is(err, durable.ErrCompensation) {
			t.Errorf("the run ended with %v", err)
		}
	}
	if l.most.Load() > 3 || l.most.Load() < 2 || l.all.Load() != 12*9 {
		t.Errorf("%d functions were executed at once, of %d", l.most.Load(), l.all.Load())
	}
	if n := e.Stats().StepsWaitingForSlot; n != 0 {
		t.Errorf("%d steps wait", n)
	}
}

// While a step waits for a free place it has not begun: it has no row, its timeouts have not begun, and a cancel ends the wait.
func TestAStepThatWaitsForItsPlaceHasNotBegun(t *testing.T) {
	const bound = 4 * time.Second // longer than a loaded machine stands still once the step has its place
	hold := newGate()
	var began atomic.Int32
	holder := durable.Define("holder", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("hold", hold.pass) })
	waiter := durable.Define("waiter", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("bounded", func(context.Context) (int, error) { began.Add(1); return 7, nil },
			durable.AttemptTimeout(bound), durable.TotalTimeout(bound), durable.AtMostOnce())
	})
	e := engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{holder, waiter}, StepConcurrency: 1})
	running(t, e)
	ctx := within(t)
	if _, err := holder.Start(ctx, e, 0); err != nil {
		t.Fatal(err)
	}
	<-hold.entered
	cancelled, err := waiter.Start(ctx, e, 0, durable.ID("cancelled"))
	if err != nil {
		t.Fatal(err)
	}
	patient, err := waiter.Start(ctx, e, 0, durable.ID("patient"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return e.Stats().StepsWaitingForSlot == 2 })
	must(t)(e.Cancel(ctx, "cancelled"))
	if _, err := cancelled.Result(ctx); !errors.Is(err, durable.ErrCancelled) {
		t.Errorf("the cancelled run: %v", err)
	}
	realtime.Pass(bound+200*time.Millisecond, "longer than the timeouts, and than it takes to leave a marker")
	if history := historyOf(t, e, "patient"); len(history) != 0 || began.Load() != 0 {
		t.Errorf("a step that waits for its place has left %+v", history)
	}
	close(hold.open)
	if got, err := patient.Result(ctx); got != 7 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if began.Load() != 1 {
		t.Errorf("%d steps began", began.Load())
	}
}

// A step whose function waits for another run does not count, so that the steps of that run can be executed.
func TestStepConcurrencyOfNestedWaits(t *testing.T) {
	var l load
	var e *durable.Engine
	var nested *durable.Workflow[int, int]
	nested = durable.Define("nested", func(c *durable.Ctx, depth int) (int, error) {
		return c.Step("call", func(ctx context.Context) (int, error) {
			leave := l.enter()
			if depth == 0 {
				leave()
				return 1, nil
			}
			run, err := nested.Start(ctx, e, depth-1)
			leave()
			if err != nil {
				return 0, err
			}
			n, err := run.Result(ctx)
			defer l.enter()()
			return n + 1, err
		})
	})
	e = engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{nested}, StepConcurrency: 1})
	running(t, e)
	if got, err := nested.Call(within(t), e, 5); got != 6 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if l.most.Load() != 1 {
		t.Errorf("%d functions were executed at once", l.most.Load())
	}
}

// A function that calls runtime.Goexit, or ignores its timeout, does not keep its place.
func TestStepConcurrencyOfFunctionsThatDoNotReturn(t *testing.T) {
	stuck := make(chan struct{})
	ended := make(chan struct{})
	w := durable.Define("rude", func(c *durable.Ctx, n int) (int, error) {
		switch n {
		case 0:
			return 0, c.Do("goexit", func(context.Context) error { runtime.Goexit(); return nil })
		case 1:
			return 0, c.Do("deaf", func(context.Context) error { <-stuck; close(ended); return nil }, durable.AttemptTimeout(10*time.Millisecond))
		}
		return n, c.Do("polite", func(context.Context) error { return nil })
	})
	e := engineWith(t, openStore(t), durable.Config{Workflows: []durable.Definition{w}, StepConcurrency: 1})
	running(t, e)
	for n := range 3 {
		if got, err := w.Call(within(t), e, n); (err == nil) != (n == 2) || n == 2 && got != 2 {
			t.Errorf("%d: %v, %v", n, got, err)
		}
	}
	close(stuck)
	<-ended
}
