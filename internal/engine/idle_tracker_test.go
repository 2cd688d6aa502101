package engine

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run is parked as soon as it has done nothing but wait for its settling time.
func TestARunParksWhenItHasSettled(t *testing.T) {
	for name, c := range map[string]struct {
		act   func(i *idleTracker)
		after time.Duration
	}{
		"one wait":               {func(i *idleTracker) { i.beginWait(time.Time{}) }, sequentialRunIdleTime},
		"one call, then a wait":  {func(i *idleTracker) { i.beginBusy(); i.endBusy(); i.beginWait(time.Time{}) }, sequentialRunIdleTime},
		"two waits after a call": {func(i *idleTracker) { i.beginBusy(); i.beginWait(time.Time{}); i.beginWait(time.Time{}); i.endBusy() }, concurrentRunIdleTime},
		"a wait beside a call":   {func(i *idleTracker) { i.beginBusy(); i.beginWait(time.Time{}); i.endBusy() }, concurrentRunIdleTime},
		"two calls":              {func(i *idleTracker) { i.beginBusy(); i.beginBusy(); i.endBusy(); i.endBusy(); i.beginWait(time.Time{}) }, concurrentRunIdleTime},
		"goroutines of its own":  {func(i *idleTracker) { i.noteGoroutineStart(); i.beginWait(time.Time{}) }, concurrentRunIdleTime},
		"parked too early once":  {func(i *idleTracker) { i.minIdleTime = 300 * time.Millisecond; i.beginWait(time.Time{}) }, 300 * time.Millisecond},
		"a short ParkAfter": {func(i *idleTracker) {
			i.r.e.cfg.ParkAfter = 2 * time.Millisecond
			i.beginWait(time.Time{})
		}, 2 * time.Millisecond},
		"parked too early with a short ParkAfter": {func(i *idleTracker) {
			i.minIdleTime, i.r.e.cfg.ParkAfter = 300*time.Millisecond, 2*time.Millisecond
			i.beginWait(time.Time{})
		}, 300 * time.Millisecond},
		"a call during the settling time": {func(i *idleTracker) {
			i.beginWait(time.Time{})
			time.Sleep(sequentialRunIdleTime - 1)
			i.beginBusy()
			time.Sleep(time.Hour)
			i.endBusy()
		}, concurrentRunIdleTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLoneRun(t, new(slate), store.ClaimedRun{})
				c.act(&r.idleTracker)
				if s := r.parked(c.after - 1); s != nil {
					t.Errorf("parked before %v: %+v", c.after, s)
				}
				if s := r.parked(1); s == nil || s.cause != ErrParked || s.status != store.Waiting || !s.wakeAt.IsZero() {
					t.Errorf("after %v the run is %+v, want it parked without a wake time", c.after, s)
				}
			})
		})
	}
}

// A run stays in memory while it executes a call, waits for nothing, or waits for something that comes
// within ParkAfter. It also stays if it must end, and if its execution is over.
func TestARunStaysInMemory(t *testing.T) {
	for name, act := range map[string]func(r *run){
		"it does nothing":    func(*run) {},
		"its wait is over":   func(r *run) { r.idleTracker.endWait(r.idleTracker.beginWait(time.Time{})) },
		"it executes a call": func(r *run) { r.idleTracker.beginBusy(); r.idleTracker.beginWait(time.Time{}) },
		"it executes two calls": func(r *run) {
			r.idleTracker.beginBusy()
			r.idleTracker.beginBusy()
			r.idleTracker.beginWait(time.Time{})
			r.idleTracker.endBusy()
		},
		"a wait ends soon": func(r *run) { r.idleTracker.beginWait(r.e.clock.Now().Add(r.e.cfg.ParkAfter)) },
		"one of its waits ends soon": func(r *run) {
			r.idleTracker.beginWait(time.Time{})
			r.idleTracker.beginWait(r.e.clock.Now().Add(time.Hour))
			r.idleTracker.beginWait(r.e.clock.Now().Add(r.e.cfg.ParkAfter))
		},
		"it must end":            func(r *run) { r.forceEnd(newCancelledEnd()); r.idleTracker.beginWait(time.Time{}) },
		"it has ended":           func(r *run) { r.idleTracker.stop(); r.idleTracker.beginWait(time.Time{}) },
		"it ended while idle":    func(r *run) { r.idleTracker.beginWait(time.Time{}); r.idleTracker.stop() },
		"a call began meanwhile": func(r *run) { r.idleTracker.beginWait(time.Time{}); r.idleTracker.beginBusy() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLoneRun(t, new(slate), store.ClaimedRun{})
				act(r)
				if s := r.parked(time.Hour); s != nil {
					t.Errorf("the run was suspended: %+v", s)
				}
			})
		})
	}
}

