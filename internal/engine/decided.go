package engine

import (
	"encoding/json/v2"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run that fails decides once how it ends. Before its first compensation is called, the failure and the
// registered compensations are recorded. Every later execution comes to this end, also with other code: its calls
// that are not in history return an error, it executes the recorded compensations, and it ends with the recorded
// failure. Otherwise a run could be undone in part and then go on, after code that was corrected is deployed.
//
// A cancel needs no such record, since it is kept with the run and is never taken back. A run without
// compensations has none either.

// decidedName is the name of the record. No call can have it.
const decidedName = separator + "failure"

// decided is the output of the record; the failure is its error.
type decided struct {
	Status        string   `json:"status"`        // how the run ends
	Compensations []string `json:"compensations"` // as people see them, in the order of their registration
}

// ends are the statuses that are decided by a record.
var ends = []store.Status{store.Failed, store.Expired}

// decide records how the run ends, unless that is recorded, or need not be. It reports false if the run was
// suspended over it.
func (r *run) decide(status store.Status, failure *Failure) bool {
	if r.decided != nil {
		return r.keepDecided()
	}
	if len(r.undos) == 0 || !slices.Contains(ends, status) {
		return true
	}
	made := decided{Status: status.String()}
	for _, u := range r.undos {
		made.Compensations = append(made.Compensations, Shown(u.name))
	}
	record, err := json.Marshal(&made)
	if err != nil { // names are valid text
		record = nil
	}
	t := &task{
		r: r, s: &Scope{r: r, ctx: r.hard, work: r.hard, undo: true}, spec: &Spec{Kind: store.KindFailure},
		name: decidedName, attempt: 1, first: r.e.clock.now(),
	}
	w := t.row(store.StepFailed, record, failure)
	if _, _, err := t.write(w); err != nil {
		return false
	}
	if w.Outcome == store.Adopted { // of an execution that got further: the next one replays it
		r.lose()
		return false
	}
	return true
}

// recall reads from the history, once it is complete, how the run ends. What the run does up to there is as at
// first, so its contexts end at its first call that is not in history.
func (r *run) recall() {
	row := r.history[decidedName]
	if row == nil || row.Kind != store.KindFailure {
		return
	}
	d, status := new(decided), store.Failed
	if json.Unmarshal(row.Output, d) != nil {
		*d = decided{} // what the code registers is executed
	}
	if d.Status == store.Expired.String() {
		status = store.Expired
	}
	failure := DecodeFailure(row.Error)
	cause := ErrTimeout
	if status == store.Failed {
		cause = fmt.Errorf("%w: the run has failed before, and is only undone now (%s)", ErrCancelled, failure.Message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.decided = d
	if r.doomed == nil || r.doomed.status != store.Cancelled {
		r.doomed = &doom{cause: cause, status: status, failure: failure, recorded: true}
	}
}

// keepDecided leaves the compensations that are recorded, in their order, and no others. If the code does not
// register one that has no outcome, the run is held: what it undoes would stay done.
func (r *run) keepDecided() bool {
	if len(r.decided.Compensations) == 0 {
		return true
	}
	registered := make(map[string]undo, len(r.undos))
	for _, u := range r.undos {
		registered[u.name] = u
	}
	var kept []undo
	var missing []string
	for _, shown := range r.decided.Compensations {
		name := Unshown(shown)
		u, ok := registered[name]
		switch row := r.history[name]; {
		case ok:
			kept = append(kept, u)
		case row == nil || !row.Status.Terminal():
			missing = append(missing, shown)
		case row.Status == store.StepFailed:
			r.noteUndone(name, DecodeFailure(row.Error))
		}
	}
	if len(missing) > 0 {
		err := fmt.Errorf("%w: the code does not register the compensations %q: bring back the code that does", ErrDiverged, missing)
		r.suspend(suspension{cause: ErrHeld, status: store.Pending, reason: holdReason("undo the failed run", "", err), lacks: true})
		return false
	}
	r.mu.Lock()
	r.undos, r.decided.Compensations = kept, nil
	r.mu.Unlock()
	return true
}

// noteUndone notes a compensation that has finally failed.
func (r *run) noteUndone(name string, f *Failure) {
	r.undone = append(r.undone, "compensation "+Shown(name)+" failed: "+f.Message)
}
