package engine

import "github.com/seed8ec063be/durable/internal/store"

// A suspect is a run that was in memory when its process died, store.SuspectAfterCrashes times in a row without
// a new checkpoint in between. Either this run or another run in the same process kills processes. A
// worker executes one suspect at a time, so that the next death counts against that suspect only, and
// innocent runs make progress. A suspect is cleared by its next checkpoint, or when it leaves memory.

// maxClaimableSuspects returns how many suspects may be claimed now: zero or one.
func (w *worker) maxClaimableSuspects() int {
	if w.suspectRun.Load() != nil {
		return 0
	}
	return 1
}

// setSuspectRunIfCrashedOften makes the run the worker's suspect if it is a suspect. The run is not executed yet.
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

// clearSuspectByCheckpoint clears the run after a call with the given status was recorded. A call that has not ended is no checkpoint: if the
// process died now, the crash would count against this run too.
func (r *run) clearSuspectByCheckpoint(recorded store.StepStatus) {
	if recorded.IsTerminal() {
		r.clearSuspect()
	}
}