// A parked run wakes when the first of its waits is due. A wait that ends soon keeps the run in memory only
// until it is over.
func TestAParkedRunWakesForItsFirstWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{})
		now := r.e.clock.Now()
		first := now.Add(time.Hour)
		r.idleTracker.beginWait(time.Time{})
		r.idleTracker.beginWait(now.Add(2 * time.Hour))
		r.idleTracker.beginWait(first)
		soon := r.idleTracker.beginWait(now.Add(r.e.cfg.ParkAfter / 2))
		if s := r.parked(r.e.cfg.ParkAfter / 2); s != nil {
			t.Fatalf("suspended beside a wait that ends soon: %+v", s)
		}
		r.idleTracker.endWait(soon)
		if s := r.parked(concurrentRunIdleTime); s == nil || s.cause != ErrParked || !s.wakeAt.Equal(first) {
			t.Errorf("the run is %+v, want it parked until %v", s, first)
		}
	})
}

// A wait ends at its time, by news, or with the scope, whichever comes first, and then no longer counts.
func TestAWaitEnds(t *testing.T) {
	for name, c := range map[string]struct {
		due  time.Duration // zero: no time
		act  func(r *run, news chan<- struct{})
		took time.Duration
		want error
	}{
		"at its time":              {due: 500 * time.Millisecond, took: 500 * time.Millisecond},
		"by news":                  {act: func(_ *run, news chan<- struct{}) { news <- struct{}{} }, took: time.Millisecond},
		"by news, in time":         {due: time.Second, act: func(_ *run, news chan<- struct{}) { news <- struct{}{} }, took: time.Millisecond},
		"by a cancel":              {due: time.Second, act: func(r *run, _ chan<- struct{}) { r.forceEnd(newCancelledEnd()) }, took: time.Millisecond, want: ErrCancelled},
		"by the run's end":         {act: func(r *run, _ chan<- struct{}) { r.loseOwnership() }, took: time.Millisecond, want: ErrSuspended},
		"by being parked":          {due: time.Hour, took: sequentialRunIdleTime, want: ErrSuspended},
		"by being parked for good": {took: sequentialRunIdleTime, want: ErrSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newLoneRun(t, new(slate), store.ClaimedRun{})
				news := make(chan struct{}, 1)
				var due time.Time
				if c.due > 0 {
					due = r.e.clock.Now().Add(c.due)
				}
				if c.act != nil {
					time.AfterFunc(time.Millisecond, func() { c.act(r, news) })
				}
				began := time.Now()
				if err := r.idleTracker.waitUntilDueOrNotified(r.scope(), due, news); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
					t.Errorf("the wait returned %v, want %v", err, c.want)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("the wait took %v, want %v", took, c.took)
				}
				if n := len(r.idleTracker.waits); n != 0 {
					t.Errorf("%d waits are left", n)
				}
			})
		})
	}
}

// A call that begins while it is decided that the run leaves memory waits for the decision. If it began nevertheless, the run, whose other
// branches have stopped, would wait for the function of the call.
func TestNoCallBeginsWhileTheRunIsBeingParked(t *testing.T) {
	r := newLoneRun(t, new(slate), store.ClaimedRun{})
	i := &r.idleTracker
	i.minIdleTime = time.Hour // the test calls suspendIfIdle itself
	i.beginWait(time.Time{})
	r.mu.Lock()
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		i.suspendIfIdle() // waits for r.mu after it has seen that the run only waits
	}()
	for deadline := time.Now().Add(30 * time.Second); i.mu.TryLock(); runtime.Gosched() {
		i.mu.Unlock()
		if time.Now().After(deadline) {
			t.Error("a call could begin while the run was being parked")
			break
		}
	}
	r.mu.Unlock()
	i.beginBusy()
	if !r.isSuspended() {
		t.Error("the call began although the run was to be parked")
	}
	<-decided
}
