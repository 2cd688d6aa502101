package engine

import (
	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// doom is why a run must end although its function would go on: it was cancelled, or its
// time is over. Its contexts end, calls that are not in history answer the cause, and when the
// function has returned, whatever it returned, compensations run and the run ends with the
// status. A doomed run that is claimed is executed in the same way, to register its
// compensations again.
type doom struct {
	cause   error
	status  store.Status
	failure *Failure // nil: its row says why

	recorded bool // by an execution before; see decided.go
}

func cancelled() doom { return doom{cause: ErrCancelled, status: store.Cancelled} }

// doom lets the run end. A cancel goes before a timeout.
func (r *run) doom(d doom) {
	r.mu.Lock()
	takes := r.doomed == nil || d.status == store.Cancelled && r.doomed.status != store.Cancelled
	if takes {
		r.doomed = &d
	}
	r.mu.Unlock()
	if takes {
		r.endCtx(d.cause)
		r.endWork(d.cause)
	}
}

// goesOn returns why the run can do nothing new, nil if it can.
func (r *run) goesOn() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.suspended != nil:
		return ErrSuspended
	case r.doomed != nil:
		return r.doomed.cause
	}
	return nil
}

// isDoomed reports whether the run must end.
func (r *run) isDoomed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doomed != nil
}

// asked does what was asked of the run.
func (r *run) asked(bits store.ControlBits) {
	switch {
	case bits&store.CancelRequested != 0:
		r.doom(cancelled())
	case bits&store.PausedMask != 0:
		r.suspend(suspension{cause: ErrPaused, status: store.Pending}) // the database makes that paused, unless it was resumed
	}
}

// end brings the run to its end when its function has returned: compensations if it did
// not complete, then its children, then its result. It returns early if the run is
// suspended.
func (r *run) end(output []byte, failure *Failure) {
	for {
		status, failure := r.verdict(failure)
		if status != store.Completed {
			if !r.decide(status, failure) || !r.compensate() {
				return
			}
			failure = r.withUndone(failure)
		}
		if !r.closeChildren() || !r.ending.CompareAndSwap(false, true) {
			return
		}
		asked := r.finish(status, output, failure)
		if asked == 0 {
			return
		}
		r.ending.Store(false)
		r.asked(asked)
	}
}

// verdict is how the run ends, given what its function returned.
func (r *run) verdict(failure *Failure) (store.Status, *Failure) {
	r.mu.Lock()
	d := r.doomed
	r.mu.Unlock()
	switch {
	case d == nil && failure == nil:
		return store.Completed, nil
	case d == nil:
		return store.Failed, failure
	case d.failure != nil:
		return d.status, d.failure
	default:
		return d.status, r.cancelFailure()
	}
}

// cancelFailure is the record of a cancel, with the reason and the actor in the row.
func (r *run) cancelFailure() *Failure {
	rows, err := r.e.store.Find(r.durable, []store.Ref{{Text: r.row.ID.String()}}, store.NoPayloads)
	if err != nil || rows[0] == nil {
		r.logger().Warn("why a run was cancelled could not be read; the columns of its row say it", telemetry.KeyError, err)
		return CancelFailure("", "")
	}
	return CancelFailure(rows[0].CancelReason, rows[0].CancelledBy)
}

// CancelFailure is the error of a cancelled run.
func CancelFailure(reason, actor string) *Failure {
	return endedBy(&Failure{Message: "cancelled", Type: "cancelled", Codes: []string{CodeCancelled}}, reason, actor)
}

// TerminateFailure is the error of a run that was ended by a termination.
func TerminateFailure(reason, actor string) *Failure {
	return endedBy(&Failure{Message: "terminated", Type: "terminated", Codes: []string{CodeTerminated, CodeCancelled}}, reason, actor)
}

func endedBy(f *Failure, reason, actor string) *Failure {
	if actor != "" {
		f.Message += " by " + actor
	}
	if reason != "" {
		f.Message += ": " + reason
	}
	return f
}

// closeChildren cancels the children that may still run, unless they were detached. It
// comes before the end is written, so that a process that dies in between leaves nothing
// behind: whoever executes the run again comes here again.
func (r *run) closeChildren() bool {
	r.mu.Lock()
	open := len(r.children)
	r.mu.Unlock()
	if open == 0 {
		return true
	}
	const reason = "its parent has ended"
	o := &store.Order{
		Verb: store.VerbCancel, Scope: store.ChildrenOnly, Runs: ids(r.row.ID), Now: r.e.clock.now(),
		Reason: reason, Error: CancelFailure(reason, "").Encode(),
	}
	if err := r.e.patiently(r.durable, until(r.hard.Done()), func() error { return r.e.store.Control(r.durable, o) }); err != nil {
		r.unwritten("cancel the children of the run, which ends", "", err)
		return false
	}
	r.e.reportCancel(o)
	r.w.news.poke()
	return true
}

// child notes a child that may still run, childEnded that it does not.
func (r *run) child(name string, id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = make(map[string]uuid.UUID)
	}
	r.children[name] = id
}

func (r *run) childEnded(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, name)
}
