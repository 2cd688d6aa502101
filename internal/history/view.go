// Package history computes the status that users are shown for the checkpoints of a run. The row of a
// checkpoint does not hold everything that users are shown. The row of a sleep is completed before the
// sleep is over, and nobody updates an open row when its run or branch ends. A [View] derives the rest
// from the run's row, the recorded choices and the time. The views of the database do the same, except
// for choices and Maps. The root package shows histories by it, and durabletest explains waits by it.
package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// StatusCancelled is the status shown for a call that had no outcome when its run or its branch ended.
const StatusCancelled = "cancelled"

// View computes the status that users are shown for the checkpoints of one run.
type View struct {
	run        *store.Run
	now        time.Time
	branchEnds map[string]time.Time    // when choices ended the branches, by their prefixes
	maps       map[string]*mapProgress // counts of finished items, by the name of the Map
}

// mapProgress counts the items of a Map that have an outcome.
type mapProgress struct {
	done   int
	failed bool
	last   time.Time // when the last of these items ended
}

// NewView returns the view of the run at the time now. steps must hold at least the run's choices. To
// show Maps it must hold all checkpoints.
func NewView(run *store.Run, steps []store.Step, now time.Time) View {
	v := View{run: run, now: now}
	v.countItems(steps)
	for i := range steps {
		row := &steps[i]
		c := record.DecodeChoiceStep(row)
		if c == nil {
			continue
		}
		for _, name := range c.Ended {
			prefix := naming.ParseDisplay(name) + naming.Separator
			if at, ok := v.branchEnds[prefix]; ok && !row.EndedAt.Before(at) {
				continue
			}
			if v.branchEnds == nil {
				v.branchEnds = make(map[string]time.Time)
			}
			v.branchEnds[prefix] = row.EndedAt
		}
	}
	return v
}

// StatusOf returns the status to show for a checkpoint, and when the checkpoint or its last attempt ended. A
// zero time means that it has not ended.
func (v *View) StatusOf(row *store.Step) (status string, endedAt time.Time) {
	if row.Kind == store.KindMap {
		return v.ofMap(row)
	}
	due := row.EndedAt
	if row.Kind == store.KindSleep {
		due = row.NextAt
	}
	open := !row.Status.IsTerminal() || row.Kind == store.KindSleep
	if at := v.scopeEndedAt(row.Name); open && !at.IsZero() && (!row.Status.IsTerminal() || at.Before(due)) {
		return StatusCancelled, at
	}
	switch {
	case row.Kind != store.KindSleep || !row.Status.IsTerminal():
		return row.Status.String(), row.EndedAt
	case due.After(v.now):
		return store.StepStarted.String(), time.Time{}
	default:
		return row.Status.String(), due
	}
}

// ofMap is StatusOf for a Map. The row of a Map holds the number of its items, and is completed before the items
// are.
func (v *View) ofMap(row *store.Step) (status string, endedAt time.Time) {
	total, err := strconv.Atoi(string(row.Output))
	if err != nil {
		return row.Status.String(), row.EndedAt
	}
	var of mapProgress
	if m := v.maps[row.Name]; m != nil {
		of = *m
	}
	switch at := v.scopeEndedAt(row.Name); {
	case of.failed:
		return store.StepFailed.String(), of.last
	case of.done >= total:
		return row.Status.String(), of.last
	case !at.IsZero():
		return StatusCancelled, at
	default:
		return store.StepStarted.String(), time.Time{}
	}
}

// countItems counts the items with an outcome, for each Map.
func (v *View) countItems(steps []store.Step) {
	for i := range steps {
		if steps[i].Kind == store.KindMap {
			if v.maps == nil {
				v.maps = make(map[string]*mapProgress)
			}
			v.maps[steps[i].Name] = new(mapProgress)
		}
	}
	if v.maps == nil {
		return
	}
	for i := range steps {
		row := &steps[i]
		at := strings.LastIndex(row.Name, naming.Separator)
		if at < 0 || !row.Status.IsTerminal() || row.Kind == store.KindCompensation {
			continue
		}
		m := v.maps[row.Name[:at]]
		if m == nil {
			continue
		}
		m.done++
		m.failed = m.failed || row.Status == store.StepFailed
		if row.EndedAt.After(m.last) {
			m.last = row.EndedAt
		}
	}
}

// MayWait reports whether the run may still wait for the checkpoint, which must be non-terminal or a sleep.
func (v *View) MayWait(row *store.Step) bool {
	status, _ := v.StatusOf(row)
	return status != StatusCancelled
}

// scopeEndedAt returns when the run or the branch that contains the name ended, whichever ended first. It returns
// zero if neither has ended.
func (v *View) scopeEndedAt(name string) (first time.Time) {
	if v.run.Status.IsTerminal() {
		first = v.run.EndedAt
	}
	if len(v.branchEnds) == 0 {
		return first
	}
	for prefix := range naming.Scopes(name) {
		if at, ok := v.branchEnds[prefix]; ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
