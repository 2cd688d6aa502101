package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// deadline is when a run in memory expires. Any process can change it while the run is executed. So the
// run expires only after another read of the notifications that follows the deadline: by then this process
// has seen every change that was acknowledged in time.
type deadline struct {
	at    time.Time // on the database's clock; zero: never
	local time.Time // the same on this process's clock, for context.WithTimeout and for display
}

// setDeadline is called with every deadline that this process reads for the run. It sets the timer if the
// deadline has changed.
func (r *run) setDeadline(at time.Time) {
	if !r.expiry().Equal(at) {
		r.arm(at)
	}
}

// arm sets the timer of the deadline, and stops the previous timer if there is one.
func (r *run) arm(at time.Time) {
	r.deadlineMu.Lock()
	defer r.deadlineMu.Unlock()
	if r.deadlineTimer != nil {
		r.deadlineTimer.Stop()
		r.deadlineTimer = nil
	}
	if at.IsZero() {
		r.deadline.Store(nil)
		return
	}
	r.deadline.Store(&deadline{at: at, local: time.Now().Add(at.Sub(r.e.clock.now()))})
	r.deadlineTimer = r.e.clock.at(at, r.due)
}

func (r *run) stopDeadline() {
	r.deadlineMu.Lock()
	defer r.deadlineMu.Unlock()
	if r.deadlineTimer != nil {
		r.deadlineTimer.Stop()
	}
}

// expiry returns when the run expires, or zero if it does not.
func (r *run) expiry() time.Time {
	if d := r.deadline.Load(); d != nil {
		return d.at
	}
	return time.Time{}
}

// until returns the earlier of the run's deadline and the deadline other, on this process's clock. ok says
// whether there is another deadline.
func (r *run) until(other time.Time, ok bool) (time.Time, bool) {
	if d := r.deadline.Load(); d != nil && (!ok || d.local.Before(other)) {
		return d.local, true
	}
	return other, ok
}

// Deadline returns when the run expires, on this process's clock, for the context of its function.
func (s *Scope) Deadline() (time.Time, bool) { return s.r.until(s.ctx.Deadline()) }

// Deadline returns the earlier of the attempt's deadline and the run's. The run's deadline does not limit
// compensations.
func (c *attemptContext) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if c.t.s.undo {
		return at, ok
	}
	return c.t.r.until(at, ok)
}

// due is called when the deadline has come. With a test's clock the run expires at once: this clock does
// not advance meanwhile, and there is no other process that could have changed the deadline.
func (r *run) due() {
	if r.e.clock.test != nil {
		r.expire()
		return
	}
	r.deadlineCame.Store(true)
	r.w.news.notify()
}

// expire begins to end the run with the status Expired if its present deadline has passed.
func (r *run) expire() {
	at := r.expiry()
	if at.IsZero() {
		return
	}
	if r.e.clock.now().Before(at) { // the deadline was changed meanwhile, or the clock was corrected
		r.deadlineCame.Store(false)
		r.arm(at)
		return
	}
	r.endEarly(earlyEnd{cause: ErrTimeout, status: store.Expired, failure: &Failure{
		Message: fmt.Sprintf("the run's time was over at %s", at.Format(time.RFC3339Nano)), Type: "timeout", Codes: []string{CodeTimeout},
	}})
}

// neverCalled reports whether no process has ever called the run's function, so that there is nothing to
// compensate.
func (r *run) neverCalled() bool { return r.row.Epoch.Count == 1 && len(r.history) == 0 }

// expired reports whether the run must end because of its deadline, and not because of a cancel.
func (r *run) expired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mustEnd != nil && r.mustEnd.status == store.Expired
}

// SetTimeout makes a run expire d from now. Zero removes its deadline. SetTimeout returns a *StateError
// for a run that has ended, is being cancelled, or is expiring.
func (e *Engine) SetTimeout(ctx context.Context, ref string, d time.Duration) error {
	row, err := e.Find(ctx, ref)
	if err != nil {
		return err
	}
	if err := e.clock.ensure(ctx, e.store); err != nil {
		return err
	}
	now := e.clock.now()
	// The store changes no deadline that may have passed, because the owner of the run may have begun to
	// end it.
	change := &store.Deadline{Run: row.UUID, Now: now.Add(e.clock.doubt())}
	if d > 0 {
		change.At = now.Add(d)
	}
	if err := e.store.SetDeadline(ctx, change); err != nil {
		return fmt.Errorf("set the timeout of run %q: %w", ref, err)
	}
	switch {
	case change.Outcome == store.Written:
	case !change.State.Found:
		return fmt.Errorf("%w: run %q was removed", ErrNotFound, ref)
	default:
		return &StateError{Ref: ref, Verb: "set the timeout of", Status: change.State.Status, Control: change.State.Control, Expiring: true}
	}
	if w := e.worker(); w != nil {
		if r := w.runs.get(row.UUID); r != nil {
			r.setDeadline(change.At) // other processes read it from the database
		}
		w.news.notify()
		w.hint()
	}
	return nil
}
