package repair

import (
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// recordedChoice is a choice of the history, with its row.
type recordedChoice struct {
	row *store.Step
	*record.Choice
}

// dropChoicesDecidedBy drops the choices that the failure of the call, or of a branch around it, has decided.
func (p *plan) dropChoicesDecidedBy(failed *store.Step) {
	p.dropChoicesDecidedBelow(failed.Name)
}

// dropChoicesOfFailure drops the choices that made the run fail, although the branches that decided them may have failed by themselves.
func (p *plan) dropChoicesOfFailure() {
	for _, branch := range record.DecodeFailure(p.Run.Error).Branches {
		p.dropChoicesDecidedBelow(branchPrefix(branch))
	}
}

// dropChoicesDecidedBelow drops the choices that were decided by the failure of a branch to which the name belongs.
func (p *plan) dropChoicesDecidedBelow(name string) {
	for _, c := range p.choices {
		if slices.ContainsFunc(c.Failed, func(i int) bool {
			return i >= 0 && i < len(c.Of) && strings.HasPrefix(name, branchPrefix(c.Of[i]))
		}) {
			p.dropCheckpoint(c.row)
		}
	}
}

// reviveEndedBranches notes which branches the dropped choices had ended, unless a kept choice has ended them too. In these branches it drops
// the calls that failed after the choice had begun, because they may have failed only because the choice ended their contexts. In a graph, if
// the choice ended a node, it also drops the calls of the nodes whose verdicts could differ if that node completes.
func (p *plan) reviveEndedBranches() {
	for changed := true; changed; { // the failure of a call that is dropped here may have decided a further choice
		changed = false
		p.revivedPrefixes = p.revivedPrefixes[:0]
		var stayEnded []string
		since := make(map[string]*store.Step) // the first choice that ended the branch
		for _, c := range p.choices {
			branches := slices.Concat(c.Ended, c.Returned)
			if !p.dropped[c.row.Name] {
				stayEnded = append(stayEnded, branches...)
				continue
			}
			for _, branch := range branches {
				if first := since[branch]; first == nil || c.row.StartedAt.Before(first.StartedAt) {
					since[branch] = c.row
				}
			}
		}
		for branch, choice := range since {
			if slices.Contains(stayEnded, branch) {
				continue
			}
			prefix := branchPrefix(branch)
			p.revivedPrefixes = append(p.revivedPrefixes, prefix)
			changed = p.dropNodesAfterEndOf(naming.ParseDisplay(branch)) || changed
			for i := range p.History {
				row := &p.History[i]
				_, isOpen := p.reopenedCalls[row.Name]
				_, hasValue := p.callsWithValue[row.Name]
				if row.Status == store.StepFailed && strings.HasPrefix(row.Name, prefix) && !p.dropped[row.Name] && !isOpen && !hasValue && !row.EndedAt.Before(choice.StartedAt) {
					p.dropChoicesDecidedBy(row)
					p.dropCheckpoint(row)
					changed = true
				}
			}
		}
	}
}

// scopesExecutedAgain returns the prefixes of the scopes in which a call with an outcome is made again or waits for its child again.
func (p *plan) scopesExecutedAgain() map[string]bool {
	prefixes := make(map[string]bool)
	for i := range p.History {
		row := &p.History[i]
		_, isOpen := p.reopenedCalls[row.Name]
		_, hasValue := p.callsWithValue[row.Name]
		if row.Status.IsTerminal() && !isInternalRecord(row) && !hasValue && (p.dropped[row.Name] || isOpen) {
			for prefix := range naming.Scopes(row.Name) {
				prefixes[prefix] = true
			}
		}
	}
	return prefixes
}

// withoutReturnedLosers removes from the choice the losers that had returned before it and that execute a call again. If they stayed
// losers, that call would return ErrCancelled, and their results, which the choice had left valid, would change. It reports false if
// there are no such losers.
func withoutReturnedLosers(row *store.Step, executedAgain map[string]bool) (changed store.Step, ok bool) {
	c := record.DecodeChoiceStep(row)
	if c == nil {
		return changed, false
	}
	n := len(c.Returned)
	c.Returned = slices.DeleteFunc(c.Returned, func(branch string) bool { return executedAgain[branchPrefix(branch)] })
	out, err := c.Encode()
	if len(c.Returned) == n || err != nil {
		return changed, false
	}
	changed = *row
	changed.Output = out
	return changed, true
}

// hasLostKeptChoice reports whether the call is in a branch that has lost a kept choice.
func (p *plan) hasLostKeptChoice(name string) bool {
	for _, c := range p.choices {
		if p.dropped[c.row.Name] {
			continue
		}
		for b, branch := range c.Of {
			if !slices.Contains(c.Won, b) && strings.HasPrefix(name, branchPrefix(branch)) {
				return true
			}
		}
	}
	return false
}

// branchPrefix returns the prefix of the names in a branch.
func branchPrefix(branch string) string { return naming.ParseDisplay(branch) + naming.Separator }

// isRevived reports whether the call is in a branch that a dropped choice had ended.
func (p *plan) isRevived(name string) bool {
	return slices.ContainsFunc(p.revivedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
