// Package repair decides what a repair does to a run: which checkpoints its next generation keeps, which calls it
// repeats and with which idempotency keys, and what becomes of the children and the signals of the dropped
// calls. It only computes; the stores apply the result.
//
// The rules:
//
//   - A checkpoint is kept unless the request, or one of the following rules, drops it. A run that kept everything
//     would come to the same end.
//   - In a graph, a request that names a node drops the calls of the node and of all nodes downstream. With a failed call, the calls of
//     the nodes are dropped for which something else follows if it succeeds.
//   - A call that gets a value keeps its place in the history, and is not executed again.
//   - The records of how the run ended, and its executed compensations, are always dropped.
//   - A call that is dropped although it had completed is executed on purpose once more, or because it was undone: it
//     gets a new idempotency key. A call that had failed or was interrupted keeps its key, because its first attempt
//     may have had an effect. A compensation gets a new key together with a step that it undoes.
//   - A choice that was decided by the failure of a dropped call is dropped. Whatever choice is dropped: calls in the branches that
//     it ended are made again if they failed then, and so are calls whose children it cancelled.
//   - A child whose call is dropped stays with the superseded generation, and is cancelled unless it is detached. The
//     call starts another child. A child that was cancelled because its parent ended is treated alike, because its call
//     has no outcome.
//   - Signals that dropped receives had taken are received anew.
package repair

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

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

// Subject is a run that is repaired. Nothing of it changes until the repair is applied.
type Subject struct {
	Run        *store.Run   // with its error
	History    []store.Step // in the order in which the calls began
	Children   []*store.Run // whose parent is the run
	Generation int32        // the number of the present generation
}

// Request is what a repair wants of one run.
type Request struct {
	From    string // the stored name of a call: it and all calls that began later are dropped
	FromEnd bool   // all calls are kept
	Paused  bool   // a run above is paused
	Retries int32  // the new generation's; see record.Renewal
	Now     time.Time
	Nonce   uint32
}

// Result is what a repair does to one run.
type Result struct {
	Repair store.RunRepair
	Detail record.RepairDetail
	Cancel []uuid.UUID // live children to cancel
	Failed []uuid.UUID // the children that have to be retried with the run; their calls wait for them again
}

// Retry decides how a run that failed or expired is executed anew. Without From and FromEnd it drops the failed
// checkpoints that the run's failure names.
func Retry(s *Subject, q *Request) (*Result, error) {
	p := newPlan(s, q)
	switch {
	case q.From != "":
		if err := p.dropFrom(); err != nil {
			return nil, err
		}
	case q.FromEnd:
	default:
		if err := p.dropFailure(); err != nil {
			return nil, err
		}
	}
	return p.complete(), nil
}

type plan struct {
	*Subject
	request  *Request
	history  map[string]*store.Step
	dropped  map[string]bool
	renewed  map[string]bool
	reopened map[string]store.Step // calls that wait for their children again
	valued   map[string]store.Step // calls that get a value
	revived  []string              // prefixes of branches that a dropped choice had ended
	out      Result
}

func newPlan(s *Subject, q *Request) *plan {
	p := &plan{
		Subject: s, request: q, history: make(map[string]*store.Step, len(s.History)), dropped: make(map[string]bool),
		renewed: make(map[string]bool), reopened: make(map[string]store.Step), valued: make(map[string]store.Step),
	}
	for i := range s.History {
		p.history[s.History[i].Name] = &s.History[i]
	}
	return p
}

// isInternal reports whether the checkpoint is no call of the user.
func isInternal(row *store.Step) bool {
	return row.Kind == store.KindFailure || row.Kind == store.KindRenewal
}

// call returns the recorded call with the name.
func (p *plan) call(name string) (*store.Step, error) {
	row := p.history[name]
	if row == nil || isInternal(row) || row.Kind == store.KindCompensation {
		return nil, fmt.Errorf("%w: %q is not in its history", ErrNoStep, naming.Display(name))
	}
	return row, nil
}

// dropFrom drops the call that the request names, and all that began later; in a graph, what depends on the call. There the request can also
// name a node.
func (p *plan) dropFrom() error {
	if p.history[p.request.From] == nil && p.dropFromNode() {
		return nil
	}
	from, err := p.call(p.request.From)
	if err != nil {
		return err
	}
	p.drop(from)
	p.dropAfter(from)
	return nil
}

