package faults

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// lines are what a logger wrote.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(b))
	return len(b), nil
}

func (l *lines) with(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		all := true
		for _, part := range parts {
			all = all && strings.Contains(line, part)
		}
		if all {
			n++
		}
	}
	return n
}

// onBothOwned is onBoth, with tables that belong to a role that is no superuser.
func onBothOwned(t *testing.T, test func(*testing.T, database)) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, owned(t, kind))
		})
	}
}

// noSteps is a database that takes no checkpoints, though it reads and renews.
func noSteps(db database) rejection {
	if db.Kind == "sqlite" {
		return triggered("step")
	}
	return revoked("INSERT", "step")
}

// mostHeld is how often a run can be held in a time: it comes back after 1 s, then after 4 s, 16 s and so on.
func mostHeld(in time.Duration) int {
	n := 1
	for back := time.Second; in >= back; back *= 4 {
		in -= back
		n++
	}
	return n
}

// Row 40: the database rejects checkpoints for longer than Patience. The runs are released with
// the reason, and another worker finishes them when that is mended.
func TestRow40_RejectedBeyondPatience(t *testing.T) {
	onBothOwned(t, func(t *testing.T, db database) {
		const runs = 5
		l, log := newLedger(t), new(lines)
		w := durable.Define("one", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("charge", func(ctx context.Context) (int, error) {
				l.did(ctx, c.RunID(), "charge")
				return in, nil
			})
		})
		cfg := durable.Config{Lease: 5 * time.Second, Patience: 300 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))}
		first := engineOn(t, db.openIn(t), cfg, w)
		stop := runEngine(t, first)
		fault := noSteps(db)
		fault.turn(t, db, true)
		began := time.Now()
		var all []*durable.Run[int]
		for i := range runs {
			all = append(all, start(t, first, w, i, durable.ID(fmt.Sprint("r", i))))
		}
		for _, run := range all {
			var info *durable.RunInfo
			await(t, "a released run", func() bool {
				var err error
				if info, err = first.Get(bounded(t), run.ID()); err != nil {
					t.Fatal(err)
				}
				return info.Status == durable.StatusPending && info.Crashes > 0
			})
			if !strings.Contains(info.Reason, "charge") || info.Crashes > mostHeld(time.Since(began)) || info.WakeAt.Before(info.CreatedAt.Add(time.Second)) {
				t.Errorf("%s: reason %q, %d crashes, back at %v", run.ID(), info.Reason, info.Crashes, info.WakeAt.Sub(info.CreatedAt))
			}
		}
		await(t, "Stats.Held", func() bool { return first.Stats().HeldExecutions >= runs })
		stop()
		s := first.Stats()
		for i := range runs {
			if log.with("was released", fmt.Sprint("name=r", i, " ")) == 0 {
				t.Errorf("no line tells that r%d was released", i)
			}
		}
		if n := log.with("was released"); int64(n) != s.HeldExecutions {
			t.Errorf("%d lines tell that runs were released, which happened %d times", n, s.HeldExecutions)
		}
		executed := len(l.read(t))
		if executed > runs*(mostHeld(time.Since(began))+1) {
			t.Errorf("%d executions of %d steps: a hot loop", executed, runs)
		}
		fault.turn(t, db, false)
		other := engineOn(t, db.openIn(t), durable.Config{}, w)
		defer runEngine(t, other)()
		for i, run := range all {
			if v, err := result(t, other, w, run.ID()); err != nil || v != i {
				t.Errorf("run %d: %d, %v", i, v, err)
			}
			if info, err := other.Get(bounded(t), run.ID()); err != nil || info.Reason != "" {
				t.Errorf("run %d has ended, and its reason is %q, %v", i, info.Reason, err)
			}
		}
		t.Logf("runs=%d held=%d executions=%d", runs, s.HeldExecutions, len(l.read(t)))
	})
}

