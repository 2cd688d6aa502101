// Package repair decides what a repair does to a run: which checkpoints its next generation keeps, which calls it
// repeats and with which idempotency keys, and what becomes of the children and the signals of the dropped
// calls. It only computes; the stores apply the result.
//
// The rules:
//
//   - A checkpoint is kept unless the request, or one of the following rules, drops it. A run that kept everything
//     would come to the same end.
//   - In a graph, a request that names a node drops the calls of the node and of all nodes downstream. If a failed call is dropped, so
//     are the calls of the nodes whose verdicts could differ if it succeeds.
//   - A call that gets a value keeps its place in the history, and is not executed again.
//   - The records of how the run ended, and its executed compensations, are always dropped. So are the steps that compensations have undone,
//     unless the repair is a copy to another run. A step that failed in a branch that lost a kept choice stays failed nevertheless.
//   - A dropped call that had completed gets a new idempotency key: it is executed once more on purpose, or because it was undone. A dropped
//     call that had failed or was interrupted keeps its key, because its first attempt may have had an effect; the key keeps the call's old
//     name even if the code has renamed the call. If a compensation has succeeded in undoing a call, the call gets a new key in any case. A
//     compensation gets a new key together with a step that it undoes.
//   - The started marker of an interrupted attempt of an at-most-once step is always kept: without it, the step would be executed once more
//     without a call of its Verify function.
//   - An attempt that the end of the run, a choice or the repair has interrupted is not the last one that a retry policy allows.
//   - A choice that was decided by the failure of a dropped call is dropped. If a choice is dropped, calls in the branches that it
//     had ended are made again if they failed after the choice had begun, and so are calls whose children it cancelled.
//   - A child whose call is dropped stays with the superseded generation, and is cancelled unless it is detached. The
//     call starts another child. The same applies to a child that was cancelled because its parent ended, because its call has no
//     outcome.
//   - Signals that dropped receives had taken are received anew. A dropped receive whose escalation is recorded escalates again, with a new
//     key.
package repair

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// ParentEndedReason is the reason of the cancel of children whose parent has ended.
const ParentEndedReason = "its parent has ended"

// Reasons for which a repair is refused.
var (
	ErrNoStep       = errors.New("durable: the run has no such step")
	ErrFromRequired = errors.New("durable: the repair has to say from which step it executes the run anew")
	ErrValueType    = errors.New("durable: the value has another JSON type than the recorded one")
)

// StateError is returned when the state of the run or of a step does not allow the repair.
type StateError struct{ Detail string }

func (e *StateError) Error() string { return e.Detail }

// PlanRetry decides how a run that failed or expired is executed again. Without From and FromEnd, it drops the failed checkpoints
// that the run's failure names. Without From, it also drops the choices that made the run fail.
func PlanRetry(s *RunToRepair, q *Request) (*Result, error) {
	p := newPlan(s, q)
	switch {
	case q.From != "":
		if err := p.dropFromRequestedCall(); err != nil {
			return nil, err
		}
		p.dropKnownUndone()
	case q.FromEnd:
		if err := p.checkUndoneIsKnown(); err != nil {
			return nil, err
		}
		p.dropKnownUndone()
		p.dropChoicesOfFailure()
		p.dropNodeFailures()
	default:
		if err := p.dropStepsOfFailure(); err != nil {
			return nil, err
		}
		p.dropChoicesOfFailure()
	}
	return p.finishPlan(), nil
}

type plan struct {
	*RunToRepair
	request         *Request
	historyByName   map[string]*store.Step
	renewal         record.Renewal      // of the present generation
	undoes          map[string][]string // which steps each compensation undoes, as far as the code said so; names are as people see them
	dropped         map[string]bool
	droppedBefore   map[string]bool // the calls in DroppedByRetry
	rerunItem       string          // the item of a Map that is executed again, as people see it
	renewedKeys     map[string]bool
	undoneNames     []string                 // the names in the Undoes of compensations that have succeeded, as people see them
	undoneFailures  map[string]*store.Step   // calls that a compensation has undone and that had failed in the loser of a choice, with the items of failed Maps
	failedMaps      map[string]bool          // by Map, whether one of its items has failed; computed when needed
	choices         []recordedChoice         // in the order of the history
	reopenedCalls   map[string]store.Step    // calls that wait for their children again
	callsWithValue  map[string]store.Step    // calls that get a value
	completedNodes  map[string]bool          // the nodes of a graph that have completed; nil: not needed yet
	revivedPrefixes []string                 // prefixes of branches that a dropped choice had ended
	rowsByScope     map[string][]*store.Step // by the prefixes of the scopes around them; nil: not needed yet
	result          Result
}

