package engine

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A choice records with which branches a run continues, and which branches it ends (the losers). A replay
// must know the losers before it comes to the choice. Otherwise a loser, which begins before the choice,
// could repeat the call at which it was ended, take a signal that was sent later, or return before the choice. So the record names
// the scopes of the losers, and a replay ends them before anything begins. Calls in a loser still return their recorded results,
// since the loser may register compensations between them. The first call that is not in history returns ErrCancelled, as in the
// first execution.
//
// The result of a loser is still valid if every call that the loser had begun was recorded and it makes no other call, because a
// replay then comes to the same result. So a signal that a loser received just before the choice is not lost. The first refused call
// makes ErrCancelled the result of the loser.
//
// The following order makes this hold across a crash at any point:
//
//  1. The losers start no more children and take no more signals. Commits of such calls that are in
//     progress finish.
//  2. The result of each loser that has not returned is withheld until the choice is committed. If the run has been suspended
//     meanwhile, the choice is not made, because a loser may have returned only because of the suspension.
//  3. The choice is committed.
//  4. The contexts of the losers end, and calls that wait for the losers return.
//  5. The children that losers started are cancelled. Every later execution repeats this before it calls the workflow function.

// branchEndedByChoice describes the end of a branch that a choice has ended.
type branchEndedByChoice struct {
	choice      string    // the name of the choice, including its scope
	endedAt     time.Time // when the choice ended the branch; a sleep that was over at this time has ended by itself
	hadReturned bool      // the branch had returned before the choice

	// The next three fields are for a replay. The contexts of the branch end when the branch has replayed
	// its history and the function has reached the choice. They end earlier if the branch makes a new
	// call.
	branch        *Branch // nil: the branch has not begun
	rowsToReplay  int     // how many terminal rows in the branch have not been replayed yet
	choiceReached bool
}

// endContextsIfReplayed ends the contexts of the branch if it has nothing left to replay and the function has reached
// the choice. The caller holds run.mu.
func (e *branchEndedByChoice) endContextsIfReplayed() {
	if e.choiceReached && e.rowsToReplay <= 0 && e.branch != nil {
		e.branch.endContexts()
	}
}

// loadBranchEnds reads the ended branches from the run's history. It is called once the history is complete.
func (r *run) loadBranchEnds() {
	r.loadRecordedEnd()
	for _, row := range r.history {
		c := record.DecodeChoiceStep(row)
		if c == nil {
			continue
		}
		r.branchEnds.noteEnds(c.Ended, branchEndedByChoice{choice: row.Name, endedAt: row.EndedAt})
		r.branchEnds.noteEnds(c.Returned, branchEndedByChoice{choice: row.Name, endedAt: row.EndedAt, hadReturned: true})
	}
	if len(r.branchEnds) == 0 {
		return
	}
	for _, row := range r.history {
		if row.Status.IsTerminal() && row.Kind != store.KindCompensation {
			for prefix := range naming.Scopes(row.Name) {
				if e := r.branchEnds[prefix]; e != nil {
					e.rowsToReplay++
				}
			}
		}
	}
}

// branchEndsByPrefix holds the branches that choices have ended, by the prefixes of their scopes. run.mu guards it.
type branchEndsByPrefix map[string]*branchEndedByChoice

// set notes the end of the branch with the prefix.
func (e *branchEndsByPrefix) set(prefix string, end *branchEndedByChoice) {
	if *e == nil {
		*e = make(branchEndsByPrefix)
	}
	(*e)[prefix] = end
}

// noteEnds notes that the branches with the names ended. If a branch has ended before, the earlier end counts.
func (e *branchEndsByPrefix) noteEnds(names []string, end branchEndedByChoice) {
	for _, name := range names {
		prefix := naming.ParseDisplay(name) + naming.Separator
		if first := (*e)[prefix]; first == nil || end.endedAt.Before(first.endedAt) {
			own := end
			e.set(prefix, &own)
		}
	}
}

// endOfOutermostBranch returns the end of the outermost ended branch that contains the name, or nil if there is none.
func (e branchEndsByPrefix) endOfOutermostBranch(name string) *branchEndedByChoice {
	for prefix := range naming.Scopes(name) {
		if end := e[prefix]; end != nil {
			return end
		}
	}
	return nil
}

