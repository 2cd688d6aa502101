package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// deadline is when a run in memory expires. It can be changed while the run is executed, by any
// process. So a deadline that has come is taken for over only after the next look at the
// news: a change that was acknowledged in time is seen then.
type deadline struct {
	at    time.Time // on the database's clock; zero: never
	local time.Time // the same on this process's clock, for people and context.WithTimeout
}

// setDeadline is called with each deadline that the run is found to have.
func (r *run) setDeadline(at time.Time) {
	if !r.expiry().Equal(at) {
		r.arm(at)
	}
}

// arm sets the timer, anew if there was one.
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

// expiry is when the run expires, zero if it does not.
func (r *run) expiry() time.Time {
	if d := r.deadline.Load(); d != nil {
		return d.at
	}
	return time.Time{}
}

// until is the earlier of the run's deadline and another one, on this process's clock.
func (r *run) until(other time.Time, ok bool) (time.Time, bool) {
	if d := r.deadline.Load(); d != nil && (!ok || d.local.Before(other)) {
		return d.local, true
	}
	return other, ok
}

// Deadline is when the run's time is over, on this process's clock, for its function.
func (s *Scope) Deadline() (time.Time, bool) { return s.r.until(s.ctx.Deadline()) }

// Deadline is the earlier of the attempt's own and the run's, which bounds no compensation.
func (c *attemptContext) Deadline() (time.Time, bool) {
	at, ok := c.Context.Deadline()
	if c.t.s.undo {
		return at, ok
	}
	return c.t.r.until(at, ok)
}

// due is called when the deadline has come. A test's clock has stopped meanwhile, and there is no
// other process that could have changed the deadline.
func (r *run) due() {
	if r.e.clock.test != nil {
		r.expire()
		return
	}
	r.deadlineCame.Store(true)
	r.w.news.poke()
}

// expire dooms a run whose time is over, by the deadline that is known now.
func (r *run) expire() {
	at := r.expiry()
	if at.IsZero() {
		return
	}
	if r.e.clock.now().Before(at) { // it was changed meanwhile, or the clock was corrected
		r.deadlineCame.Store(false)
		r.arm(at)
		return
	}
	r.doom(doom{cause: ErrTimeout, status: store.Expired, failure: &Failure{
		Message: fmt.Sprintf("the run's time was over at %s", at.Format(time.RFC3339Nano)), Type: "timeout", Codes: []string{CodeTimeout},
	}})
}

// unbegun reports whether nobody has ever called the run's function, so that there is nothing to undo.
func (r *run) unbegun() bool { return r.row.Epoch.Count == 1 && len(r.history) == 0 }

// expired reports whether the run's time is over, and it is not cancelled.
func (r *run) expired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doomed != nil && r.doomed.status == store.Expired
}

// SetTimeout has a run expire d from now, or, with zero, not at all. It answers a *StateError for
// a run that has ended, is being cancelled, or is expiring.
func (e *Engine) SetTimeout(ctx context.Context, ref string, d time.Duration) error {
	row, err := e.Find(ctx, ref)
	if err != nil {
		return err
	}
	if err := e.clock.ensure(ctx, e.store); err != nil {
		return err
	}
	now := e.clock.now()
	// A deadline that may be over is not changed: its owner may have begun to end the run.
	change := &store.Deadline{Run: row.ID, Now: now.Add(e.clock.doubt())}
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
		return &StateError{ID: ref, Verb: "set the timeout of", Status: change.State.Status, Control: change.State.Control, Expiring: true}
	}
	if w := e.worker(); w != nil {
		w.mu.Lock()
		r := w.runs[row.ID]
		w.mu.Unlock()
		if r != nil {
			r.setDeadline(change.At) // others hear of it
		}
		w.news.poke()
		w.hint()
	}
	return nil
}
