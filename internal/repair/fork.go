package repair

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// errForkFrom is returned for a fork that does not say from which step.
var errForkFrom = errors.New("a fork begins at a step, or at the end")

// PlanFork decides how the next generation of a run begins with a copy of its history up to a step, in which some calls have
// other values. The keys of values are stored names.
func PlanFork(s *RunToRepair, q *Request, values map[string][]byte) (*Result, error) {
	p, err := newForkPlan(s, q, values)
	if err == nil {
		err = p.checkNotCompensating()
	}
	if err != nil {
		return nil, err
	}
	return p.finishPlan(), nil
}

// CopyHistory returns the checkpoints of another run that begins with such a copy, in the order of their names. It copies only
// what has an outcome: calls that wait are made again, and so are their children. The keys of steps are those of the other
// run, so all of them are new. Calls that began after one that is made again, or has another value, lose the mark of the goroutine
// that made them, because they need not be made any more. The caller sets Run and Epoch.
func CopyHistory(s *RunToRepair, q *Request, values map[string][]byte) (steps []store.Step, d record.RepairDetail, err error) {
	p, err := newForkPlan(s, q, values)
	if err != nil {
		return nil, d, err
	}
	p.reviveEndedBranches()
	p.dropEnd()
	changed := int32(math.MaxInt32) // the sequence number of the first call that is not copied as it is
	for i := range p.History {
		row := p.History[i]
		valued, hasValue := p.callsWithValue[row.Name]
		switch {
		case row.Kind == store.KindRenewal || row.Kind == store.KindFailure:
			continue
		case hasValue:
			row, changed = valued, min(changed, row.Seq)
			d.Corrected = append(d.Corrected, naming.Display(row.Name))
		case p.dropped[row.Name] || !row.Status.IsTerminal():
			changed = min(changed, row.Seq)
			d.Dropped = append(d.Dropped, naming.Display(row.Name))
			continue
		default:
			d.Kept++
		}
		steps = append(steps, row)
	}
	if renewal, err := record.FindRenewal(p.History); err == nil && renewal.HasRepair() { // which the copy does not record
		changed = min(changed, store.EncodeSeq(firstGap(p.History), false))
	}
	for i := range steps {
		if steps[i].Seq > changed {
			steps[i].Seq &^= store.SeqOwnGoroutine
		}
	}
	slices.SortFunc(steps, func(a, b store.Step) int { return cmp.Compare(a.Name, b.Name) })
	return steps, d, nil
}

// firstGap returns the first position that no call of the history has: that of a call that a repair has dropped, or the one after all.
func firstGap(history []store.Step) int32 {
	taken := make(map[int32]bool, len(history))
	for i := range history {
		taken[history[i].Position()] = true
	}
	gap := int32(1)
	for taken[gap] {
		gap++
	}
	return gap
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
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		row, err := p.findCall(name)
		if err == nil {
			err = p.setValue(row, values[name])
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// RunTimeout returns the duration of the run's timeout, or zero. It counts from the last repair that has begun it anew.
func RunTimeout(r *store.Run, renewal *record.Renewal) time.Duration {
	if r.Deadline.IsZero() {
		return 0
	}
	from := r.CreatedAt
	if !renewal.TimeoutFrom.IsZero() {
		from = renewal.TimeoutFrom
	}
	return max(r.Deadline.Sub(from), time.Microsecond)
}
