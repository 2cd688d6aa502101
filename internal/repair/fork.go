package repair

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// errForkFrom is returned for a fork that does not say from which step.
var errForkFrom = errors.New("a fork begins at a step, or at the end")

// PlanFork decides how the next generation of a run begins with a copy of the run's history up to a step, in which some calls have
// other values. The keys of the argument values are stored names.
func PlanFork(s *RunToRepair, q *Request, values map[string][]byte) (*Result, error) {
	p, err := newForkPlan(s, q, values)
	if err == nil {
		err = p.checkNotCompensating()
	}
	if err == nil {
		err = p.checkUndoneIsKnown()
	}
	if err != nil {
		return nil, err
	}
	p.dropKnownUndone()
	return p.finishPlan(), nil
}

// CopyHistory returns the checkpoints of a new run that begins with such a copy, in the order of their names. It copies only calls with an
// outcome: the new run makes calls that still wait again, and starts new children for them. It omits the steps that compensations have
// undone, as far as these are known. All idempotency keys of the new run are new, because a key contains the UUID of the run. If calls
// have other places in the code than their Seqs say, the copy has a record.Renewal with these places. The caller sets Run and Epoch.
func CopyHistory(s *RunToRepair, q *Request, values map[string][]byte) (steps []store.Step, d record.RepairDetail, err error) {
	p, err := newForkPlan(s, q, values)
	if err != nil {
		return nil, d, err
	}
	p.dropKnownUndone()
	p.reviveEndedBranches()
	p.dropUndoneFailuresOfLosers()
	p.dropEnd()
	for i := range p.History {
		if row := &p.History[i]; !row.Status.IsTerminal() && p.callsWithValue[row.Name].Name == "" {
			p.dropped[row.Name] = true
		}
	}
	first, executedAgain := p.firstChange(), p.scopesExecutedAgain()
	for i := range p.History {
		row := p.History[i]
		valued, hasValue := p.callsWithValue[row.Name]
		switch {
		case isInternalRecord(&row):
			continue
		case hasValue:
			row = valued
			d.Corrected = append(d.Corrected, naming.Display(row.Name))
		case p.droppedBefore[row.Name]:
			continue
		case p.dropped[row.Name]:
			d.Dropped = append(d.Dropped, naming.Display(row.Name))
			continue
		default:
			d.Kept++
			if changed, ok := p.changeKeptValue(&row, executedAgain); ok {
				row = changed
			}
		}
		row.Seq = store.SeqOfKeptCall(row.Seq, first)
		steps = append(steps, row)
	}
	renewal := record.Renewal{Generation: 1, Places: p.renewal.Places, KeptUpTo: p.renewal.KeptUpTo}
	p.movePlaces(&renewal)
	if len(renewal.Places)+len(renewal.KeptUpTo) > 0 {
		steps = append(steps, renewal.NewStep(uuid.Nil, store.Epoch{}, q.Now))
	}
	slices.SortFunc(steps, func(a, b store.Step) int { return cmp.Compare(a.Name, b.Name) })
	d.ShortenLists()
	return steps, d, nil
}

func newForkPlan(s *RunToRepair, q *Request, values map[string][]byte) (*plan, error) {
	p := newPlan(s, q)
	switch {
	case q.From != "":
		if err := p.dropFromRequestedCall(); err != nil {
			return nil, err
		}
	case !q.FromEnd:
		return nil, fmt.Errorf("%w: %w", ErrFromRequired, errForkFrom)
	default:
		p.dropChoicesOfFailure()
		p.dropNodeFailures()
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		row, err := p.findCall(name)
		switch {
		case err == nil && row.Kind == store.KindSleep:
			err = p.endSleep(row, values[name])
		case err == nil:
			err = p.setValue(row, values[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}
