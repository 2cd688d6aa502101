package repair

import (
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// changeKept returns the row of a kept call for the next generation. It reports false if the row does not change.
func (p *plan) changeKept(row *store.Step, executedAgain map[string]bool) (changed store.Step, ok bool) {
	if p.wasInterrupted(row) {
		return p.withInterruptedAttempt(row), true
	}
	return p.changeKeptValue(row, executedAgain)
}

// changeKeptValue returns the row of a kept choice or Map, if the repair changes what it has recorded about other calls. It reports false
// if the row does not change.
func (p *plan) changeKeptValue(row *store.Step, executedAgain map[string]bool) (changed store.Step, ok bool) {
	if row.Kind == store.KindMap {
		return p.withItemCount(row)
	}
	return withoutReturnedLosers(row, executedAgain)
}

// wasInterrupted reports whether the row is of an attempt that was interrupted by the end of the run, a choice or this repair, so that another
// attempt must follow.
func (p *plan) wasInterrupted(row *store.Step) bool {
	if row.Status != store.StepStarted || row.Kind != store.KindStep && row.Kind != store.KindTx || record.IsUnknownOnce(row) {
		return false
	}
	return (p.Run.Status.IsTerminal() || p.request.InterruptsSteps || p.isRevived(row.Name)) && p.choiceThatEnded(row.Name) == nil
}

// withInterruptedAttempt returns the row with a backoff in place of the started marker, as a process writes it that shuts down during an
// attempt. With the marker, the process of the attempt would count as dead, and the step would fail if the retry policy allows no further
// attempt.
func (p *plan) withInterruptedAttempt(row *store.Step) store.Step {
	failures := record.DecodeFailures(row)
	open := failures.Open
	if open == nil {
		open = &record.FailedAttempt{Attempt: row.Attempt}
	}
	open.Interrupted, failures.Open = true, nil
	failures.Add(open)
	changed := *row
	changed.Status, changed.EndedAt, changed.NextAt, changed.Failures = store.StepBackoff, p.request.Now, p.request.Now, failures.Encode(false)
	return changed
}

// choiceThatEnded returns a kept choice that has ended a branch around the call, or nil. It ignores branches that had returned before the
// choice, because they can make their calls again.
func (p *plan) choiceThatEnded(name string) *store.Step {
	for _, c := range p.choices {
		if !p.dropped[c.row.Name] && slices.ContainsFunc(c.Ended, func(branch string) bool { return strings.HasPrefix(name, branchPrefix(branch)) }) {
			return c.row
		}
	}
	return nil
}

// noteRerunItem notes which items of Maps are executed even if another item of the Map has failed: the item that a Rerun names, and the
// items of earlier reruns that the run has not executed yet.
func (p *plan) noteRerunItem(renewal *record.Renewal) {
	items := slices.DeleteFunc(slices.Clone(renewal.RerunItems), func(item string) bool { return p.historyByName[naming.ParseDisplay(item)] != nil })
	if p.rerunItem != "" {
		items = append(items, p.rerunItem)
	}
	renewal.RerunItems = items
}