func newPlan(s *RunToRepair, q *Request) *plan {
	p := &plan{
		RunToRepair: s, request: q, historyByName: make(map[string]*store.Step, len(s.History)), dropped: make(map[string]bool),
		renewedKeys: make(map[string]bool), reopenedCalls: make(map[string]store.Step), callsWithValue: make(map[string]store.Step),
		undoneFailures: make(map[string]*store.Step), failedMaps: make(map[string]bool),
	}
	for i := range s.History {
		row := &s.History[i]
		p.historyByName[row.Name] = row
		if c := record.DecodeChoiceStep(row); c != nil {
			p.choices = append(p.choices, recordedChoice{row, c})
		}
	}
	for name := range s.DroppedByRetry {
		p.dropped[name] = true
	}
	p.droppedBefore = maps.Clone(s.DroppedByRetry)
	p.renewal, _ = record.FindRenewal(s.History) // a record that cannot be decoded was refused before
	if end := p.historyByName[store.EndRecordName]; end != nil {
		p.undoes = record.DecodeEnding(end.Output).Undoes
	}
	return p
}

// isInternalRecord reports whether the checkpoint is no call of the user.
func isInternalRecord(row *store.Step) bool {
	return row.Kind == store.KindRunEnd || row.Kind == store.KindKeyRenewal
}

// hasCalls reports whether the run has recorded a call.
func (p *plan) hasCalls() bool {
	return slices.ContainsFunc(p.History, func(row store.Step) bool { return !isInternalRecord(&row) })
}

// findCall returns the recorded call with the name.
func (p *plan) findCall(name string) (*store.Step, error) {
	row := p.historyByName[name]
	if row == nil || !isCall(row) {
		return nil, NoStepError(name, p.History)
	}
	return row, nil
}

// dropFromRequestedCall drops the call that the request names and all calls that began later. In a graph it drops the call and the calls that
// depend on it, and the request can also name a node.
func (p *plan) dropFromRequestedCall() error {
	isNoCall := p.historyByName[p.request.From] == nil || graph.ShapeRevision(p.request.From) > 0 // a node may be named like the record of a shape
	if isNoCall && p.dropNodeAndDownstream() {
		return nil
	}
	from, err := p.findCall(p.request.From)
	if err != nil {
		return err
	}
	p.dropCheckpoint(from)
	p.dropAfter(from)
	return nil
}

// dropAfter drops all calls that began after the call. If an earlier repair made the run execute the call again, it drops the calls that
// began after the first execution of the call. In a graph it drops the calls that depend on the call.
func (p *plan) dropAfter(call *store.Step) {
	if p.dropAfterCall(call) {
		return
	}
	for _, row := range p.historyByName {
		if p.renewal.Place(row) > p.renewal.Place(call) {
			p.dropCheckpoint(row)
		}
	}
}

