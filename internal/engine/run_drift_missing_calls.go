package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// A call that is not recorded is executed. If the code was changed, this may be wrong, because the call may be a recorded call under
// a new name. In that case the history holds calls of the same scope that the code has not made yet.
//
// Runs of unchanged code must never be held for this reason, in whatever order their goroutines are scheduled. So each call records whether it
// was made by the goroutine of its scope: the one that executes the workflow function, or the branch of Ctx.Go. The calls of this goroutine
// follow one another, and each waits until it is recorded. So when it makes a call that is not recorded, it has made all calls that it has
// recorded before, unless the code was changed. Calls of other goroutines prove nothing, except for the items of a Map, whose names are all
// known before the first item is executed. The goroutine that makes a Map waits for its items, so if the Map is not recorded, its first item
// is checked like a step of the scope around the Map. A call with invalid arguments returns an error without a record, and proves nothing
// either, so the arguments of a call are checked first.
//
// A repair drops calls in the middle of a history, or changes their values. The code may then continue differently, so the recorded
// calls that follow the first such call, in whatever scope, lose their marks (store.RunRepair.FirstChangedSeq).

// missingCallCounts counts, for each scope, the recorded calls of its own goroutine that this execution has not made.
type missingCallCounts map[string]int

// scopePrefix returns the prefix of the scope of a call.
func scopePrefix(full string) string { return full[:strings.LastIndex(full, naming.Separator)+1] }

// mustBeCalledInReplay reports whether a replay has to make a recorded call. It need not make a call that was not made by the code of
// the user, or that the code declares as retired.
func (r *run) mustBeCalledInReplay(row *store.Step) bool {
	def := r.workflowDefinition()
	return isCallOfUser(row.Kind) && (def == nil || !def.RetiredCalls[row.Name[len(scopePrefix(row.Name)):]])
}

// isCallOfUser reports whether a row of the kind records a call that the code of the user has made, so that a replay may have to
// repeat it.
func isCallOfUser(kind store.StepKind) bool {
	switch kind {
	case store.KindCompensation, store.KindRunEnd, store.KindKeyRenewal, store.KindPatch, store.KindGraph:
		return false
	}
	return true
}

// workflowDefinition returns the definition of the run's workflow, or nil.
func (r *run) workflowDefinition() *WorkflowDefinition { return r.e.workflows[r.row.Workflow] }

// initMissingCallCounts counts the recorded calls of each scope that the replay must make, before the function is called.
func (r *run) initMissingCallCounts() {
	for _, row := range r.history {
		if row.WasMadeByScopeGoroutine() && r.mustBeCalledInReplay(row) {
			if r.missingCallCounts == nil {
				r.missingCallCounts = make(missingCallCounts, 4)
			}
			r.missingCallCounts[scopePrefix(row.Name)]++
		}
	}
	r.checksMissingCalls = r.missingCallCounts != nil
}

// noteCallMade notes that this execution makes a call. r.mu is held.
func (r *run) noteCallMade(full string) {
	if row := r.history[full]; row != nil && r.checksMissingCalls && row.WasMadeByScopeGoroutine() && r.mustBeCalledInReplay(row) {
		prefix := scopePrefix(full)
		if r.missingCallCounts[prefix]--; prefix == "" && r.missingCallCounts[prefix] == 0 {
			r.functionReplay.noteChange()
		}
	}
}

// isOnOwnGoroutine reports whether the calling goroutine is the one of the scope. It reports false for the scope of a Map, which has
// no goroutine of its own. It also reports false for a branch that has started other branches, because their goroutines cannot be
// distinguished from its own.
//
// Most calls are made by the code of the workflow function itself, which only the run's own goroutine executes. For these calls, the
// call site is enough. Walking the stack for them would take a fifth of the time that the engine takes for a step.
func (s *Scope) isOnOwnGoroutine(callSite uintptr) bool {
	switch {
	case s.compensating:
		return false
	case s.branch == nil:
		return s.namePrefix == "" && (s.r.isCallSiteInWorkflowFunction(callSite) || stack.BaseFunction() == s.r.functionStackBase)
	}
	return s.namePrefix == s.branch.scope.namePrefix && (s.branch.isGraphNode || !s.branch.hasBranches.Load() && stack.BaseFunction() == s.branch.stackBase.Load())
}

