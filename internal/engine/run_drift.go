package engine

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Drift means that the code of a workflow does not fit the history of a run: a call diverges from its record, or the code
// does not make recorded calls (run_drift_missing_calls.go). Unless its workflow has another DriftPolicy, the run is then held: it is
// suspended, so that nothing more is executed or compensated, and it is paused with the reason. It continues when an operator resumes
// it, or when a worker of a version that has not diverged on it claims it; see worker_retry_diverged_runs.go.

// DriftPolicy says what a worker does with a run whose recorded history does not match the code.
type DriftPolicy int8

// The policies.
const (
	DriftHolds     DriftPolicy = 0 // the run is held
	DriftContinues DriftPolicy = 1 // the call returns ErrDiverged, which the function may handle; a call that is not recorded is executed
	DriftFails     DriftPolicy = 2 // as DriftContinues, but a call that is not recorded also returns ErrDiverged while recorded calls are missing
)

// ReportDivergence reports a call that does not match its record. The argument err wraps ErrDiverged. ReportDivergence holds the run if the
// DriftPolicy of the workflow is DriftHolds, and returns the error. An empty name of a call stands for the input of the run.
func (s *Scope) ReportDivergence(name string, err error) error {
	if name != "" {
		name = s.fullName(name)
	}
	return s.reportDivergence(name, err)
}

// reportDivergence does the work of ReportDivergence for a name with its scope.
func (s *Scope) reportDivergence(full string, err error) error {
	s.r.suspendForDrift(full, err)
	return err
}

// suspendForDrift suspends the run because a call does not fit its record. It reports false if the run's workflow has another
// policy.
func (r *run) suspendForDrift(full string, err error) bool {
	if w := r.workflowDefinition(); r.preflightFindings == nil && (w == nil || w.OnDrift != DriftHolds) {
		return false
	}
	d := &store.Divergence{Version: r.e.programVersionIfOrdered(), At: r.e.clock.Now(), Call: shortenReason(naming.Display(full)), Detail: shortenReason(err.Error())}
	if r.preflightFindings != nil {
		r.preflightFindings.noteDivergence(d)
	}
	reason := "the code does not fit its history"
	if d.Version != "" {
		reason = fmt.Sprintf("the code of version %.100q does not fit its history", d.Version)
	}
	r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: shortenReason(reason + ": " + d.Detail), divergence: d})
	return true
}

// holdUnlessGraphOrFunction holds the run if its history was recorded by a graph and the code is a function, or the other way around: the code
// would execute again what the history holds, under other names. It returns a failure if the DriftPolicy of the workflow is DriftFails.
func (r *run) holdUnlessGraphOrFunction() *record.Failure {
	def := r.workflowDefinition()
	if len(r.history) == 0 || def.OnDrift == DriftContinues {
		return nil
	}
	if r.hasGraphRecords == def.IsGraph || def.IsGraph && !r.hasCallOfUser() {
		return nil
	}
	recorded, code := "a function", "a graph"
	if r.hasGraphRecords {
		recorded, code = code, recorded
	}
	err := fmt.Errorf("%w: the history of run %q was recorded by %s, and workflow %q is %s now: define the new form under another name, and keep the old one until its runs have ended",
		ErrDiverged, r.row.NameOrUUID(), recorded, r.row.Workflow, code)
	if r.suspendForDrift("", err) {
		return nil
	}
	return &record.Failure{Message: err.Error(), Codes: []string{record.CodeDiverged}, Permanent: true}
}

// shortenReason returns a text for people in at most maxReasonBytes bytes.
func shortenReason(text string) string {
	if text = record.StorableText(text); len(text) > maxReasonBytes {
		text = record.StorableText(text[:maxReasonBytes]) + "..."
	}
	return text
}

// explainOldNameUsedAgain returns the error for a name that is used twice as a divergence, if the record of that
// name belongs to a call or a branch that was renamed. Such code may be right for new runs, in which another call has the old name. r.mu is
// held.
func (s *Scope) explainOldNameUsedAgain(full string, err error) error {
	def := s.r.workflowDefinition()
	if def == nil || len(def.PreviousCallNames) == 0 || !errors.Is(err, ErrDuplicateStep) || s.r.history[full] == nil && !s.r.hasRecordedBranchLocked(full) {
		return err
	}
	old := full[len(s.namePrefix):]
	for now, before := range def.PreviousCallNames {
		if before == old {
			return fmt.Errorf("%w: Renamed(%q, %q) lets %q use the record of %q, and another call or branch has that name too: give it a name that no earlier version of the code used: %w",
				ErrDiverged, before, now, now, before, err)
		}
	}
	return err
}

// fullName returns the name of a call with its scope. For a call that was renamed, fullName returns the latest of its names for which
// the history has a record, or for which a repair has dropped a call that keeps its idempotency key. If there is no such name, fullName
// returns the present name.
func (s *Scope) fullName(name string) string {
	full := s.namePrefix + name
	def := s.r.workflowDefinition()
	if def == nil || len(def.PreviousCallNames) == 0 {
		return full
	}
	for each := range def.callNames(name) {
		if earlier := s.namePrefix + each; s.r.history[earlier] != nil || s.r.keyRenewals.keyNames[earlier] {
			return earlier
		}
	}
	return full
}

// fullBranchName returns the name of a branch with its scope. For a branch that was renamed, that is the name under which the history holds calls of
// the branch, or a choice in which it took part, or idempotency keys of its calls.
func (s *Scope) fullBranchName(name string) string {
	def := s.r.workflowDefinition()
	if def == nil || def.PreviousCallNames[name] == "" {
		return s.namePrefix + name
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	for each := range def.callNames(name) {
		if earlier := s.namePrefix + each; s.r.hasRecordedBranchLocked(earlier) {
			return earlier
		}
	}
	return s.namePrefix + name
}

// hasRecordedBranchLocked reports whether something of the branch is recorded. r.mu is held.
func (r *run) hasRecordedBranchLocked(full string) bool {
	prefix := full + naming.Separator
	for name, row := range r.history {
		if strings.HasPrefix(name, prefix) {
			return true
		}
		if c := record.DecodeChoiceStep(row); c != nil && slices.Contains(c.Of, naming.Display(full)) {
			return true
		}
	}
	for name := range r.keyRenewals.keyNames {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// callNames returns the name of a call and, if it was renamed, its previous names, the latest first.
func (d *WorkflowDefinition) callNames(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range len(d.PreviousCallNames) + 1 { // the loop is bounded, because the names may form a circle
			if !yield(name) {
				return
			}
			previous, renamed := d.PreviousCallNames[name]
			if !renamed {
				return
			}
			name = previous
		}
	}
}