// dropAfter drops all calls that began after the call; in a graph, those that depend on it.
func (p *plan) dropAfter(call *store.Step) {
	if p.dropAfterCall(call) {
		return
	}
	for _, row := range p.history {
		if row.Seq > call.Seq {
			p.drop(row)
		}
	}
}

// drop drops a checkpoint.
func (p *plan) drop(row *store.Step) {
	p.dropped[row.Name] = true
	if row.Status == store.StepCompleted && hasKey(row.Kind) {
		p.renewed[row.Name] = true
	}
}

// hasKey reports whether calls of the kind have idempotency keys.
func hasKey(k store.Kind) bool {
	return k == store.KindStep || k == store.KindTx || k == store.KindCompensation || k == store.KindSignal || k == store.KindStart
}

// dropFailure drops the failed checkpoints that the run's failure names, and undone steps.
func (p *plan) dropFailure() error {
	failure := record.DecodeFailure(p.Run.Error)
	row := p.history[naming.ParseDisplay(failure.Step)]
	switch {
	case failure.Step == "":
		return fmt.Errorf("%w: its failure (%.200s) names no step", ErrFromRequired, failure.Message)
	case row == nil || row.Status != store.StepFailed || isInternal(row):
		return fmt.Errorf("%w: its failure names %q, which is no failed step of its history", ErrFromRequired, failure.Step)
	}
	if err := p.dropUndone(); err != nil {
		return err
	}
	failed := []*store.Step{row}
	for _, name := range failure.Steps {
		if row := p.history[naming.ParseDisplay(name)]; row != nil && row.Status == store.StepFailed && !isInternal(row) {
			failed = append(failed, row)
		}
	}
	for _, row := range failed {
		p.dropAffected(row)
	}
	for _, row := range failed {
		if !p.dropped[row.Name] { // else another child is started
			p.dropFailed(row)
		}
	}
	return nil
}

// dropFailed drops a failed checkpoint, or makes it wait for its child again.
func (p *plan) dropFailed(row *store.Step) {
	p.dropChoicesDecidedBy(row)
	if row.Kind != store.KindChild || !p.reopen(row) {
		p.drop(row)
	}
}

// dropUndone drops the steps that the executed compensations have undone. It returns an error if the code did not say
// which they are.
func (p *plan) dropUndone() error {
	undoes := p.undoneSteps()
	for i := range p.History {
		row := &p.History[i]
		if row.Kind != store.KindCompensation {
			continue
		}
		steps := undoes[naming.Display(row.Name)]
		switch {
		case len(steps) == 0:
			return fmt.Errorf("%w: its compensation %q was executed, and does not say which steps it undoes (see Undoes)", ErrFromRequired, naming.Display(row.Name))
		case row.Status != store.StepCompleted:
			return fmt.Errorf("%w: its compensation %q has no success, so it is not known whether the steps %q are undone", ErrFromRequired, naming.Display(row.Name), steps)
		}
		for _, name := range steps {
			if step := p.history[naming.ParseDisplay(name)]; step != nil {
				p.drop(step)
			}
		}
	}
	return nil
}

// undoneSteps returns which steps each compensation undoes, as far as the code said so. Names are as people see them.
func (p *plan) undoneSteps() map[string][]string {
	if end := p.history[store.EndRecordName]; end != nil {
		return record.DecodeEnding(end.Output).Undoes
	}
	return nil
}

// renewCompensations gives a new idempotency key to each dropped compensation that undoes a step with a new key: with the
// old key, an outside system would take it for the compensation of the step's earlier execution.
func (p *plan) renewCompensations() {
	for name, steps := range p.undoneSteps() {
		row := p.history[naming.ParseDisplay(name)]
		if row != nil && p.dropped[row.Name] && slices.ContainsFunc(steps, func(step string) bool { return p.renewed[naming.ParseDisplay(step)] }) {
			p.renewed[row.Name] = true
		}
	}
}

// reopen makes a call wait again for its child, which failed and will be retried. It reports false if there is no such
// child.
func (p *plan) reopen(row *store.Step) bool {
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
	open.Seq &^= store.SeqOwnGoroutine // its outcome changes, so the calls behind it need not be made any more
	open.Status, open.Output, open.Error, open.EndedAt, open.NextAt = store.StepStarted, out, nil, time.Time{}, time.Time{}
	p.reopened[row.Name] = open
	p.out.Failed = append(p.out.Failed, p.Children[i].UUID)
	return true
}

// dropEnd drops the record of how the run ended, and the executed compensations.
func (p *plan) dropEnd() {
	for _, row := range p.history {
		if row.Kind == store.KindFailure || row.Kind == store.KindCompensation {
			p.drop(row)
		}
	}
}

