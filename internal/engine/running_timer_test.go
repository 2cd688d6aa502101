package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func TestARunningTimerFiresAfterItsTime(t *testing.T) {
	for _, d := range []time.Duration{time.Nanosecond, sequentialRunIdleTime, 20 * time.Millisecond, concurrentRunIdleTime, 99999999, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int32
			timer := afterRunning(d, func() { calls.Add(1) })
			passes := func(d time.Duration, want int32) {
				t.Helper()
				time.Sleep(d)
				if synctest.Wait(); calls.Load() != want {
					t.Errorf("a timer of %v was called %d times, want %d", d, calls.Load(), want)
				}
			}
			passes(d-1, 0)
			timer.restart(d)
			passes(d-1, 0)
			passes(maxRunningTimerParts, 1) // parts are rounded up to nanoseconds
			timer.restart(d)
			passes(2*d, 1)
			stopped := afterRunning(d, func() { calls.Add(1) })
			passes(d-1, 1)
			stopped.stop()
			stopped.restart(d)
			passes(2*d, 1)
		})
	}
}

// standStill fires the timer as it fires when the process goes on after it has stood still for longer than the timer: at once, and before
// other goroutines of the process have executed.
func (t *runningTimer) standStill() { t.endPart() }

// A run that settles, and whose process stands still for longer than that, gets time to make its next call.
func TestARunOfAProcessThatStoodStillDoesNotPark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{})
		r.idleTracker.noteGoroutineStart()
		r.idleTracker.beginWait(time.Time{})
		r.idleTracker.suspendTimer.standStill()
		if s := r.parked(concurrentRunIdleTime / 2); s != nil {
			t.Errorf("the run was suspended by %v", s.cause)
		}
		r.idleTracker.beginBusy()
		r.idleTracker.endBusy()
		if s := r.parked(concurrentRunIdleTime - 1); s != nil {
			t.Errorf("after a call the run was suspended early, by %v", s.cause)
		}
		if s := r.parked(1); s == nil {
			t.Error("the run stays in memory")
		}
	})
}

// A run that must end repeats its recorded calls. Its context does not end because its process stands still between two of them.
func TestTheContextOfARunOfAProcessThatStoodStillGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{
			Run:     store.Run{Control: store.CancelRequested},
			History: []store.Step{{Name: "a", Kind: store.KindStep, Status: store.StepCompleted}, {Name: "b", Kind: store.KindStep, Status: store.StepCompleted}},
		})
		r.noteReplayBegins()
		repeats := func() {
			r.mu.Lock()
			r.noteReplayedCallLocked()
			r.mu.Unlock()
		}
		for range 2 {
			time.Sleep(concurrentRunIdleTime / 2)
			r.mu.Lock()
			r.lastReplayedAt = r.lastReplayedAt.Add(-time.Hour) // so long does the process stand still
			r.mu.Unlock()
			r.contextEndTimer.standStill()
			time.Sleep(concurrentRunIdleTime / 4)
			if synctest.Wait(); r.ctx.Err() != nil {
				t.Fatal("the context has ended between two recorded calls")
			}
			repeats()
		}
		time.Sleep(concurrentRunIdleTime - 1)
		if synctest.Wait(); r.ctx.Err() != nil {
			t.Error("the context has ended early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); r.ctx.Err() == nil {
			t.Error("the context goes on when no call is repeated")
		}
	})
}
