package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// No more functions of a limit execute at once than it allows, over two workers, however the steps end.
func TestLimitHoldsOverWorkers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l load
		stripe := durable.NewLimit("stripe", durable.Concurrent(3))
		work := func(context.Context) error {
			defer l.enter()()
			return nil
		}
		w := durable.Define("pay", func(c *durable.Ctx, n int) (int, error) {
			if err := c.Compensate("undo", work, stripe.Permit()); err != nil {
				return 0, err
			}
			if _, err := c.Map("items", []int{1, 2, 3}, func(ctx context.Context, i int) (int, error) { return i, work(ctx) }, durable.ItemOptions(stripe.Permit())); err != nil {
				return 0, err
			}
			tries := 0
			err := c.Do("again", func(ctx context.Context) error {
				if tries++; tries < 3 {
					return errors.Join(work(ctx), errors.New("not yet"))
				}
				return work(ctx)
			}, stripe.Permit(), durable.Retry(durable.RetryPolicy{Attempts: 3, Initial: time.Millisecond}))
			if err != nil {
				return 0, err
			}
			return n, errors.New("so that it is compensated")
		})
		cfg := durable.Config{Workflows: []durable.Definition{w}, Concurrency: 8}
		one, other := engineWith(t, s, cfg), engineWith(t, s, cfg)
		running(t, one)
		running(t, other)
		var runs []*durable.Run[int]
		for i := range 20 {
			e := one
			if i%2 == 1 {
				e = other
			}
			run, err := w.Start(within(t), e, i)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		for _, run := range runs {
			if _, err := run.Result(patience(t)); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		if most, all := l.most.Load(), l.all.Load(); most > 3 || all != 20*7 {
			t.Errorf("%d functions executed at once, want at most 3; %d in all, want %d", most, all, 20*7)
		}
		limits, err := one.Limits(within(t))
		if err != nil || len(limits) != 1 || limits[0].Name != "stripe" || limits[0].Concurrent != 3 || limits[0].Waiting != 0 {
			t.Errorf("Limits = %+v, %v", limits, err)
		}
	})
}

// patience is longer than within, for tests that do much.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// holding is a workflow whose step holds a permit of the limit until release is closed.
func holding(limit *durable.Limit, release <-chan struct{}, opts ...durable.PermitOption) *durable.Workflow[string, string] {
	return durable.Define("hold", func(c *durable.Ctx, in string) (string, error) {
		return c.Step("call", func(ctx context.Context) (string, error) {
			if in == "first" {
				select {
				case <-release:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			return in, nil
		}, limit.Permit(opts...))
	})
}

// waitsOutside waits until the run waits in the line of a limit, and has left memory.
func waitsOutside(t *testing.T, e *durable.Engine, id string) *durable.RunInfo {
	t.Helper()
	var info *durable.RunInfo
	await(t, "run "+id+" to wait outside of memory", func() bool {
		var err error
		if info, err = e.Get(within(t), id); err != nil {
			t.Fatal(err)
		}
		return isOutsideInLine(info)
	})
	return info
}

// isOutsideInLine reports whether the run waits for a permit outside of memory.
func isOutsideInLine(info *durable.RunInfo) bool {
	return info.Status == durable.StatusWaiting && len(info.OpenCalls) == 1 && info.OpenCalls[0].Limit != ""
}

// A step that waits for a permit leaves memory, Get tells its place, and it continues when the permit is free.
func TestStepInLineTakesNoMemory(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		limit := durable.NewLimit("one", durable.Concurrent(1))
		w := holding(limit, release, durable.LimitKey("acme"))
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		ids := []string{"first", "second", "third"}
		runs := make([]*durable.Run[string], len(ids))
		for i, id := range ids {
			var err error
			if runs[i], err = w.Start(within(t), e, id, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
			await(t, id+" to ask", func() bool {
				limits, err := e.Limits(within(t))
				return err == nil && len(limits) == 1 && limits[0].Held+limits[0].Waiting == i+1
			})
		}
		for i, id := range ids[1:] {
			info := waitsOutside(t, e, id)
			if wait := info.OpenCalls[0]; wait.Limit != "one" || wait.LimitKey != "acme" || wait.Before != i || wait.Name != "call" {
				t.Errorf("%s waits for %+v, want the limit with %d before it", id, wait, i)
			}
		}
		close(release)
		for i, run := range runs {
			if out, err := run.Result(within(t)); err != nil || out != ids[i] {
				t.Errorf("%s: %q, %v", ids[i], out, err)
			}
		}
	})
}

// SetLimit applies within a second, also to steps that wait; DeleteLimit brings the declared bounds back.
func TestSetLimitAppliesToWhatWaits(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		limit := durable.NewLimit("one", durable.Concurrent(1))
		w := holding(limit, release)
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		client := engineWith(t, s, durable.Config{})
		running(t, e)
		for _, id := range []string{"first", "second"} {
			if _, err := w.Start(within(t), e, id, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
			await(t, id+" to ask", func() bool {
				limits, err := e.Limits(within(t))
				return err == nil && len(limits) == 1 && (id == "first" && limits[0].Held == 1 || limits[0].Waiting == 1)
			})
		}
		if err := client.SetLimit(within(t), "one", durable.LimitBounds{Concurrent: 2}, durable.Actor("ann"), durable.Reason("more quota")); err != nil {
			t.Fatal(err)
		}
		second, err := w.Handle(within(t), client, "second")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.Result(within(t)); err != nil {
			t.Errorf("a step that waited while the limit was raised: %v", err)
		}
		limits, err := client.Limits(within(t))
		if err != nil || limits[0].Concurrent != 2 || limits[0].Set == nil || limits[0].SetBy != "ann" || limits[0].SetReason != "more quota" ||
			limits[0].Declared == nil || limits[0].Declared.Concurrent != 1 {
			t.Errorf("Limits = %+v, %v", limits, err)
		}
		if err := client.DeleteLimit(within(t), "one"); err != nil {
			t.Error(err)
		}
		if err := client.DeleteLimit(within(t), "one"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("DeleteLimit again = %v", err)
		}
		close(release)
	})
}

