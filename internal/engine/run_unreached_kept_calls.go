package engine

import (
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A repair can keep calls that follow a call that it repeats. If the run then ends at the repeated call, its function does not come to the
// kept calls, and does not register the compensations that follow them. The effects of the kept calls remain, and the run's error has to
// say so.

// addUnreachedKeptCallsTo returns the run's failure, with the names of the calls that a repair has kept and that the function did not
// reach. It is called after the run's compensations have been executed.
func (r *run) addUnreachedKeptCallsTo(failure *record.Failure) *record.Failure {
	if failure == nil || r.keyRenewals.runGeneration() == 1 {
		return failure
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := slices.DeleteFunc(r.uncalledRowsLocked(), func(row *store.Step) bool { return !mayHaveTakenEffect(row) })
	if len(kept) == 0 {
		return failure
	}
	names := displayFirst(kept)
	f := *failure
	f.Codes = append(slices.Clone(f.Codes), record.CodeCompensation)
	f.Message += fmt.Sprintf("; nothing has undone the effects of %q", names)
	if more := len(kept) - len(names); more > 0 {
		f.Message += fmt.Sprintf(" and %d other calls", more)
	}
	f.Message += ", which a repair has kept, because the run ended before its function called them again"
	return &f
}

// mayHaveTakenEffect reports whether the row records a call that has succeeded and that may have changed something outside of the run.
func mayHaveTakenEffect(row *store.Step) bool {
	switch row.Kind {
	case store.KindStep, store.KindTx, store.KindChild, store.KindSendSignal, store.KindStartRoot:
		return row.Status == store.StepCompleted
	}
	return false
}