// Row 40: checkpoints are rejected for good. The run is paused at MaxCrashes with the reason, and a
// resume finishes it when that is mended.
func TestRow40_RejectedForGood(t *testing.T) {
	onBothOwned(t, func(t *testing.T, db database) {
		l, log := newLedger(t), new(lines)
		w := durable.Define("one", func(c *durable.Ctx, in int) (int, error) {
			if err := txDo(c, db, "tx"); err != nil {
				return 0, err
			}
			return c.Step("charge", func(ctx context.Context) (int, error) {
				l.did(ctx, c.RunID(), "charge")
				return in, nil
			})
		})
		e := engineOn(t, db.openIn(t), durable.Config{Patience: 100 * time.Millisecond, MaxCrashes: 2, Logger: slog.New(slog.NewTextHandler(log, nil))}, w)
		defer runEngine(t, e)()
		fault := noSteps(db)
		fault.turn(t, db, true)
		run := start(t, e, w, 7, durable.ID("r"))
		var info *durable.RunInfo
		await(t, "the pause", func() bool {
			var err error
			if info, err = e.Get(bounded(t), "r"); err != nil {
				t.Fatal(err)
			}
			return info.Status == durable.StatusPaused
		})
		if !strings.Contains(info.Reason, `"tx"`) || !strings.Contains(info.Reason, "2 times in a row") || info.Crashes != 2 {
			t.Errorf("reason %q, %d crashes", info.Reason, info.Crashes)
		}
		told := func() int { return log.with("was paused", "name=r ") }
		await(t, "the line that tells of the pause, which is written after the pause", func() bool { return told() > 0 })
		fault.turn(t, db, false)
		if _, err := e.Resume(bounded(t), "r"); err != nil {
			t.Fatal(err)
		}
		if v, err := run.Result(bounded(t)); err != nil || v != 7 {
			t.Errorf("resumed: %d, %v", v, err)
		}
		if n := told(); n != 1 {
			t.Errorf("%d lines tell that it was paused", n)
		}
		t.Logf("reason=%q", info.Reason)
	})
}

// Row 40: callers from outside get an error that says what it is, and that nothing was written,
// after Patience or with their context.
func TestRow40_RejectedCallers(t *testing.T) {
	onBothOwned(t, func(t *testing.T, db database) {
		w := durable.Define("waits", func(c *durable.Ctx, in int) (int, error) { return c.Receive[int]("go") })
		const patience = 200 * time.Millisecond
		e := engineOn(t, db.openIn(t), durable.Config{Patience: patience}, w)
		start(t, e, w, 0, durable.ID("r"))
		started := func(id string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := w.Start(ctx, e, 1, durable.ID(id))
				return err
			}
		}
		for what, c := range map[string]struct {
			fault rejection
			call  func(context.Context) error
		}{
			"start":  {triggered("run"), started("s")},
			"signal": {triggered("signal"), func(ctx context.Context) error { return e.Signal(ctx, "r", "go", 1) }},
			"pause":  {triggered("event"), func(ctx context.Context) error { return second(e.Pause(ctx, "r")) }},
			"limit": {triggered("step_limit"), func(ctx context.Context) error {
				return e.SetLimit(ctx, "l", durable.LimitBounds{Concurrent: 1})
			}},
		} {
			c.fault.turn(t, db, true)
			err := c.call(bounded(t))
			failed, typed := errors.AsType[*durable.WriteError](err)
			if !errors.Is(err, durable.ErrRejected) || !typed || failed.MayHaveCommitted {
				t.Errorf("%s: %v: want ErrRejected, and that nothing was written", what, err)
			}
			began := time.Now()
			short, cancel := context.WithTimeout(bounded(t), 60*time.Millisecond)
			if err := c.call(short); !errors.Is(err, context.DeadlineExceeded) && time.Since(began) < patience { // on a slow machine one try takes longer
				t.Errorf("%s with a short context: %v", what, err)
			}
			cancel()
			c.fault.turn(t, db, false)
			if err := c.call(bounded(t)); err != nil {
				t.Errorf("%s, when that was mended: %v", what, err)
			}
		}
	})
}
