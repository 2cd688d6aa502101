package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// suspendTerminated suspends a run that was terminated. All contexts of the run end, and this process writes
// nothing more for it.
func (r *run) suspendTerminated() {
	if r.endWriteBegan.Load() {
		return // the run has ended by itself
	}
	r.suspend(suspensionSpec{cause: ErrTerminated, status: store.Cancelled})
	r.endOwnedCtx(ErrTerminated)
}

// suspendAfterFencedWrite suspends a run whose write was fenced: the run was terminated, or another execution owns it.
func (r *run) suspendAfterFencedWrite(state store.RunState) {
	if state.Found && state.Status == store.Cancelled && state.Epoch == r.row.Epoch {
		r.suspendTerminated()
		return
	}
	r.loseOwnership()
}

// suspendLostRuns suspends runs whose leases could not be renewed. It queries the database for the runs among them
// that were terminated. If the query fails, it treats all of them as lost.
func (w *worker) suspendLostRuns(ctx context.Context, runs []*run) {
	if len(runs) == 0 {
		return
	}
	held := make([]store.Lease, len(runs))
	for i, r := range runs {
		held[i] = store.Lease{Run: r.row.UUID, Epoch: r.row.Epoch, RunDeadline: r.deadline.expiryTime()}
	}
	changes, err := w.e.store.OwnedRunChanges(ctx, w.id, held)
	if err != nil {
		w.log.Warn("could not read why leases were lost", telemetry.KeyError, err)
	}
	ended := make(map[store.UUID]bool, len(changes.EndedLeases))
	for _, l := range changes.EndedLeases {
		ended[l.Run] = true
	}
	for _, r := range runs {
		if ended[r.row.UUID] {
			r.suspendTerminated()
		} else {
			r.loseOwnership()
		}
	}
}
