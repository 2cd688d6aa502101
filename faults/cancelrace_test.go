package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// verdicts are what happened to runs that were cancelled about when they completed.
type verdicts struct {
	client *durable.Engine
	l      ledger

	mu                           sync.Mutex
	cancelled, refused, recorded int
}

// judge compares what the run became with the verdict of its cancel, and reports whether the cancel was
// accepted.
func (v *verdicts) judge(t *testing.T, run *durable.Run[string], verdict error) (accepted bool) {
	id := run.ID()
	out, err := run.Result(bounded(t))
	status, undone := info(t, v.client, id).Status, len(v.l.of(t, id, "undo"))
	v.mu.Lock()
	defer v.mu.Unlock()
	state, is := errors.AsType[*durable.StateError](verdict)
	switch {
	case verdict == nil:
		v.cancelled++
		if history(t, v.client, id)["last"].Status == "completed" {
			v.recorded++
		}
		if !errors.Is(err, durable.ErrCancelled) || status != durable.StatusCancelled || undone != 1 {
			t.Errorf("%s was cancelled, and is %s: %q, %v; undone %d times", id, status, out, err, undone)
		}
	case is:
		v.refused++
		if state.Status != durable.StatusCompleted || err != nil || out != "done" || status != durable.StatusCompleted || undone != 0 {
			t.Errorf("the cancel of %s was refused (%v), and it is %s: %q, %v; undone %d times", id, verdict, status, out, err, undone)
		}
	default:
		t.Errorf("%s: %v", id, verdict)
	}
	return verdict == nil
}

func (v *verdicts) log(t *testing.T) {
	t.Helper()
	t.Logf("runs=%d cancelled=%d refused_as_completed=%d cancelled_with_the_last_step_recorded=%d", v.cancelled+v.refused, v.cancelled, v.refused, v.recorded)
}

// Row 29: runs are cancelled from another process just when their last step ends. A
// cancel that was accepted holds; one that was refused came too late indeed.
func TestRow29_CancelAgainstCompletion(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const lanes, each, work = 3, 25, 15 * time.Millisecond
		v := &verdicts{client: engineOn(t, db.openIn(t), durable.Config{}), l: newLedger(t)}
		twoWorkers(t, v.client, job{Scenario: "control", DB: db, Ledger: v.l})
		var all sync.WaitGroup
		for lane := range lanes {
			all.Go(func() {
				// How much later than the step's end the cancel is sent. It finds the end by itself, on a machine
				// of any speed: each time by a few milliseconds, and twice as far while it stays on one side.
				late, far, before := time.Duration(0), time.Millisecond, true
				for i := range each {
					id := fmt.Sprint("brink ", lane, ".", i)
					run := start(t, v.client, brink(v.l), work+max(0, -late), durable.ID(id))
					await(t, "the last step", func() bool { return v.l.has(t, id, "last") })
					realtime.Pass(time.Until(v.l.of(t, id, "last")[0].At.Add(work+max(0, late))), "the cancel is aimed at the end of the step")
					_, verdict := v.client.Cancel(bounded(t), id)
					accepted := v.judge(t, run, verdict)
					if far = min(2*far, patience/4); i > 0 && accepted != before {
						far = time.Duration(1+rand.IntN(3)) * time.Millisecond
					}
					if before = accepted; accepted {
						late += far
					} else {
						late -= far
					}
				}
			})
		}
		all.Wait()
		if v.cancelled == 0 || v.refused == 0 {
			t.Errorf("no race: %d cancelled, %d refused", v.cancelled, v.refused)
		}
		v.log(t)
	})
}

// Row 29: runs are cancelled from another process while the write of their end is under way: before it
// reaches the database, and after it, when the worker does not know yet that it succeeded. The first
// cancel holds, and the second one is refused.
func TestRow29_CancelWhileTheEndIsWritten(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const each = 4
		v := &verdicts{client: engineOn(t, db.openIn(t), durable.Config{}), l: newLedger(t)}
		for when, accepted := range map[string]bool{"before": true, "after": false} {
			var armed atomic.Bool
			met, gate := make(chan struct{}), make(chan struct{})
			ended := make(chan struct{})
			meet := func(_ int64, b *store.Batch) error {
				if slices.ContainsFunc(b.OwnershipEnds, func(w *store.OwnershipEnd) bool { return w.Status == store.Completed }) && armed.CompareAndSwap(true, false) {
					for _, c := range []chan struct{}{met, gate} {
						select {
						case c <- struct{}{}:
						case <-ended: // the test has failed
						}
					}
				}
				return nil
			}
			f := &faulty{Store: db.openIn(t), beforeCommit: meet}
			if !accepted {
				f.beforeCommit, f.afterCommit = nil, meet
			}
			worker := engineOn(t, f, durable.Config{}, brink(v.l))
			stop := runEngine(t, worker)
			for i := range each {
				armed.Store(true)
				run := start(t, worker, brink(v.l), 0, durable.ID(fmt.Sprint(when, " ", i)))
				receive(t, met, when+" the write of the end")
				_, verdict := v.client.Cancel(bounded(t), run.ID())
				receive(t, gate, "the write to go on")
				if v.judge(t, run, verdict) != accepted {
					t.Errorf("the cancel that came %s the write of the end: %v", when, verdict)
				}
			}
			close(ended)
			stop()
		}
		if v.cancelled != each || v.refused != each || v.recorded != each {
			t.Errorf("%d cancelled, %d refused, %d with the last step recorded: want %d of each", v.cancelled, v.refused, v.recorded, each)
		}
		v.log(t)
	})
}