// LoserBranch is a branch that a choice may end because the branch lost.
type LoserBranch struct {
	Branch *Branch
	// WithholdResult is called before the choice is recorded. If the branch has not returned, WithholdResult returns false, and callers that
	// wait for the result of the branch get no result until DeliverResult is called. If the branch has returned, WithholdResult changes
	// nothing and returns true.
	WithholdResult func() (returned bool)
	// DeliverResult delivers the result of a branch for which WithholdResult has returned false, and is called once. The argument err is
	// ErrCancelled, or ErrSuspended if the choice was not recorded. See [Branch.HasCallRefusedAfterEnd].
	DeliverResult func(err error)
}

// ChoiceSpec describes one choice.
type ChoiceSpec struct {
	Name             string
	CallSite         uintptr
	DecidingBranches []int                         // the indexes of the deciding branches; unused if history holds the choice
	SelectLosers     func(won []int) []LoserBranch // nil: the other branches continue
	Branches         []*Branch                     // all branches, in the order in which they were given; nil stands for a branch that could not begin
	MinSuccesses     int                           // how many branches have to succeed; 0: the first failure decides
}

// RecordChoiceAndEndLosers records the choice, ends the losing branches, and returns the record of the choice, which
// [Scope.DecodeDecidingBranches] decodes.
func (s *Scope) RecordChoiceAndEndLosers(spec *ChoiceSpec) (CallResult, error) {
	r := s.r
	full := s.fullName(spec.Name)
	recorded, err := s.beginCall(full, store.KindChoice, spec.CallSite)
	switch {
	case err != nil:
		return CallResult{}, err
	case recorded != nil && recorded.Status.IsTerminal():
		return s.replayChoice(spec, recorded)
	case recorded == nil:
		if err := naming.Check("choice", spec.Name); err != nil {
			return CallResult{}, err
		}
	}
	if s.isInsideCall() {
		return CallResult{}, nestedCallError(r, full)
	}
	if err := s.refuseInPreflight(full, store.KindChoice); err != nil {
		return CallResult{}, err
	}
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	t := &stepTask{r: r, scope: s, spec: &CallSpec{Name: spec.Name, Kind: store.KindChoice}, name: full, recordedStep: recorded, attempt: 1, firstBegan: r.e.clock.Now()}
	if recorded != nil {
		t.attempt, t.firstBegan, t.hasRow = recorded.Attempt+1, recorded.StartedAt, true
	}
	return t.recordChoice(spec)
}

