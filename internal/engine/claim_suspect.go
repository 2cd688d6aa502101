package engine

import "github.com/seed8ec063be/durable/internal/store"

// A suspect is a run whose processes have died store.SuspectAfterCrashes times in a row while the run was in memory, without a new
// checkpoint in between. Either this run or another run in the same processes kills them. A worker executes one suspect at a time, so
// that the next death counts against that suspect only, and innocent runs make progress. A suspect is cleared by its next checkpoint,
// or when it leaves memory.

// maxClaimableSuspects returns how many suspects may be claimed now: zero or one.
func (w *worker) maxClaimableSuspects() int {
	if w.suspectRun.Load() != nil {
		return 0
	}
	return 1
}

// setSuspectRunIfCrashedOften makes the run the worker's suspect if it has crashed that often. It is called before the run is
// executed.
func (w *worker) setSuspectRunIfCrashedOften(r *run) {
	if r.row.Crashes >= store.SuspectAfterCrashes {
		w.suspectRun.Store(r)
	}
}

// clearSuspect clears the run if it is the worker's suspect, so that the worker can claim the next suspect.
func (r *run) clearSuspect() {
	if r.w.suspectRun.Load() == r && r.w.suspectRun.CompareAndSwap(r, nil) {
		r.w.wakeLoops()
	}
}

// clearSuspectByCheckpoint clears the run after a call with the given status was recorded. The row of a call that has not ended does not
// clear the run, because a crash would still count against the run.
func (r *run) clearSuspectByCheckpoint(recorded store.StepStatus) {
	if recorded.IsTerminal() {
		r.clearSuspect()
	}
}