// isCallSiteInWorkflowFunction reports whether the call site is in the code of the workflow function.
func (r *run) isCallSiteInWorkflowFunction(callSite uintptr) bool {
	def := r.workflowDefinition()
	return def != nil && def.UserFunction != nil && callSite != 0 && stack.FunctionEntryAt(callSite) == stack.FunctionEntry(def.UserFunction)
}

// nextSeq returns the sequence number of a call that begins now.
func (s *Scope) nextSeq(callSite uintptr) int32 {
	return store.EncodeSeq(s.r.lastPosition.Add(1), s.mapName != "" && !s.compensating || s.isOnOwnGoroutine(callSite))
}

// CheckMapItems returns ErrDiverged if an item with one of the names would be executed although the scope, which is that of a Map, has
// recorded items that have none of the names. In this case, newer code gives the items other names, and would execute all of them
// again. CheckMapItems then also holds the run if the DriftPolicy of the workflow is DriftHolds. Call CheckMapItems before the first
// item.
func (s *Scope) CheckMapItems(names []string) error {
	r := s.r
	if !r.checksMissingCalls {
		return nil
	}
	r.mu.Lock()
	open := s.firstOpenItemLocked(names)
	var err error
	if open != "" {
		err = s.checkMapItemsLocked(names, open)
	}
	r.mu.Unlock()
	if err == nil {
		return nil
	}
	return s.reportDivergence(open, err)
}

// firstOpenItemLocked returns the full name of the first item that has no outcome in the history, or an empty string. r.mu is held.
func (s *Scope) firstOpenItemLocked(names []string) string {
	for _, name := range names {
		full := s.fullName(name)
		if row := s.r.history[full]; row == nil || !row.Status.IsTerminal() {
			return full
		}
	}
	return ""
}

// checkMapItemsLocked does the same as CheckMapItems, but does not hold the run. The argument open is the name of the item that would
// be executed. r.mu is held.
func (s *Scope) checkMapItemsLocked(names []string, open string) error {
	r := s.r
	recorded := r.missingCallCounts[s.namePrefix] // how many items are recorded: this execution has called none of them yet
	if def := r.workflowDefinition(); recorded == 0 || def == nil || def.OnDrift == DriftContinues || s.endReasonLocked() != nil {
		return nil
	}
	named := make(map[string]bool, len(names))
	for _, name := range names {
		full := s.fullName(name)
		row := r.history[full]
		if named[full] = true; row != nil && row.WasMadeByScopeGoroutine() && r.mustBeCalledInReplay(row) {
			recorded--
		}
	}
	if recorded <= 0 {
		return nil
	}
	var unnamed []string
	for full, row := range r.history {
		if !named[full] && scopePrefix(full) == s.namePrefix && row.WasMadeByScopeGoroutine() && r.mustBeCalledInReplay(row) {
			unnamed = append(unnamed, naming.Display(full))
		}
	}
	slices.Sort(unnamed)
	unnamed = unnamed[:min(len(unnamed), maxLoggedUncalled)]
	return fmt.Errorf("%w: the item %q in run %q of workflow %q has no outcome in the history, which holds %q, and the code has no items of these names: give the items the names that they had, by the same Key",
		ErrDiverged, naming.Display(open), r.row.NameOrUUID(), r.row.Workflow, unnamed)
}

// provesCodeChange reports whether a call of the kind, if it is executed while recorded calls are missing, proves that the code was
// changed. A Map or a choice proves nothing, because earlier code may have made it without a record.
func provesCodeChange(kind store.StepKind, recorded *store.Step) bool {
	switch kind {
	case store.KindStep, store.KindTx:
		return recorded == nil || !recorded.Status.IsTerminal()
	case store.KindMap, store.KindChoice, store.KindCompensation, store.KindRunEnd, store.KindPatch, store.KindGraph:
		return false
	}
	return recorded == nil
}

// checkMissingCallsLocked returns ErrDiverged if the call is about to be executed although the scope's goroutine has recorded calls
// that it has not made in this execution. r.mu is held.
func (s *Scope) checkMissingCallsLocked(full string, kind store.StepKind, recorded *store.Step) error {
	if !provesCodeChange(kind, recorded) {
		return nil
	}
	if s.newMapIn != nil && s.newMapIn.mayMissCallsBeforeOwnCallLocked() {
		return s.newMapIn.missingCallsBeforeErrorLocked(full, math.MaxInt32)
	}
	if !s.mayMissCallsLocked() {
		return nil
	}
	return s.missingCallsBeforeErrorLocked(full, math.MaxInt32)
}

