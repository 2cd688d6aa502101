package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
)

// fixed is the clock of a test that never moves it. It remembers what was scheduled.
type fixed struct {
	now time.Time
	due []time.Time
}

type fixedTimer struct{}

func (fixedTimer) Stop() bool { return true }

func (f *fixed) Now() time.Time { return f.now }

func (f *fixed) CallAt(due time.Time, call func()) clock.Timer {
	f.due = append(f.due, due)
	if !due.After(f.now) {
		call()
	}
	return fixedTimer{}
}

// newTimelessRun returns a lone run whose clock a test moves.
func newTimelessRun(t *testing.T) (*run, *fixed) {
	t.Helper()
	r, f := newLoneRun(t, new(slate), store.ClaimedRun{}), &fixed{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.e.clock = clock.FromManualClock(f)
	return r, f
}

// The engine is quiet when each of its runs does nothing but wait for an event or for a future time.
func TestQuiescence(t *testing.T) {
	for name, c := range map[string]struct {
		act    func(r *run)
		busy   string
		active int
		settle time.Duration
	}{
		"a run that has just begun": {func(*run) {}, "lone", 0, sequentialRunIdleTime},
		"a wait for an event":       {func(r *run) { r.idleTracker.beginWait(time.Time{}) }, "", 0, sequentialRunIdleTime},
		"a wait for a future time":  {func(r *run) { r.idleTracker.beginWait(r.e.clock.Now().Add(1)) }, "", 0, sequentialRunIdleTime},
		"a wait that ends now":      {func(r *run) { r.idleTracker.beginWait(time.Time{}); r.idleTracker.beginWait(r.e.clock.Now()) }, "lone", 0, concurrentRunIdleTime},
		"a wait that is over":       {func(r *run) { r.idleTracker.endWait(r.idleTracker.beginWait(time.Time{})) }, "lone", 0, sequentialRunIdleTime},
		"a call":                    {func(r *run) { r.idleTracker.beginBusy() }, "lone", 1, sequentialRunIdleTime},
		"two calls and a wait": {func(r *run) {
			r.idleTracker.beginBusy()
			r.idleTracker.beginBusy()
			r.idleTracker.beginWait(time.Time{})
		}, "lone", 2, concurrentRunIdleTime},
		"waits in several goroutines": {func(r *run) { r.idleTracker.noteGoroutineStart(); r.idleTracker.beginWait(time.Time{}) }, "", 0, concurrentRunIdleTime},
		"a suspended run":             {func(r *run) { r.idleTracker.beginWait(time.Time{}); r.loseOwnership() }, "lone", 0, sequentialRunIdleTime},
		"a function that has returned": {func(r *run) {
			r.idleTracker.beginWait(time.Time{})
			r.goroutines.functionReturned = true
		}, "lone", 0, sequentialRunIdleTime},
		"a run that has ended": {func(r *run) { r.idleTracker.beginWait(time.Time{}); r.idleTracker.stop() }, "lone", 0, sequentialRunIdleTime},
		"changes to read": {func(r *run) {
			r.idleTracker.beginWait(time.Time{})
			r.w.ownedRunChangesPending.Notify()
		}, "a run that has news", 0, sequentialRunIdleTime},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newTimelessRun(t)
			c.act(r)
			if got, want := r.e.LoadedRunsActivity(), (LoadedRunsActivity{c.busy, c.active, c.settle}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// With the clock of a test, a run is parked only by Park, and only if it waits for longer than ParkAfter.
func TestParkParksWaitingRuns(t *testing.T) {
	for name, c := range map[string]struct {
		act    func(r *run)
		parked bool
	}{
		"a wait for an event":  {func(r *run) { r.idleTracker.beginWait(time.Time{}) }, true},
		"a long wait":          {func(r *run) { r.idleTracker.beginWait(r.e.clock.Now().Add(r.e.cfg.ParkAfter + 1)) }, true},
		"a short wait":         {func(r *run) { r.idleTracker.beginWait(r.e.clock.Now().Add(r.e.cfg.ParkAfter)) }, false},
		"a wait beside a call": {func(r *run) { r.idleTracker.beginBusy(); r.idleTracker.beginWait(time.Time{}) }, false},
		"nothing":              {func(*run) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := newTimelessRun(t)
				c.act(r)
				if s := r.parked(time.Hour); s != nil {
					t.Fatalf("parked without the test: %+v", s)
				}
				if left := r.e.ParkWaitingRuns(); left != c.parked || r.isSuspended() != c.parked {
					t.Errorf("Park reports %v, and the run is suspended: %v", left, r.isSuspended())
				}
				if left := r.e.ParkWaitingRuns(); left != c.parked {
					t.Errorf("a second Park reports %v", left)
				}
			})
		})
	}
}

// With the clock of a test, a run expires when the clock comes to its deadline, without another read of the
// changes. Other clocks may be corrected, so there the read confirms the deadline.
func TestADeadlineIsConfirmed(t *testing.T) {
	r, f := newTimelessRun(t)
	at := f.now.Add(time.Hour)
	r.deadline.update(at)
	f.now = at
	if r.deadline.onDue(); !r.isExpiring() || r.deadline.hasCome.Load() || len(r.w.ownedRunChangesPending) != 0 {
		t.Errorf("at its deadline by a test's clock the run has expired: %v", r.isExpiring())
	}
	synctest.Test(t, func(t *testing.T) {
		r := newLoneRun(t, new(slate), store.ClaimedRun{Run: store.Run{Deadline: time.Now().Add(time.Minute)}})
		if s := r.parked(time.Minute + time.Second); s != nil || r.isExpiring() || !r.deadline.hasCome.Load() || len(r.w.ownedRunChangesPending) != 1 {
			t.Errorf("at its deadline the run is %+v; it has expired: %v; it is to be confirmed: %v", s, r.isExpiring(), r.deadline.hasCome.Load())
		}
		r.deadline.update(time.Now().Add(time.Minute)) // another process has changed it
		if r.deadline.expireIfDue(); r.isExpiring() || r.deadline.hasCome.Load() {
			t.Errorf("after the change the run has expired: %v; it is to be confirmed: %v", r.isExpiring(), r.deadline.hasCome.Load())
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if r.deadline.expireIfDue(); !r.isExpiring() {
			t.Error("the run has not expired after the read that confirms its deadline")
		}
	})
}

// An engine without a worker is quiet, parks nothing and takes no runs.
func TestQuiescenceWithoutAWorker(t *testing.T) {
	e := &Engine{}
	if got := e.LoadedRunsActivity(); got != (LoadedRunsActivity{IdleAfter: sequentialRunIdleTime}) || e.ParkWaitingRuns() || e.IsClaiming() {
		t.Errorf("%+v; it parks: %v; it claims: %v", got, e.ParkWaitingRuns(), e.IsClaiming())
	}
}

// Looking reports that the worker claims until it is full or closed. WakeAllLoops makes it claim now.
func TestIsClaiming(t *testing.T) {
	r, _ := newTimelessRun(t)
	w := r.w
	w.workflows = []string{"w"}
	workflows := w.workflows
	w.workflows = nil
	if r.e.IsClaiming() {
		t.Error("a worker without workflows claims")
	}
	w.workflows = workflows
	for _, c := range []struct {
		what        string
		concurrency int
		open        bool
		want        bool
	}{{"full", 1, true, false}, {"not full", 2, true, true}, {"closed", 2, false, false}} {
		if r.e.cfg.Concurrency = c.concurrency; !c.open {
			w.slots.Close()
		}
		if got := r.e.IsClaiming(); got != c.want {
			t.Errorf("a worker that is %s claims: %v", c.what, got)
		}
	}
	r.e.WakeAllLoops()
	if len(w.claimGroup.hints) != 1 { // that it wakes the reader of results, TestResultChecksAndAwaitCount checks
		t.Errorf("woken: %d claim loops", len(w.claimGroup.hints))
	}
}

// running is a store in which every run is still running.
type running struct{ slate }

func (*running) Statuses(_ context.Context, ids []uuid.UUID) ([]store.Status, error) {
	all := make([]store.Status, len(ids))
	for i := range all {
		all[i] = store.Running
	}
	return all, nil
}

func countAwaitCallers(e *Engine) int {
	callers, _ := e.CountAwaitCallers()
	return callers
}

// Looks counts the checks for results for as long as somebody waits, and WakeAllLoops makes the next one come
// soon. Awaited counts the callers that are no runs.
func TestResultChecksAndAwaitCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newLoneRun(t, new(running), store.ClaimedRun{}).e
		if looks, waiting := e.CountResultChecks(); looks != 0 || waiting || countAwaitCallers(e) != 0 {
			t.Errorf("nobody waits, and there were %d checks, waiting: %v", looks, waiting)
		}
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = e.Await(ctx, uuid.New()) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		before, waiting := e.CountResultChecks()
		if before == 0 || !waiting || countAwaitCallers(e) != 1 {
			t.Errorf("somebody waits, and there were %d checks, waiting: %v; %d callers", before, waiting, countAwaitCallers(e))
		}
		e.WakeAllLoops()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if looks, _ := e.CountResultChecks(); looks <= before {
			t.Errorf("after WakeAll there were %d checks, before it %d", looks, before)
		}
		leave()
		synctest.Wait()
		if _, waiting := e.CountResultChecks(); waiting || countAwaitCallers(e) != 0 {
			t.Errorf("nobody waits any more, waiting: %v, %d callers", waiting, countAwaitCallers(e))
		}
	})
}
