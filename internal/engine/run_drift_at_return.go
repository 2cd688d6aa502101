package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
)

// A function that returns, fails or panics before it has made the recorded calls of its own goroutine does not fit the history either.
// No later call can show this, and if the function fails, its compensations would undo too little. So recorded calls that are missing
// are checked before the end of the run has any consequence, and in a branch before its result is used.
//
// Nothing is checked in these cases, in which the function or the branch may return early because its contexts have ended: in a run that must
// end and has repeated its recorded calls, in a branch that a choice has ended, and in a branch that still executes when the function has
// returned.

// missingCallsErrorLocked returns ErrDiverged if the goroutine of the scope with the prefix, which has returned, has not made all its
// recorded calls. r.mu is held.
func (r *run) missingCallsErrorLocked(prefix, what string) (names []string, err error) {
	def := r.workflowDefinition()
	if !r.checksMissingCalls || r.missingCallCounts[prefix] <= 0 || def == nil || def.OnDrift == DriftContinues {
		return nil, nil
	}
	if names = r.missingCallNames(prefix, math.MaxInt32); len(names) == 0 {
		return nil, nil
	}
	return names, fmt.Errorf("%w: %s, and the code has not called %q, which the history holds: declare a call that was renamed with Renamed, "+
		"and one that was removed with Retired", ErrDiverged, what, names)
}

// checkMissingCallsAtEnd is called when the function of the run has returned the failure, or nil. If the code did not make all
// recorded calls, it suspends the run or, if the DriftPolicy of the workflow does not hold the run, returns a failure. The argument
// verb says how the run would end.
func (r *run) checkMissingCallsAtEnd(verb string, failure *record.Failure) *record.Failure {
	if failure != nil && slices.Contains(failure.Codes, record.CodeDiverged) || r.functionStackBase == 0 { // the function was not called
		return nil
	}
	what := fmt.Sprintf("run %q of workflow %q would %s", r.row.NameOrUUID(), r.row.Workflow, verb)
	if failure != nil {
		what += fmt.Sprintf(" (%.200s)", failure.Message)
	}
	r.mu.Lock()
	names, err := r.missingCallsErrorLocked("", what)
	r.mu.Unlock()
	if err == nil || r.suspendForDrift(naming.ParseDisplay(names[0]), err) {
		return nil
	}
	return &record.Failure{Message: err.Error(), Codes: []string{record.CodeDiverged}, Permanent: true}
}

// CheckMissingCallsAtReturn returns ErrDiverged if the code of the branch did not make all recorded calls of the branch.
// CheckMissingCallsAtReturn then also holds the run if the DriftPolicy of the workflow is DriftHolds. Call CheckMissingCallsAtReturn when
// the function of the branch has returned.
func (b *Branch) CheckMissingCallsAtReturn() error {
	s := &b.scope
	r := s.r
	if !r.checksMissingCalls {
		return nil
	}
	r.mu.Lock()
	var names []string
	var err error
	if b.stackBase.Load() != 0 && r.suspension == nil && r.forcedEnd == nil && !r.goroutines.functionReturned && b.earliestEndOfBranchOrAncestor().IsZero() &&
		(r.preflightFindings == nil || !b.hasNextCall.Load() && !r.suspensionNotices.sawSuspendedBranch.hasCaller(r)) {
		names, err = r.missingCallsErrorLocked(s.namePrefix, fmt.Sprintf("branch %q of run %q of workflow %q returns", b.Name(), r.row.NameOrUUID(), r.row.Workflow))
	}
	r.mu.Unlock()
	if err == nil {
		return nil
	}
	return s.reportDivergence(naming.ParseDisplay(names[0]), err)
}
