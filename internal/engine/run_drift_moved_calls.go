package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// If newer code moves calls of the function into a branch, no record is missing in the scope of the branch, and the branch would execute the
// calls a second time. The function shows it: it waits for the branch although the history holds calls that the function has not made. In
// unchanged code, a branch with a call without an outcome has not returned, so the recorded calls of the function all come before its wait
// for the branch.
//
// So an open call in a branch that the function started waits until the function has made its recorded calls, or waits for the branch. In
// unchanged code, the function gets this far without the branch. If the function waits in a way that durable does not see, such as for a plain
// channel, the call is executed after maxWaitForFunction.

// maxWaitForFunction bounds how long an open call of a branch waits for the replay of the function.
const maxWaitForFunction = 5 * time.Second

// functionReplay says how far the function has repeated its recorded calls. run.mu guards it.
type functionReplay struct {
	awaitedBranches map[*Branch]bool // the branches for which the goroutine of the function waits; nil: it does not wait for any
	changed         chan struct{}    // closed when awaitedBranches was set or the function has made its recorded calls; nil: nobody waits for that
}

func (f *functionReplay) noteChange() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// NoteFunctionAwaits notes that the calling goroutine begins to wait until one of the branches, or all of them, have returned. The caller
// calls the returned function when the wait is over. NoteFunctionAwaits has no effect if the calling goroutine is not the one of the workflow
// function.
func NoteFunctionAwaits(branches []*Branch) (over func()) {
	if len(branches) == 0 || !branches[0].scope.r.checksMissingCalls {
		return func() {}
	}
	r := branches[0].scope.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missingCallCounts[""] <= 0 || stack.BaseFunction() != r.functionStackBase {
		return func() {}
	}
	r.functionReplay.awaitedBranches = make(map[*Branch]bool, len(branches))
	for _, b := range branches {
		r.functionReplay.awaitedBranches[b] = true
	}
	r.functionReplay.noteChange()
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.functionReplay.awaitedBranches = nil
	}
}

// awaitFunctionReplay is called before an open call of the scope is executed or waits. It returns ErrDiverged if the function waits for the
// branch of the scope, although the history holds calls that the function has not made.
func (s *Scope) awaitFunctionReplay(full string) error {
	r := s.r
	changed, err := s.checkMovedCall(full)
	if changed == nil {
		return err
	}
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	timer := time.NewTimer(maxWaitForFunction)
	defer timer.Stop()
	for changed != nil {
		select {
		case <-changed:
			changed, err = s.checkMovedCall(full)
		case <-s.ctx.Done():
			return nil
		case <-timer.C:
			return nil
		}
	}
	return err
}

// If the call has to wait for the replay of the function, checkMovedCall returns a channel that is closed when that replay has
// progressed; otherwise it returns nil.
func (s *Scope) checkMovedCall(full string) (changed <-chan struct{}, err error) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.mayBeMovedCallLocked() {
		return nil, nil
	}
	if r.functionReplay.awaitedBranches[s.branch] {
		return nil, s.movedCallErrorLocked(fmt.Sprintf("%q in run %q of workflow %q has no outcome", naming.Display(full), r.row.NameOrUUID(), r.row.Workflow))
	}
	if r.functionReplay.changed == nil {
		r.functionReplay.changed = make(chan struct{})
	}
	return r.functionReplay.changed, nil
}

// mayBeMovedCallLocked reports whether the calling goroutine is in a branch that the function started, while the function may not have made
// all its recorded calls. r.mu is held.
func (s *Scope) mayBeMovedCallLocked() bool {
	r := s.r
	return s.branch != nil && s.branch.parent == nil && !s.branch.isGraphNode && r.missingCallCounts[""] > 0 && r.workflowDefinition().OnDrift != DriftContinues &&
		s.endReasonLocked() == nil && !s.branch.hasBranches.Load() && stack.BaseFunction() == s.branch.stackBase.Load()
}

// movedCallErrorLocked returns ErrDiverged if the function has recorded calls that it has not made. r.mu is held.
func (s *Scope) movedCallErrorLocked(what string) error {
	names := s.r.missingCallNames("", math.MaxInt32)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s, and the function waits for branch %q before it has called %q, which the history holds: the name of a branch belongs to the names of its calls, so leave the calls where they were, "+
		"and call them elsewhere only if Ctx.Patched says so", ErrDiverged, what, s.branch.Name(), names)
}

// noteSuspendedBranchInPreflight is called when the calling goroutine has received ErrSuspended from the branch of the scope. In a preflight, it
// notes a divergence in the cases in which a worker holds the run at the open call of the branch.
func (s *Scope) noteSuspendedBranchInPreflight() {
	r := s.r
	if r.preflightFindings == nil || s.branch == nil || s.branch.parent != nil {
		return
	}
	r.mu.Lock()
	var err error
	if r.missingCallCounts[""] > 0 && r.workflowDefinition().OnDrift != DriftContinues && r.suspension == nil && r.forcedEnd == nil &&
		stack.BaseFunction() == r.functionStackBase {
		err = s.movedCallErrorLocked(fmt.Sprintf("branch %q of run %q of workflow %q has calls without an outcome", s.branch.Name(), r.row.NameOrUUID(), r.row.Workflow))
	}
	r.mu.Unlock()
	if err != nil {
		s.reportDivergence(naming.ParseDisplay(s.branch.Name()), err)
	}
}

// checkOpenSleep returns ErrDiverged if recorded calls are missing before a recorded sleep in which the run was when it was last
// executed.
func (s *Scope) checkOpenSleep(full string, recorded *store.Step) error {
	r := s.r
	if !r.checksMissingCalls {
		return nil
	}
	r.mu.Lock()
	isOpen := (r.missingCallCounts[s.namePrefix] > 0 || s.branch != nil && r.missingCallCounts[""] > 0) && !r.hasCallBegunSince(recorded.Seq, recorded.NextAt)
	r.mu.Unlock()
	if !isOpen {
		return nil
	}
	return s.checkNoCallsMissing(full, store.KindSleep, recorded)
}
