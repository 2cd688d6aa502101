package engine

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// ErrReturned is wrapped by the error of a durable call that is made after the workflow function has returned. The error of such a late
// call also matches ErrSuspended.
var ErrReturned = errors.New("durable: the workflow function has returned")

// lateCallError is the error of a call that began or ended after the workflow function had returned.
type lateCallError struct{ text string }

// Error returns the text, which says what happened and names the fix.
func (e *lateCallError) Error() string { return e.text }

// Is reports whether the target is ErrReturned or ErrSuspended.
func (e *lateCallError) Is(target error) bool { return target == ErrReturned || target == ErrSuspended } //nolint:errorlint // Is compares

const lateCallAdvice = "start the goroutine with Ctx.Go, and await it with Wait or All before the function returns"

// refuseLateCall returns the error of a call that begins after the workflow function has returned. For the first
// such call of the run it also logs a warning. The caller holds r.mu.
func (r *run) refuseLateCall(name string, site uintptr) error {
	at := stack.Position(site)
	if !r.goroutines.loggedLateCall {
		r.goroutines.loggedLateCall = true
		r.logger().Warn("a durable call was made after its workflow function had returned, and is not executed: "+lateCallAdvice,
			telemetry.KeyStep, naming.Display(name), telemetry.KeySource, at)
	}
	return &lateCallError{fmt.Sprintf("%v: %q (%s) was called in run %q of workflow %q after that, and is not executed: %s",
		ErrReturned, naming.Display(name), at, r.row.NameOrUUID(), r.row.Workflow, lateCallAdvice)}
}

// callOpenAtReturnError returns the error of a call that was in progress when the workflow function returned.
// The caller holds r.mu.
func (r *run) callOpenAtReturnError() error {
	return &lateCallError{fmt.Sprintf("%v: this call of run %q of workflow %q was under way then, and may not be recorded: %s",
		ErrReturned, r.row.NameOrUUID(), r.row.Workflow, lateCallAdvice)}
}

// handleFencedStep returns the error of a step whose result the database did not accept: another execution owns
// the run, or the end of the run was written while the step was in progress.
func (t *stepTask) handleFencedStep(state store.RunState) error {
	r := t.r
	r.mu.Lock()
	stray := r.goroutines.functionReturned && r.suspension == nil && t.scope.branch == nil && !t.scope.compensating && state.Status.IsTerminal()
	var err error = ErrSuspended
	if stray {
		err = r.callOpenAtReturnError()
		t.warnLateStep()
	}
	r.mu.Unlock()
	if !stray {
		r.suspendAfterFencedWrite(state)
	}
	return err
}

// warnLateStep logs a warning for a step that ended too late, once per run. The caller holds r.mu.
func (t *stepTask) warnLateStep() {
	if t.r.goroutines.loggedLateCall || t.scope.branch != nil { // a branch may still be running because a choice did not wait for it
		return
	}
	t.r.goroutines.loggedLateCall = true
	t.r.logger().Warn("a step ended after its workflow function had returned, and is not recorded: "+lateCallAdvice, telemetry.KeyStep, naming.Display(t.name))
}
