package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// runDeadline is when a run in memory expires, and the timer for that. Any process can change it while the run
// is executed. So the run expires only when this process has read Store.OwnedRunChanges after the deadline: it has then seen every
// change of the deadline that was acknowledged in time.
type runDeadline struct {
	r       *run
	current atomic.Pointer[twoClockTime] // nil: the run does not expire
	hasCome atomic.Bool                  // the deadline has come; the next call of Store.OwnedRunChanges confirms or changes it

	mu    sync.Mutex
	timer clock.Timer // calls onDue; guarded by mu
}

// twoClockTime is one time on two clocks.
type twoClockTime struct {
	database time.Time
	local    time.Time // on this process's clock, for context.WithTimeout and for display
}

// setInitial sets the deadline with which the run entered memory. If it has certainly passed, the run expires at
// once, so that nothing new begins.
func (d *runDeadline) setInitial(at time.Time) {
	switch left := d.r.e.clock.Until(at); {
	case at.IsZero():
	case left == 0:
		d.current.Store(&twoClockTime{database: at, local: time.Now()})
		d.expireIfDue()
	default:
		d.update(at)
	}
}

// update is called with every deadline that this process reads for the run. It sets the timer if the deadline
// has changed.
func (d *runDeadline) update(at time.Time) {
	if !d.expiryTime().Equal(at) {
		d.setTimer(at)
	}
}

// setTimer sets the timer of the deadline, and stops the previous timer if there is one.
func (d *runDeadline) setTimer(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if at.IsZero() {
		d.current.Store(nil)
		return
	}
	d.current.Store(&twoClockTime{database: at, local: time.Now().Add(at.Sub(d.r.e.clock.Now()))})
	d.timer = d.r.e.clock.CallAt(at, d.onDue)
}

// stop stops the timer, because the run ends.
func (d *runDeadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

// expiryTime returns when the run expires, or zero if it does not.
func (d *runDeadline) expiryTime() time.Time {
	if at := d.current.Load(); at != nil {
		return at.database
	}
	return time.Time{}
}

// earlierDeadline returns the earlier of the run's deadline and the deadline other, on this process's clock. The argument ok says
// whether other is a deadline.
func (d *runDeadline) earlierDeadline(other time.Time, ok bool) (time.Time, bool) {
	if at := d.current.Load(); at != nil && (!ok || at.local.Before(other)) {
		return at.local, true
	}
	return other, ok
}

// onDue is called when the deadline has come. With a manual clock the run expires at once, because no other process can have changed
// the deadline, and the clock does not advance while the worker reads.
func (d *runDeadline) onDue() {
	if d.r.e.clock.IsManual() {
		d.expireIfDue()
		return
	}
	d.hasCome.Store(true)
	d.r.w.notifyOwnedRunChange() // counts as a hint, because the run may not have entered memory yet
}

// expireIfDue begins to end the run with the status Expired if its present deadline has passed.
func (d *runDeadline) expireIfDue() {
	at := d.expiryTime()
	if at.IsZero() {
		return
	}
	if d.r.e.clock.Now().Before(at) { // the deadline was changed meanwhile, or the clock was corrected
		d.hasCome.Store(false)
		d.setTimer(at)
		return
	}
	d.r.forceEnd(forcedEnd{cause: ErrTimeout, status: store.Expired, failure: &record.Failure{
		Message: fmt.Sprintf("the run's time was over at %s", at.Format(time.RFC3339Nano)), Type: "timeout", Codes: []string{record.CodeTimeout},
	}})
}

// Deadline returns the time, on this process's clock, at which the run expires. The context of the workflow function has this
// deadline.
func (s *Scope) Deadline() (time.Time, bool) { return s.r.deadline.earlierDeadline(s.ctx.Deadline()) }

// Deadline returns the earlier of the attempt's deadline and the run's. The run's deadline does not limit
// compensations.
func (c *attemptContext) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if c.task.scope.compensating {
		return at, ok
	}
	return c.task.r.deadline.earlierDeadline(at, ok)
}

// SetRunTimeout makes a run expire when the duration d has passed from now. If d is zero, SetRunTimeout removes the run's deadline.
// SetRunTimeout returns a *StateError for a run that has ended, is being cancelled, or is expiring.
func (e *Engine) SetRunTimeout(ctx context.Context, ref string, d time.Duration, act store.ActorAndReason) error {
	if err := e.CheckOutsideTx(ctx, "a change of a timeout"); err != nil {
		return err
	}
	row, err := e.runToChange(ctx, userCaller, ref)
	if err != nil {
		return err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return err
	}
	now := e.clock.Now()
	act.At = now
	change := &store.DeadlineChangeRequest{Run: row.UUID, ActorAndReason: act}
	if d > 0 {
		change.NewDeadline, change.Timeout = now.Add(d), d
	}
	err = e.commitInSeparateTx(ctx, userCaller, func() error {
		// The store changes no deadline that may have passed, because the owner of the run may have begun to
		// end it.
		change.Now = e.clock.Now().Add(e.clock.MaxError())
		return e.store.SetDeadline(ctx, change)
	})
	if err != nil {
		return fmt.Errorf("set the timeout of run %q: %w", ref, err)
	}
	switch {
	case change.Outcome == store.Written:
	case !change.RunState.Found:
		return fmt.Errorf("%w: run %q was removed", ErrNotFound, ref)
	default:
		return &StateError{Ref: ref, Verb: "set the timeout of", Status: change.RunState.Status, Control: change.RunState.Control, Expiring: true}
	}
	if w := e.worker(); w != nil {
		if r := w.loadedRuns.get(row.UUID); r != nil {
			r.deadline.update(change.NewDeadline) // other processes read the new deadline from the database
		}
		w.notifyOwnedRunChange()
		w.wakeLoops()
	}
	return nil
}
