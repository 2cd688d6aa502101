package faults

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// evil is an error whose own text panics, as that of a nil pointer does.
type evil struct{ text string }

func (e *evil) Error() string { return e.text }

// panics is a workflow that panics where its input says.
var panics = durable.Define("panics", func(c *durable.Ctx, where string) (string, error) {
	plain := func(context.Context) (string, error) { panic("oops in " + where) }
	switch where {
	case "workflow":
		panic("oops in " + where)
	case "nil workflow":
		panic(nil)
	case "evil workflow":
		panic((*evil)(nil))
	case "step":
		return c.Step("boom", plain)
	case "timed step": // its function runs in a goroutine of the library's
		return c.Step("boom", plain, durable.AttemptTimeout(time.Minute))
	case "retried step":
		return c.Step("boom", plain, durable.Retry(durable.Fixed(time.Millisecond, 3)))
	case "evil step":
		return c.Step("boom", func(context.Context) (string, error) { panic((*evil)(nil)) })
	case "evil timed step":
		return c.Step("boom", func(context.Context) (string, error) { panic((*evil)(nil)) }, durable.AttemptTimeout(time.Minute))
	case "nil error":
		return c.Step("boom", func(context.Context) (string, error) { return "", (*evil)(nil) })
	case "encoding":
		_, err := c.Step("boom", func(context.Context) (angry, error) { return angry{}, nil })
		return "", err
	}
	return c.Step("fine", func(context.Context) (string, error) { return where, nil })
})

// angry cannot be encoded without a panic.
type angry struct{}

func (angry) MarshalJSON() ([]byte, error) { panic("oops in encoding") }

// Row 3: a panic fails its run, with the stack, and nothing else.
func TestRow03_Panics(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		e := engineOn(t, db.openIn(t), durable.Config{}, panics)
		runEngine(t, e)
		wheres := []string{"workflow", "nil workflow", "step", "timed step", "retried step", "nil error", "encoding"}
		for _, where := range wheres {
			start(t, e, panics, where, durable.ID(where))
			start(t, e, panics, "neighbour", durable.ID("beside "+where))
		}
		for _, where := range wheres {
			_, err := result(t, e, panics, where)
			mustFail(t, err, durable.ErrPanic, where)
			var failed *durable.RunError
			if !errors.As(err, &failed) || !strings.Contains(failed.Stack, "panic_test.go") {
				t.Errorf("%s: no stack that names the file: %+v", where, failed)
			}
			if _, err := result(t, e, panics, "beside "+where); err != nil {
				t.Errorf("the neighbour of %s: %v", where, err)
			}
		}
		if c := history(t, e, "retried step")["boom"]; c.Attempts != 3 || c.Status != "failed" || !errors.Is(c.Err, durable.ErrPanic) {
			t.Errorf("%+v", c)
		}
		t.Logf("panics=%d with_stack=%d neighbours_finished=%d", len(wheres), len(wheres), len(wheres))
	})
}

func init() {
	scenarios["evil"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{panics}})
		if err != nil {
			return err
		}
		_, err = panics.Call(ctx, e, j.Point, durable.ID(j.Point))
		say("answer", errors.Is(err, durable.ErrPanic), err)
		return nil
	}
}

// A value that panics while its panic is being recorded must not take the process with
// it: in a process of its own, since it does.
func TestRow03_PanicWithAnErrorThatPanics(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"evil step", "evil timed step", "evil workflow"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			p := spawn(t, job{Scenario: "evil", DB: fresh(t, "sqlite"), Point: where})
			answer, alive := p.next("answer")
			if !alive {
				p.wait()
				t.Fatalf("the panic killed the process: %v: %.300s", p.state, p.stderr.String())
			}
			if !strings.HasPrefix(answer, "true") {
				t.Error(answer)
			}
			t.Logf("%s: process_alive=%v %s", where, alive, answer)
		})
	}
}

// leaves is a workflow whose goroutine leaves by runtime.Goexit where its input says.
var leaves = durable.Define("leaves", func(c *durable.Ctx, where string) (string, error) {
	leave := func(context.Context) (string, error) {
		runtime.Goexit()
		return "", nil
	}
	switch where {
	case "workflow":
		runtime.Goexit()
	case "step":
		return c.Step("gone", leave)
	case "timed step":
		return c.Step("gone", leave, durable.AttemptTimeout(time.Minute))
	case "goroutine": // errgroup and WaitGroup see no error of it
		var all sync.WaitGroup
		all.Go(func() { _, _ = c.Step("gone", leave) })
		all.Wait()
		return "nothing happened", nil
	}
	return c.Step("fine", func(context.Context) (string, error) { return where, nil })
})

// Row 5: runtime.Goexit fails its run, frees its slot and leaks nothing.
func TestRow05_Goexit(t *testing.T) {
	onBothAlone(t, func(t *testing.T, db database) {
		before := goleak.IgnoreCurrent()
		s, err := db.open()
		if err != nil {
			t.Fatal(err)
		}
		e := engineOn(t, s, durable.Config{Concurrency: 1}, leaves)
		stop := runEngine(t, e)
		wheres := []string{"workflow", "step", "timed step", "goroutine"}
		for _, where := range wheres {
			start(t, e, leaves, where, durable.ID(where))
			start(t, e, leaves, "fine", durable.ID("after "+where))
		}
		for _, where := range wheres {
			_, err := result(t, e, leaves, where)
			mustFail(t, err, durable.ErrGoexit, where)
			if out, err := result(t, e, leaves, "after "+where); err != nil || out != "fine" {
				t.Errorf("the one slot was not given back after %s: %q, %v", where, out, err)
			}
		}
		stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
		t.Logf("goexits=%d failed=%d slots=1 finished_after=%d leaks=0", len(wheres), len(wheres), len(wheres))
	})
}