// A pause gives the place back, so the next in line goes on; a resumed run asks again.
func TestPauseGivesThePlaceBack(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		w := holding(durable.NewLimit("one", durable.Concurrent(1)), release)
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		for _, id := range []string{"first", "second", "third"} {
			if _, err := w.Start(within(t), e, id, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
			if id != "first" {
				waitsOutside(t, e, id)
				continue
			}
			await(t, "the first to hold the permit", func() bool {
				limits, err := e.Limits(within(t))
				return err == nil && len(limits) == 1 && limits[0].Held == 1
			})
		}
		if _, err := e.Pause(within(t), "second"); err != nil {
			t.Fatal(err)
		}
		close(release)
		third, _ := w.Handle(within(t), e, "third")
		if _, err := third.Result(within(t)); err != nil {
			t.Errorf("behind a paused run: %v", err)
		}
		if _, err := e.Resume(within(t), "second"); err != nil {
			t.Fatal(err)
		}
		second, _ := w.Handle(within(t), e, "second")
		if _, err := second.Result(within(t)); err != nil {
			t.Errorf("after the resume: %v", err)
		}
	})
}

// The wait for a permit counts for the total timeout of a step, and not for the timeout of its attempt.
func TestTimeoutsOfAStepInLine(t *testing.T) {
	release := make(chan struct{})
	limit := durable.NewLimit("one", durable.Concurrent(1))
	first := holding(limit, release)
	w := durable.Define("timed", func(c *durable.Ctx, _ int) (int, error) {
		err := c.Do("total", func(context.Context) error { return nil }, limit.Permit(), durable.TotalTimeout(50*time.Millisecond))
		if !errors.Is(err, durable.ErrTimeout) {
			return 0, fmt.Errorf("the total timeout: %w", err)
		}
		return 0, c.Do("attempt", func(context.Context) error { return nil }, limit.Permit(), durable.AttemptTimeout(200*time.Millisecond))
	})
	e := engineOn(t, openStore(t), first, w)
	running(t, e)
	if _, err := first.Start(within(t), e, "first"); err != nil {
		t.Fatal(err)
	}
	await(t, "the permit to be held", func() bool {
		limits, err := e.Limits(within(t))
		return err == nil && len(limits) == 1 && limits[0].Held == 1
	})
	run, err := w.Start(within(t), e, 0, durable.ID("timed"))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the second step to have waited for longer than its attempt may take", func() bool {
		info, err := e.Get(within(t), "timed")
		return err == nil && len(info.OpenCalls) == 1 && info.OpenCalls[0].Name == "attempt" && time.Since(info.OpenCalls[0].Since) > 300*time.Millisecond
	})
	close(release)
	if _, err := run.Result(within(t)); err != nil {
		t.Error(err)
	}
}