// complete decides about the end of the run and the children, and returns the result.
func (p *plan) complete() *Result {
	p.reviveLosers()
	p.dropEnd()
	p.placeChildren()
	return p.result()
}

// placeChildren decides which children stay with the superseded generation.
func (p *plan) placeChildren() {
	for _, c := range p.Children {
		row := p.history[c.Name]
		_, valued := p.valued[c.Name]
		switch {
		case valued && row.Status.IsTerminal():
			continue
		case row == nil || valued || p.dropped[row.Name]: // or the child of a call that an earlier repair dropped
		case row.Status.IsTerminal(): // also one that is reopened
			continue
		case c.Control&store.CancelRequested == 0 && c.Status != store.Cancelled:
			continue
		case !p.isRevived(row.Name) && (c.CancelReason != ParentEndedReason || c.CancelledBy != ""):
			continue // its parent finds out that it was cancelled
		}
		if row != nil {
			p.drop(row)
		}
		p.out.Repair.Detach = append(p.out.Repair.Detach, c.UUID)
		if !c.Status.IsTerminal() && !c.Detached && c.Control&store.CancelRequested == 0 {
			p.out.Cancel = append(p.out.Cancel, c.UUID)
		}
	}
	slices.SortFunc(p.out.Repair.Detach, store.CompareUUIDs)
	slices.SortFunc(p.out.Cancel, store.CompareUUIDs)
}

// result completes the result.
func (p *plan) result() *Result {
	r, d := &p.out.Repair, &p.out.Detail
	run := p.Run
	r.Run, r.Number, r.Checkpoints, r.From = run.UUID, p.Generation, len(p.History), naming.Display(p.request.From)
	r.Before = store.RunState{Found: true, Status: run.Status, Epoch: run.Epoch, Control: run.Control}
	r.Epoch, r.Status, r.WakeAt = run.Epoch.Next(p.request.Nonce), store.Pending, p.request.Now
	switch {
	case !run.Status.IsTerminal(): // it was stopped for the repair, and is resumed with it
		r.Status, r.WakeAt, r.Control = store.Paused, time.Time{}, run.Control
	case p.request.Paused:
		r.Status, r.WakeAt, r.Control = store.Paused, time.Time{}, store.PausedByAncestor
	}
	renewal, _ := record.RenewalOf(p.History) // one that does not decode was refused before
	if d := Timeout(run, &renewal); run.Status.IsTerminal() && d > 0 {
		r.Deadline, renewal.TimeoutFrom = p.request.Now.Add(d), p.request.Now
	}
	for i := range p.History {
		row := &p.History[i]
		open, isOpen := p.reopened[row.Name]
		valued, hasValue := p.valued[row.Name]
		switch {
		case row.Kind == store.KindRenewal:
			continue
		case hasValue:
			r.Write = append(r.Write, valued)
			d.Corrected = append(d.Corrected, naming.Display(row.Name))
			delete(p.renewed, row.Name)
			r.Progress++
			continue
		case isOpen:
			r.Write = append(r.Write, open)
			d.Dropped = append(d.Dropped, naming.Display(row.Name))
			continue
		case p.dropped[row.Name]:
			if row.Kind != store.KindFailure {
				d.Dropped = append(d.Dropped, naming.Display(row.Name))
			}
			if row.Kind == store.KindReceive && row.Status.IsTerminal() {
				r.Release = append(r.Release, renewal.Receiver(row.Name))
			}
			continue
		}
		r.Keep = append(r.Keep, row.Name)
		if row.Status.IsTerminal() {
			r.Progress++
		}
	}
	d.Kept = len(r.Keep)
	p.renewCompensations()
	for _, name := range slices.Sorted(maps.Keys(p.renewed)) {
		if renewal.Since == nil {
			renewal.Since = make(map[string]int32, len(p.renewed))
		}
		renewal.Since[naming.Display(name)] = p.Generation + 1
		d.Renewed = append(d.Renewed, naming.Display(name))
	}
	renewal.Generation, renewal.Retries = p.Generation+1, p.request.Retries
	r.Write = append(r.Write, renewal.NewStep(run.UUID, r.Epoch, p.request.Now))
	r.Progress++
	slices.Sort(r.Keep)
	slices.Sort(r.Release)
	slices.SortFunc(r.Write, func(a, b store.Step) int { return cmp.Compare(a.Name, b.Name) })
	r.Detail = d.Encode()
	return &p.out
}
