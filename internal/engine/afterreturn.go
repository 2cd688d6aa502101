package engine

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// ErrReturned is in the error of a durable call whose workflow function has returned. Such an error is
// ErrSuspended as well.
var ErrReturned = errors.New("durable: the workflow function has returned")

// returnedError names the call that came, or ended, too late.
type returnedError struct{ text string }

// Error returns what happened, and the fix.
func (e *returnedError) Error() string { return e.text }

// Is reports whether the target is ErrReturned or ErrSuspended.
func (e *returnedError) Is(target error) bool { return target == ErrReturned || target == ErrSuspended } //nolint:errorlint // Is compares

const awaitFix = "start the goroutine with Ctx.Go, and await it with Wait or All before the function returns"

// tooLate is the error of a call that is made after the workflow function has returned, and the log's
// first such line for the run. r.mu is held.
func (r *run) tooLate(name string, site uintptr) error {
	at := position(site)
	if !r.strayed {
		r.strayed = true
		r.logger().Warn("a durable call was made after its workflow function had returned, and is not executed: "+awaitFix,
			telemetry.KeyStep, Shown(name), telemetry.KeySource, at)
	}
	return &returnedError{fmt.Sprintf("%v: %q (%s) was called in run %q of workflow %q after that, and is not executed: %s",
		ErrReturned, Shown(name), at, r.row.Address(), r.row.Workflow, awaitFix)}
}

// returnedAlready is the error of a call that was under way when the workflow function returned.
// r.mu is held.
func (r *run) returnedAlready() error {
	return &returnedError{fmt.Sprintf("%v: this call of run %q of workflow %q was under way then, and may not be recorded: %s",
		ErrReturned, r.row.Address(), r.row.Workflow, awaitFix)}
}

// superseded is the error of a step whose result was not taken: another execution has the run, or its
// end was written while the step was under way.
func (t *task) superseded(state store.RunState) error {
	r := t.r
	r.mu.Lock()
	stray := r.returned && r.suspended == nil && t.s.branch == nil && !t.s.undo && state.Status.Terminal()
	var err error = ErrSuspended
	if stray {
		err = r.returnedAlready()
		t.strayed()
	}
	r.mu.Unlock()
	if !stray {
		r.fenced(state)
	}
	return err
}

// strayed tells the log of a step that ended too late, if it is the run's first such line. r.mu is held.
func (t *task) strayed() {
	if t.r.strayed || t.s.branch != nil { // the rest of a choice may go on unheeded
		return
	}
	t.r.strayed = true
	t.r.logger().Warn("a step ended after its workflow function had returned, and is not recorded: "+awaitFix, telemetry.KeyStep, Shown(t.name))
}