// executions are the executions of one run's step, in the order in which they began.
type executions struct {
	mu  sync.Mutex
	all []context.Context
}

// begin adds an execution, and returns its number, and how many of the earlier ones still believe that they
// own the run.
func (x *executions) begin(ctx context.Context) (n, owners int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, before := range x.all {
		if before.Err() == nil {
			owners++
		}
	}
	x.all = append(x.all, ctx)
	return len(x.all), owners
}

// Row 8: a process loses a run, because its renewals fail, and claims it again itself
// while the first execution is still stuck in its step. The first one's end must not
// make the worker forget the second: its lease is kept, and a drain ends it.
//
// On a slow machine the second execution may lose its lease as well, and a third one takes its place. The
// worker must have ended the second one then. It does not end an execution that it has forgotten.
func TestRow08_SameProcessClaimsAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		var began executions
		var cut atomic.Bool      // renewals fail
		var second atomic.Int64  // the epoch of the second execution
		var renewed atomic.Int64 // renewals of its lease, or of a later one, since it was last set to zero
		f := &faulty{Store: db.openIn(t)}
		release, finish, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		defer free() // also if the test fails: a drain would leave the stuck execution behind
		w := durable.Define("twice", func(c *durable.Ctx, in int) (int, error) {
			first := false
			defer func() {
				if first {
					close(returned)
				}
			}()
			return c.Step("stuck", func(ctx context.Context) (int, error) {
				n, owners := began.begin(ctx)
				l.did(ctx, c.ID(), "stuck")
				if first = n == 1; first {
					cut.Store(true)
					<-release // deaf to its context
					return 1, nil
				}
				if owners > 0 {
					t.Errorf("execution %d begins while the worker has not ended %d earlier ones: it forgot them", n, owners)
				}
				select {
				case <-finish:
					return n, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		})
		f.beforeRenew = func(h *store.Heartbeat) error {
			if cut.Load() {
				return fmt.Errorf("test: no renewal: %w", durable.ErrUnavailable)
			}
			for _, lease := range h.Leases {
				if epoch := second.Load(); epoch > 0 && int64(lease.Epoch.Count) >= epoch {
					renewed.Add(1)
				}
			}
			return nil
		}
		f.afterClaim = func(_ int64, c *store.ClaimResult) error {
			if cut.CompareAndSwap(true, false) { // the second lease is renewed from its beginning
				second.Store(int64(c.Runs[0].Run.Epoch.Count))
			}
			return nil
		}
		e := engineOn(t, f, durable.Config{Lease: 600 * time.Millisecond, MaxCrashes: 1000}, w)
		runEngine(t, e)
		start(t, e, w, 1, durable.ID("r"))
		await(t, "a renewal of the second execution", func() bool { return renewed.Load() > 0 })
		free() // the first execution's step ends now
		await(t, "the end of the first execution", func() bool { return closed(returned) && e.Stats().LostExecutions > 0 })
		renewed.Store(0)
		await(t, "renewals after the end of the first execution", func() bool { return renewed.Load() > 1 })
		close(finish)
		out, err := result(t, e, w, "r")
		if err != nil || out < 2 {
			t.Errorf("%d, %v", out, err)
		}
		t.Logf("lost=1 reclaimed_here=1 renewals_after_the_first_ended=%d executions=%d", renewed.Load(), len(l.of(t, "r", "")))
	})
}

// A database that is away for longer than the journal's patience, while an at-most-once
// step is announced, must not fail the run: it leaves this process, and is executed
// when the database is back.
func TestRow12_AnnounceWhileTheDatabaseIsAway(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		var mu sync.Mutex
		refused := 0
		f := &faulty{Store: db.openIn(t)}
		f.beforeCommit = func(_ int64, b *store.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if len(b.Steps) == 0 || refused >= 40 {
				return nil
			}
			refused++
			return fmt.Errorf("test: away: %w", durable.ErrUnavailable)
		}
		w := durable.Define("announced", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("once", func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), "once")
				return in, nil
			}, durable.AtMostOnce())
		})
		e := engineOn(t, f, durable.Config{Lease: 2 * time.Second, Patience: 50 * time.Millisecond}, w)
		runEngine(t, e)
		start(t, e, w, 3, durable.ID("r"))
		await(t, "a refused announcement", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return refused > 3
		})
		await(t, "the run to leave this execution", func() bool {
			i := info(t, e, "r")
			return i.Epoch > 1 || !i.EndedAt.IsZero()
		})
		mu.Lock()
		refused = 40
		mu.Unlock()
		out, err := result(t, e, w, "r")
		if err != nil || out != 3 {
			t.Errorf("the run failed for a database that was away for a moment: %d, %v", out, err)
		}
		if n := len(l.of(t, "r", "")); n > 1 {
			t.Errorf("ran %d times", n)
		}
		t.Logf("outage=announce runs=%d result=%d err=%v", len(l.of(t, "r", "")), out, err)
	})
}