// checkMissingCallsAtOpenCallLocked does the same as checkMissingCallsLocked for a call without a recorded outcome, with which the replay ends:
// the call is about to be executed or to wait, or it is about to be refused because the run must end or because this is a preflight. If the
// call itself is recorded, such as a Receive that waits, only the calls that were recorded before it must have been made. r.mu is held.
func (s *Scope) checkMissingCallsAtOpenCallLocked(full string, kind store.StepKind, recorded *store.Step) error {
	if recorded == nil || !recorded.WasMadeByScopeGoroutine() || provesCodeChange(kind, recorded) {
		return s.checkMissingCallsLocked(full, kind, recorded)
	}
	if !s.mayMissCallsLocked() {
		return nil
	}
	return s.missingCallsBeforeErrorLocked(full, recorded.Position())
}

// mayMissCallsLocked reports whether the calling goroutine is the one of the scope, and may not have made all its recorded calls. r.mu is
// held.
func (s *Scope) mayMissCallsLocked() bool {
	return s.mayMissCallsBeforeOwnCallLocked() && s.isOnOwnGoroutine(0)
}

// mayMissCallsBeforeOwnCallLocked reports whether recorded calls of the scope's goroutine may be missing before a call that this goroutine makes.
// r.mu is held.
func (s *Scope) mayMissCallsBeforeOwnCallLocked() bool {
	r := s.r
	return r.missingCallCounts[s.namePrefix] > 0 && r.workflowDefinition().OnDrift != DriftContinues && !r.goroutines.functionReturned
}

// noteNewMap is called for the scope of a Map, on the goroutine that makes the Map. If this is the goroutine of the scope around the Map, and
// neither the Map nor one of its items is recorded, the first item that is executed is checked like a step of the scope around the Map:
// earlier executions of unchanged code have not begun an item, so they have not made a later call either. r.mu is held.
func (s *Scope) noteNewMap(around *Scope, recorded *store.Step, callSite uintptr) {
	if recorded != nil || !around.mayMissCallsBeforeOwnCallLocked() || !around.isOnOwnGoroutine(callSite) {
		return
	}
	for name := range s.r.history {
		if strings.HasPrefix(name, s.namePrefix) {
			return
		}
	}
	s.newMapIn = around
}

// missingCallsBeforeErrorLocked returns ErrDiverged if the scope's goroutine has recorded calls before the position that it has not made in this
// execution. r.mu is held.
func (s *Scope) missingCallsBeforeErrorLocked(full string, position int32) error {
	r := s.r
	names := r.missingCallNames(s.namePrefix, position)
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %q in run %q of workflow %q has no outcome in the history, which holds %q, and the code has not called that before: declare a call that was renamed with Renamed, "+
		"one that was removed with Retired, and make a new one only if Ctx.Patched says so",
		ErrDiverged, naming.Display(full), r.row.NameOrUUID(), r.row.Workflow, names)
}

// missingCallNames returns the calls that the scope's goroutine has recorded before the position and not made in this execution, as people
// see them, in the order in which they began. r.mu is held.
func (r *run) missingCallNames(prefix string, position int32) (names []string) {
	var missing []*store.Step
	for name, row := range r.history {
		if _, isMade := r.usedNames[name]; !isMade && row.WasMadeByScopeGoroutine() && row.Position() < position && scopePrefix(name) == prefix && r.mustBeCalledInReplay(row) {
			missing = append(missing, row)
		}
	}
	return displayFirst(missing)
}

// uncalledRowsLocked returns the recorded calls that this execution has not made and that a replay has to make, except those in branches that a
// choice has ended. r.mu is held.
func (r *run) uncalledRowsLocked() (uncalled []*store.Step) {
	for name, row := range r.history {
		if _, isMade := r.usedNames[name]; !isMade && r.mustBeCalledInReplay(row) && r.branchEnds.endOfOutermostBranch(name) == nil {
			uncalled = append(uncalled, row)
		}
	}
	return uncalled
}

// displayFirst returns the names, as people see them, of the maxLoggedUncalled calls that began first.
func displayFirst(rows []*store.Step) (names []string) {
	slices.SortFunc(rows, func(a, b *store.Step) int { return int(a.Position() - b.Position()) })
	for _, row := range rows[:min(len(rows), maxLoggedUncalled)] {
		names = append(names, naming.Display(row.Name))
	}
	return names
}
