package engine

import (
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// noteNeededNameChanges notes which declared changes of names are needed for the history, or for the idempotency keys of calls that a repair
// has dropped.
func (r *run) noteNeededNameChanges() {
	def := r.workflowDefinition()
	noteRenamed := func(last string, kind store.StepKind) {
		for _, old := range def.PreviousCallNames {
			if old == last {
				r.preflightFindings.noteNeededNameChange(last, kind)
			}
		}
	}
	for name, row := range r.history {
		if len(def.PreviousCallNames) > 0 {
			r.noteRenamedBranches(name, noteRenamed)
			if c := record.DecodeChoiceStep(row); c != nil {
				for _, branch := range c.Of {
					r.noteRenamedBranches(naming.ParseDisplay(branch)+naming.Separator, noteRenamed)
				}
			}
		}
		if !isCallOfUser(row.Kind) {
			continue // neither Renamed nor Retired has an effect on such a row
		}
		last := name[len(scopePrefix(name)):]
		if def.RetiredCalls[last] {
			r.preflightFindings.noteNeededNameChange(last, row.Kind)
		}
		noteRenamed(last, row.Kind)
	}
	for name := range r.keyRenewals.keyNames {
		if r.history[name] == nil {
			r.noteRenamedBranches(name, noteRenamed)
			noteRenamed(name[len(scopePrefix(name)):], store.KindStep)
		}
	}
}

// noteRenamedBranches notes the branches around the call with the name. The row of a Map, whose items also have its name, is noted by itself.
func (r *run) noteRenamedBranches(name string, note func(branch string, kind store.StepKind)) {
	for at, c := range name {
		if string(c) != naming.Separator || r.history[name[:at]] != nil {
			continue
		}
		branch := name[:at]
		note(branch[strings.LastIndex(branch, naming.Separator)+1:], 0)
	}
}
