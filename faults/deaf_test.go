package faults

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// Row 6: a step ignores its context past its timeout. The next attempt is made all the
// same, and the late result of the first goes nowhere.
func TestRow06_StepThatIgnoresItsContext(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		release, late := make(chan struct{}), make(chan struct{})
		var began atomic.Int64 // counted here: TestRow06_LateValue is about durable.Attempt
		w := durable.Define("deaf", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("deaf", func(context.Context) (int, error) {
				l.add(Entry{Run: c.ID(), Step: "deaf"})
				if began.Add(1) == 1 {
					<-release
					defer close(late)
					return -1, nil
				}
				return in, nil
			}, durable.AttemptTimeout(50*time.Millisecond), durable.Retry(durable.Fixed(time.Millisecond, 3)))
		})
		e := engineOn(t, db.openIn(t), durable.Config{}, w)
		runEngine(t, e)
		out, err := start(t, e, w, 5, durable.ID("r")).Result(bounded(t))
		if err != nil || out != 5 {
			t.Errorf("%d, %v", out, err)
		}
		close(release)
		<-late
		if c := history(t, e, "r")["deaf"]; string(c.Output) != "5" || c.Attempts != 2 {
			t.Errorf("%+v", c)
		}
		t.Logf("attempts=%d late_results_ignored=1 result=%d", len(l.of(t, "r", "deaf")), out)
	})
}

// Row 6: a process has lost a run to another, and its own execution is still stuck in a
// step that is deaf. Who waits for the result there gets it when the other is done.
func TestRow06_ResultBesideAStuckExecution(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		release := make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		defer free() // also if the test fails
		var cut atomic.Bool
		w := durable.Define("stuck", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("stuck", func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), "stuck")
				if durable.Attempt(ctx) == 1 {
					<-release
				}
				return durable.Attempt(ctx), nil
			})
		})
		f := &faulty{Store: db.openIn(t), beforeRenew: func(*store.Heartbeat) error {
			if cut.Load() {
				return fmt.Errorf("test: no renewal: %w", durable.ErrUnavailable)
			}
			return nil
		}}
		// It has one slot, so it does not take the run again itself.
		loser := engineOn(t, f, durable.Config{Lease: 500 * time.Millisecond, Concurrency: 1}, w)
		runEngine(t, loser)
		run := start(t, loser, w, 1, durable.ID("r"))
		await(t, "the first attempt", func() bool { return history(t, loser, "r")["stuck"].Status == "started" })
		cut.Store(true)
		winner := engineOn(t, db.openIn(t), durable.Config{Lease: 5 * time.Second}, w)
		runEngine(t, winner)
		if out, err := result(t, winner, w, "r"); err != nil || out != 2 {
			t.Errorf("%d, %v", out, err)
		}
		began := time.Now()
		out, err := run.Result(bounded(t))
		took := time.Since(began)
		free()
		if err != nil || out != 2 {
			t.Errorf("the result is in the database, and the process with the stuck execution waits for it in vain: %d, %v", out, err)
		}
		t.Logf("executions=%d result_beside_the_stuck_one=%d after=%v", len(l.of(t, "r", "stuck")), out, took.Round(time.Millisecond))
	})
}

// number tells when one of its values has been decoded: the last thing that an
// attempt's encoding does.
type number struct{ N int }

var decoded = make(chan int, 1024)

func (n *number) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%d", &n.N)
	select {
	case decoded <- n.N:
	default:
	}
	return err
}

func (n number) MarshalJSON() ([]byte, error) { return fmt.Append(nil, n.N), nil }

// Row 6: an attempt that was left behind ends while the next one's checkpoint is being
// committed. The value that the workflow goes on with is the recorded one (I3).
func TestRow06_LateValue(t *testing.T) {
	release := make(chan struct{})
	var once sync.Once
	s := fresh(t, "sqlite").openIn(t)
	f := &faulty{Store: s, beforeCommit: func(_ int64, b *store.Batch) error {
		for _, w := range b.Steps {
			if w.Step.Status == store.StepCompleted {
				once.Do(func() {
					close(release)
					for late := 0; late != -1; {
						late = <-decoded
					}
					realtime.Pass(20*time.Millisecond, "the checkpoint is stored a moment later")
				})
			}
		}
		return nil
	}}
	w := durable.Define("late", func(c *durable.Ctx, in int) (int, error) {
		n, err := c.Step("late", func(ctx context.Context) (number, error) {
			if durable.Attempt(ctx) == 1 {
				<-release
				return number{-1}, nil
			}
			return number{5}, nil
		}, durable.AttemptTimeout(50*time.Millisecond), durable.Retry(durable.Fixed(time.Millisecond, 3)))
		return n.N, err
	})
	e := engineOn(t, f, durable.Config{}, w)
	out, err := w.Call(bounded(t), e, 1, durable.ID("r"))
	recorded := string(history(t, e, "r")["late"].Output)
	if err != nil || recorded != "5" || out != 5 {
		t.Errorf("the checkpoint holds %s, and the workflow went on with %d: %v", recorded, out, err)
	}
	t.Logf("left_behind=1 recorded=%s used=%d", recorded, out)
}