// dropStepsOfFailure drops the failed checkpoints that the run's failure names, and undone steps.
func (p *plan) dropStepsOfFailure() error {
	if err := record.CheckFailureDecodable(p.Run.Error); err != nil {
		return fmt.Errorf("its failure, which names the step that failed: %w", err)
	}
	failure := record.DecodeFailure(p.Run.Error)
	row := p.historyByName[naming.ParseDisplay(failure.Step)]
	switch {
	case failure.Step == "" && !p.hasCalls():
		return nil // the function is called anew in any case
	case failure.Step == "":
		return fmt.Errorf("%w: its failure (%.200s) names no step", ErrFromRequired, failure.Message)
	case row == nil || row.Status != store.StepFailed || isInternalRecord(row):
		return fmt.Errorf("%w: its failure names %q, which is no failed step of its history", ErrFromRequired, failure.Step)
	}
	if err := p.dropUndone(); err != nil {
		return err
	}
	var failed []*store.Step
	isOfFailure := failure.HasSteps()
	for i := range p.History {
		if row := &p.History[i]; row.Status == store.StepFailed && !isInternalRecord(row) && isOfFailure(naming.Display(row.Name)) {
			failed = append(failed, row)
		}
	}
	for _, row := range failed {
		if err := record.CheckFailureDecodable(row.Error); err != nil { // the error of a child's call names the child to retry
			return fmt.Errorf("the error of its step %q: %w", naming.Display(row.Name), err)
		}
		p.dropAffectedNodes(row)
	}
	for _, row := range failed {
		if !p.dropped[row.Name] { // a dropped call starts another child
			p.dropOrReopenFailed(row)
		}
	}
	return nil
}

// dropOrReopenFailed drops a failed checkpoint, or makes it wait for its child again.
func (p *plan) dropOrReopenFailed(row *store.Step) {
	p.dropChoicesDecidedBy(row)
	if row.Kind != store.KindChild || p.undoneFailures[row.Name] != nil || !p.reopenChildCall(row) {
		p.dropCheckpoint(row)
	}
}

// reopenChildCall makes a call wait again for its child, which failed and will be retried. It reports false if there is no such
// child.
func (p *plan) reopenChildCall(row *store.Step) bool {
	text := record.DecodeFailure(row.Error).Run
	i := slices.IndexFunc(p.Children, func(c *store.Run) bool { return c.UUID.String() == text })
	if i < 0 || p.Children[i].Status != store.Failed && p.Children[i].Status != store.Expired {
		return false
	}
	out, err := json.Marshal(text)
	if err != nil {
		return false // cannot happen
	}
	open := *row
	open.Status, open.Output, open.Error, open.EndedAt, open.NextAt = store.StepStarted, out, nil, time.Time{}, time.Time{}
	p.reopenedCalls[row.Name] = open
	p.result.ChildrenToRetry = append(p.result.ChildrenToRetry, p.Children[i].UUID)
	return true
}

// dropEnd drops the record of how the run ended, and the executed compensations.
func (p *plan) dropEnd() {
	for _, row := range p.historyByName {
		if row.Kind == store.KindRunEnd || row.Kind == store.KindCompensation {
			p.dropCheckpoint(row)
		}
	}
}

// finishPlan decides about the end of the run and the children, and returns the result.
func (p *plan) finishPlan() *Result {
	p.reviveEndedBranches()
	p.dropUndoneFailuresOfLosers()
	p.dropEnd()
	p.detachChildren()
	return p.buildResult()
}

// detachChildren decides which children stay with the superseded generation.
func (p *plan) detachChildren() {
	for _, c := range p.Children {
		row := p.historyByName[c.Name]
		_, valued := p.callsWithValue[c.Name]
		switch {
		case valued && row.Status.IsTerminal():
			continue
		case row == nil || valued || p.dropped[row.Name]: // without a row, an earlier repair has dropped the call of the child
		case row.Status.IsTerminal(): // also the call of a child that is reopened
			continue
		case c.Control&store.CancelRequested == 0 && c.Status != store.Cancelled:
			continue
		case !p.isRevived(row.Name) && (c.CancelReason != ParentEndedReason || c.CancelledBy != ""):
			continue // the call of the parent returns that the child was cancelled
		}
		if row != nil {
			p.dropCheckpoint(row)
		}
		p.result.Repair.DetachedChildren = append(p.result.Repair.DetachedChildren, c.UUID)
		if !c.Status.IsTerminal() && !c.Detached && c.Control&store.CancelRequested == 0 {
			p.result.ChildrenToCancel = append(p.result.ChildrenToCancel, c.UUID)
		}
	}
	slices.SortFunc(p.result.Repair.DetachedChildren, store.CompareUUIDsByShard)
	slices.SortFunc(p.result.ChildrenToCancel, store.CompareUUIDsByShard)
}