// The total timeout of a step counts from its arrival in the line, also if the run leaves memory meanwhile and each of its
// executions begins to wait anew.
func TestTotalTimeoutOfAStepInLineOutsideOfMemory(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		limit := durable.NewLimit("one", durable.Concurrent(1))
		first := holding(limit, release)
		w := durable.Define("timed", func(c *durable.Ctx, total time.Duration) (int, error) {
			err := c.Do("total", func(context.Context) error { return nil }, limit.Permit(), durable.TotalTimeout(total))
			if !errors.Is(err, durable.ErrTimeout) {
				return 0, fmt.Errorf("the total timeout: %w", err)
			}
			return 1, nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{first, w}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		if _, err := first.Start(within(t), e, "first"); err != nil {
			t.Fatal(err)
		}
		await(t, "the permit to be held", func() bool {
			limits, err := e.Limits(within(t))
			return err == nil && len(limits) == 1 && limits[0].Held == 1
		})
		for total, left := 1500*time.Millisecond, false; !left; total *= 4 { // on a slow machine the time may be over before it is seen waiting
			run := orFail(w.Start(within(t), e, total))(t)
			waitFor(t, func() bool {
				info := orFail(e.Get(within(t), run.ID()))(t)
				left = isOutsideInLine(info)
				return left || !info.EndedAt.IsZero()
			})
			if _, err := run.Result(within(t)); err != nil {
				t.Error(err)
			}
		}
		close(release)
	})
}

// A wrong limit is an error that names the field and the fix.
func TestWrongLimits(t *testing.T) {
	e := engineOn(t, openStore(t))
	for _, bad := range []*durable.Limit{
		nil, durable.NewLimit(""), durable.NewLimit("l", durable.Concurrent(0)), durable.NewLimit("l", durable.Rate(0, time.Second)),
		durable.NewLimit("l", durable.Rate(1, 0)), durable.NewLimit("l", durable.Burst(2)), durable.NewLimit("l", durable.Concurrent(1), durable.Concurrent(2)),
	} {
		if _, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("step", func(context.Context) error { return nil }, bad.Permit())
		}); !errors.Is(err, durable.ErrInvalidConfig) && !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	good := durable.NewLimit("l", durable.Concurrent(5), durable.Rate(10, time.Second), durable.Burst(3))
	for _, opts := range [][]durable.PermitOption{{durable.Units(0)}, {durable.Units(4)}, {durable.LimitKey("")}, {durable.Units(1), durable.Units(1)}} {
		if _, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("step", func(context.Context) error { return nil }, good.Permit(opts...))
		}); !errors.Is(err, durable.ErrInvalidConfig) && !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("%d options: %v", len(opts), err)
		}
	}
	for _, bad := range []durable.LimitBounds{
		{Concurrent: -1},
		{Rate: 1},
		{Period: time.Second},
		{Burst: 1},
		{Rate: 1, Period: -1},
		{Rate: 1, Period: 1000 * 24 * time.Hour},
		{Rate: 1, Period: time.Hour, Burst: 10_000},
	} {
		if err := e.SetLimit(within(t), "l", bad); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("SetLimit(%+v) = %v", bad, err)
		}
	}
	if err := e.SetLimit(within(t), "l", durable.LimitBounds{}, durable.Reason("a\x00b")); !errors.Is(err, durable.ErrInvalidName) {
		t.Errorf("SetLimit with a reason that no database takes = %v", err)
	}
	if err := e.SetLimit(within(t), "l", durable.LimitBounds{}, durable.FreezeTimers()); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("SetLimit with FreezeTimers = %v", err)
	}
}

// await waits until done reports true, because of another goroutine.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !poll(within(t), done) {
		t.Fatal("waited for ", what)
	}
}