// replayChoice returns the result of a choice that history holds.
func (s *Scope) replayChoice(spec *ChoiceSpec, row *store.Step) (CallResult, error) {
	c, err := record.DecodeChoice(row.Output)
	if row.Status != store.StepCompleted || err != nil {
		return recordedResult(row), nil
	}
	r := s.r
	if c.Old && spec.SelectLosers != nil { // an old record does not name the ended branches: end those that have not returned yet
		losers := normalizeLosers(r, spec.SelectLosers(c.Won))
		t := &stepTask{r: r, scope: s, name: row.Name}
		unlock := lockLosers(losers)
		_, _, closed := withholdLoserResults(losers)
		if !t.endLosers(losers, closed, row.EndedAt, unlock) {
			return CallResult{}, ErrSuspended
		}
		return recordedResult(row), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Concat(c.Ended, c.Returned) {
		if e := r.branchEnds[naming.ParseDisplay(name)+naming.Separator]; e != nil {
			e.choiceReached = true
			e.endContextsIfReplayed()
		}
	}
	return recordedResult(row), nil
}

// recordChoice ends the losers and records the choice.
func (t *stepTask) recordChoice(spec *ChoiceSpec) (CallResult, error) {
	r := t.r
	won, err := t.chooseWinners(spec)
	if err != nil {
		return CallResult{}, err
	}
	var losers []LoserBranch
	if spec.SelectLosers != nil {
		losers = normalizeLosers(r, spec.SelectLosers(won))
	}
	unlock := lockLosers(losers)
	made := spec.newRecordWithDeciders(won)
	var closed []LoserBranch
	made.Ended, made.Returned, closed = withholdLoserResults(losers)
	if len(losers) > 0 && r.isSuspended() {
		return releaseLosersOnSuspension(closed, unlock)
	}
	encoded, err := made.Encode()
	if err != nil { // cannot happen: the record holds numbers and valid text
		unlock()
		return CallResult{}, err
	}
	at := r.newBranchEndTime()
	w := t.newStepWrite(store.StepCompleted, encoded, nil)
	w.Step.EndedAt = at
	res, _, err := t.commitRow(w)
	if spec.SelectLosers != nil && (err != nil || !bytes.Equal(res.Output, encoded)) {
		// The results stay withheld in this execution, and the choice is not recorded. Only another execution can continue.
		if r.currentSuspension() == nil {
			r.logger().Error("a choice could not be recorded; the run leaves this process", telemetry.KeyStep, naming.Display(t.name), telemetry.KeyError, err)
			r.loseOwnership()
		}
		return releaseLosersOnSuspension(closed, unlock)
	}
	if err != nil {
		unlock()
		return CallResult{}, err
	}
	if !t.endLosers(losers, closed, at, unlock) {
		return CallResult{}, ErrSuspended
	}
	return res, nil
}

// releaseLosersOnSuspension delivers ErrSuspended as the result of the losers whose results are withheld, because the run is
// suspended without the choice.
func releaseLosersOnSuspension(closed []LoserBranch, unlock func()) (CallResult, error) {
	unlock()
	for _, l := range closed {
		l.DeliverResult(ErrSuspended)
	}
	return CallResult{}, ErrSuspended
}

// endLosers ends the losers of a recorded choice. It reports false if the run was suspended meanwhile.
func (t *stepTask) endLosers(losers, closed []LoserBranch, at time.Time, unlock func()) bool {
	r := t.r
	r.mu.Lock()
	for _, l := range losers {
		if l.Branch.endByChoice == nil {
			returned := !slices.ContainsFunc(closed, func(c LoserBranch) bool { return c.Branch == l.Branch })
			l.Branch.endByChoice = &branchEndedByChoice{choice: t.name, endedAt: at, hadReturned: returned, branch: l.Branch}
			r.branchEnds.set(l.Branch.scope.namePrefix, l.Branch.endByChoice)
		}
	}
	r.mu.Unlock()
	unlock()
	for _, l := range losers {
		l.Branch.endContexts()
	}
	for _, l := range closed {
		l.DeliverResult(ErrCancelled)
	}
	return len(losers) == 0 || r.cancelLosersChildren(false)
}

// newBranchEndTime returns the end time for a branch that is ended now. It is not before the due time of a sleep
// that is over.
func (r *run) newBranchEndTime() time.Time {
	now := r.e.clock.Now().Truncate(time.Microsecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latestSleepEnd.After(now) { // the estimate of the database's clock was corrected
		return r.latestSleepEnd
	}
	return now
}

// normalizeLosers returns those of the losers that are branches of this execution, without duplicates and in the
// order of their prefixes.
func normalizeLosers(r *run, losers []LoserBranch) []LoserBranch {
	losers = slices.DeleteFunc(losers, func(l LoserBranch) bool { return l.Branch == nil || l.Branch.scope.r != r })
	slices.SortFunc(losers, func(a, b LoserBranch) int {
		return strings.Compare(a.Branch.scope.namePrefix, b.Branch.scope.namePrefix)
	})
	return slices.CompactFunc(losers, func(a, b LoserBranch) bool { return a.Branch == b.Branch })
}

// lockLosers takes the commit locks of the losers, and so waits until all commits that must not follow the choice have finished.
func lockLosers(losers []LoserBranch) (unlock func()) {
	for _, l := range losers {
		l.Branch.commitLock.Lock()
	}
	return func() {
		for _, l := range losers {
			l.Branch.commitLock.Unlock()
		}
	}
}

// withholdLoserResults withholds the results of the losers that have not returned. It returns the names of these losers as ended, the
// names of the losers that have returned, and as closed the losers whose results are withheld.
func withholdLoserResults(losers []LoserBranch) (ended, returned []string, closed []LoserBranch) {
	for _, l := range losers {
		if l.Branch.isLoserItself() {
			continue // another choice has ended the branch and has recorded that
		}
		name := l.Branch.Name()
		if l.WithholdResult() {
			returned = append(returned, name)
		} else {
			ended = append(ended, name)
			closed = append(closed, l)
		}
	}
	return ended, returned, closed
}

// isLoserItself reports whether a choice has ended this branch itself, rather than a branch around it.
func (b *Branch) isLoserItself() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.endByChoice != nil
}
