package repair

import (
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// dropUndone drops the steps that the executed compensations have undone. It returns an error if the code did not name these steps. A
// name without a recorded call belongs to a step that was not executed, because a compensation may be registered before its step.
func (p *plan) dropUndone() error {
	for i := range p.History {
		row := &p.History[i]
		if row.Kind != store.KindCompensation {
			continue
		}
		steps := p.undoes[naming.Display(row.Name)]
		switch {
		case len(steps) == 0 && row.Status == store.StepCompleted:
			return unknownUndoneError(row)
		case len(steps) == 0:
			return fmt.Errorf("%w: its compensation %q was executed, and does not say which steps it undoes (see Undoes)", ErrFromRequired, naming.Display(row.Name))
		case row.Status != store.StepCompleted:
			return fmt.Errorf("%w: its compensation %q has no success, so it is not known whether the steps %q are undone", ErrFromRequired, naming.Display(row.Name), steps)
		}
		p.dropUndoneBy(steps)
	}
	return nil
}

// dropKnownUndone drops the steps that compensations have undone, as far as these are known. It is for a request that names the first step to
// repeat: steps that are not known to be undone are the responsibility of the person who named that step.
func (p *plan) dropKnownUndone() {
	for i := range p.History {
		if row := &p.History[i]; hasCompensated(row) {
			p.dropUndoneBy(p.undoes[naming.Display(row.Name)])
		}
	}
}

// checkUndoneIsKnown returns an error if the request keeps all calls (FromEnd) and a compensation has undone steps that are not known.
// If such steps were kept, they would count as completed, and the next failure of the run would undo them once more.
func (p *plan) checkUndoneIsKnown() error {
	for i := range p.History {
		if row := &p.History[i]; p.request.FromEnd && hasCompensated(row) && len(p.undoes[naming.Display(row.Name)]) == 0 {
			return fmt.Errorf("%w: From names the first step to execute again", unknownUndoneError(row))
		}
	}
	return nil
}

func hasCompensated(row *store.Step) bool {
	return row.Kind == store.KindCompensation && row.Status == store.StepCompleted
}

// dropUndoneBy drops the calls for which the names in Undoes stand, and gives them new keys, even if they had failed or were interrupted,
// because their effects are undone. With the old key, an external system would take such a call for a repetition of the undone call, and do
// nothing. An interrupted call may have no record, so the names themselves get new keys too. dropUndoneFailuresOfLosers decides whether calls
// are dropped that failed in the loser of a choice.
func (p *plan) dropUndoneBy(steps []string) {
	for _, name := range steps {
		p.undoneNames = append(p.undoneNames, name)
		for _, step := range p.callsOf(name) {
			if p.isFailureOfLoser(step) {
				p.undoneFailures[step.Name] = step
			} else {
				p.dropCheckpoint(step)
			}
			if hasIdempotencyKey(step.Kind) {
				p.renewedKeys[step.Name] = true
			}
		}
	}
}

// isFailureOfLoser reports whether the call has failed in a branch that lost a choice, and neither the call nor the choice is dropped so far. A
// Map has failed if one of its items has failed; this also counts for its other items.
func (p *plan) isFailureOfLoser(row *store.Step) bool {
	if scope := p.mapOfItem(row); scope != nil {
		row = scope
	}
	failed := row.Status == store.StepFailed
	if row.Kind == store.KindMap {
		failed = p.hasFailedItem(row)
	}
	return failed && !p.dropped[row.Name] && p.hasLostKeptChoice(row.Name)
}

// hasFailedItem reports whether an item of the Map has failed.
func (p *plan) hasFailedItem(scope *store.Step) bool {
	failed, isKnown := p.failedMaps[scope.Name]
	if !isKnown {
		failed = slices.ContainsFunc(p.callsOf(naming.Display(scope.Name)), func(item *store.Step) bool { return item.Status == store.StepFailed })
		p.failedMaps[scope.Name] = failed
	}
	return failed
}

// dropUndoneFailuresOfLosers drops the undone calls that failed in the losers of dropped choices. It keeps those whose choice is kept, because
// the run has continued without such a call: executed again, the call could take effect in addition to the calls of the winner.
func (p *plan) dropUndoneFailuresOfLosers() {
	for name, row := range p.undoneFailures {
		switch {
		case p.dropped[name]:
		case p.hasLostKeptChoice(name):
			delete(p.renewedKeys, name)
		default:
			p.dropCheckpoint(row)
		}
	}
}

// unknownUndoneError returns the error for a compensation that has succeeded if it is not known which steps it has undone.
func unknownUndoneError(compensation *store.Step) error {
	return fmt.Errorf("%w: its compensation %q has succeeded, and does not say which steps it undoes (see Undoes)", ErrFromRequired, naming.Display(compensation.Name))
}

// callsOf returns the recorded calls that the name stands for, as people see it: the call itself, and those in its scope if it is a Map or
// a branch.
func (p *plan) callsOf(name string) (calls []*store.Step) {
	if p.rowsByScope == nil {
		p.rowsByScope = make(map[string][]*store.Step)
		for i := range p.History {
			row := &p.History[i]
			if isInternalRecord(row) || row.Kind == store.KindCompensation {
				continue
			}
			for scope := range naming.Scopes(row.Name) {
				p.rowsByScope[scope] = append(p.rowsByScope[scope], row)
			}
		}
	}
	name = naming.ParseDisplay(name)
	if call := p.historyByName[name]; call != nil {
		calls = append(calls, call)
	}
	return append(calls, p.rowsByScope[name+naming.Separator]...)
}

// renewCompensations gives a new idempotency key to each dropped compensation that undoes a step with a new key: with the old key, an
// external system would take it for the compensation of the step's earlier execution.
func (p *plan) renewCompensations() {
	for name, steps := range p.undoes {
		row := p.historyByName[naming.ParseDisplay(name)]
		if row != nil && p.dropped[row.Name] && slices.ContainsFunc(steps, func(step string) bool {
			return slices.ContainsFunc(p.callsOf(step), func(call *store.Step) bool { return p.renewedKeys[call.Name] })
		}) {
			p.renewedKeys[row.Name] = true
		}
	}
}