// buildResult completes the result.
func (p *plan) buildResult() *Result {
	r, d := &p.result.Repair, &p.result.Detail
	run := p.Run
	r.Run, r.SupersededNumber, r.FromStep = run.UUID, p.Generation, naming.Display(p.request.From)
	r.CheckpointCount = len(p.History) - len(p.DroppedByRetry)
	r.StateBefore = store.RunState{Found: true, Status: run.Status, Epoch: run.Epoch, Control: run.Control}
	r.Epoch, r.Status, r.WakeAt = run.Epoch.Next(p.request.Nonce), store.Pending, p.request.due()
	switch {
	case !run.Status.IsTerminal(): // a pause for the repair ends with the repair, and a pause by a person is kept. A hold ends, because the repair may have removed its cause.
		if r.Control = run.Control &^ store.HeldForDrift; r.Control&store.PausedMask != 0 {
			r.Status, r.WakeAt = store.Paused, time.Time{}
		}
	case p.request.HasPausedAncestor:
		r.Status, r.WakeAt, r.Control = store.Paused, time.Time{}, store.PausedByAncestor
	}
	renewal := p.renewal
	p.movePlaces(&renewal)
	if run.Status.IsTerminal() && p.Timeout > 0 {
		r.Deadline = p.request.due().Add(p.Timeout)
	}
	r.FirstChangedSeq = p.firstChange()
	executedAgain := p.scopesExecutedAgain()
	for i := range p.History {
		row := &p.History[i]
		open, isOpen := p.reopenedCalls[row.Name]
		valued, hasValue := p.callsWithValue[row.Name]
		switch {
		case row.Kind == store.KindKeyRenewal:
			continue
		case hasValue:
			valued.Seq = store.SeqOfKeptCall(valued.Seq, r.FirstChangedSeq)
			r.NewSteps = append(r.NewSteps, valued)
			d.Corrected = append(d.Corrected, naming.Display(row.Name))
			delete(p.renewedKeys, row.Name)
			continue
		case isOpen:
			open.Seq = store.SeqOfKeptCall(open.Seq, r.FirstChangedSeq)
			r.NewSteps = append(r.NewSteps, open)
			d.Dropped = append(d.Dropped, naming.Display(row.Name))
			continue
		case p.droppedBefore[row.Name]:
			continue
		case p.dropped[row.Name]:
			if row.Kind != store.KindRunEnd {
				d.Dropped = append(d.Dropped, naming.Display(row.Name))
			}
			p.noteNameOfKey(&renewal, row)
			if row.Kind == store.KindReceive && row.Status.IsTerminal() && !p.DroppedByRetry[row.Name] {
				r.ReleasedReceivers = append(r.ReleasedReceivers, renewal.Receiver(row.Name))
			}
			continue
		}
		if kept, changed := p.changeKept(row, executedAgain); changed {
			kept.Seq = store.SeqOfKeptCall(kept.Seq, r.FirstChangedSeq)
			r.NewSteps = append(r.NewSteps, kept)
			d.Kept++
			continue
		}
		r.KeptSteps = append(r.KeptSteps, row.Name)
		r.Progress += row.Progress()
	}
	d.Kept += len(r.KeptSteps)
	p.renewCompensations()
	p.noteRerunItem(&renewal)
	d.Renewed = p.renewKeys(&renewal)
	renewal.Generation, renewal.Retries, renewal.Failure = p.Generation+1, p.request.Retries, nil
	if !p.request.Due.IsZero() { // shows people why the run waits
		f := record.DecodeFailure(run.Error)
		renewal.Failure = &record.Failure{Message: f.Message, Type: f.Type, Codes: f.Codes, Step: f.Step, Permanent: f.Permanent}
	}
	r.NewSteps = append(r.NewSteps, renewal.NewStep(run.UUID, r.Epoch, p.request.Now))
	for i := range r.NewSteps {
		r.Progress += r.NewSteps[i].Progress()
	}
	slices.Sort(r.KeptSteps)
	slices.Sort(r.ReleasedReceivers)
	slices.SortFunc(r.NewSteps, func(a, b store.Step) int { return cmp.Compare(a.Name, b.Name) })
	d.ShortenLists()
	r.Detail = d.Encode()
	return &p.result
}
