package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const firstReadRetryDelay = 20 * time.Millisecond // pause after the first failed read; it doubles up to a third of a lease

// ownedRunChangeLoop reads which control requests the runs in memory have, and which of these runs were woken. It
// reads after each hint and each lease renewal. The result of a flush also carries the control requests
// of its runs.
func (w *worker) ownedRunChangeLoop(ctx context.Context) {
	wait := firstReadRetryDelay
	for {
		select {
		case <-w.ownedRunChangesPending:
		case <-ctx.Done():
			return
		}
		w.ownedRunChangeReads.Add(1) // before the runs are listed
		runs := w.loadedRuns.all()
		if len(runs) == 0 {
			continue
		}
		if err := w.applyOwnedRunChanges(ctx, runs); err != nil {
			w.logFailure("could not read what was asked of the runs here; trying again", err)
			if !wakeup.SleepCtx(ctx, wait) {
				return
			}
			wait = min(2*wait, w.e.cfg.Lease/3)
			w.ownedRunChangesPending.Notify()
			continue
		}
		wait = firstReadRetryDelay
	}
}

// rereadChangesOfEnteredRuns is called when runs have entered memory of which the worker has become the owner since ownedRunChangeReads was
// before. A change of such a run notifies the worker from then on. If a read has begun meanwhile, the notification may be used up, without the
// run in the read. The next one would follow only the renewal of leases, so the changes are read again.
func (w *worker) rereadChangesOfEnteredRuns(before uint64) {
	if w.ownedRunChangeReads.Load() != before {
		w.ownedRunChangesPending.Notify()
	}
}

// applyOwnedRunChanges reads the changes to the runs and applies them. If the read fails, applyOwnedRunChanges wakes all the
// runs, because the lost result may have contained their wake-ups. It holds w.ownedRunChangesMu, so that no run parks during the
// read. Otherwise a run could park after the database has reported its wake-up, and before the run knows of it.
func (w *worker) applyOwnedRunChanges(ctx context.Context, runs []*run) error {
	w.ownedRunChangesMu.Lock()
	defer w.ownedRunChangesMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.e.cfg.Lease/3)
	defer cancel()
	held := make([]store.Lease, len(runs))
	here := make(map[uuid.UUID]*run, len(runs))
	due := make([]bool, len(runs))
	for i, r := range runs {
		due[i] = r.deadline.hasCome.Load()
		held[i] = store.Lease{Run: r.row.UUID, Epoch: r.row.Epoch, RunDeadline: r.deadline.expiryTime()}
		here[r.row.UUID] = r
	}
	changes, err := w.e.store.OwnedRunChanges(ctx, w.id, held)
	if err != nil {
		for _, r := range runs {
			r.recheckWaits()
		}
		return err
	}
	for _, l := range changes.EndedLeases {
		if r := here[l.Run]; r != nil && r.row.Epoch == l.Epoch {
			r.suspendTerminated()
		}
	}
	for _, l := range changes.ChangedDeadlines {
		if r := here[l.Run]; r != nil && r.row.Epoch == l.Epoch {
			r.deadline.update(l.RunDeadline)
		}
	}
	for i, r := range runs {
		if due[i] {
			r.deadline.expireIfDue()
		}
	}
	for _, a := range changes.ControlRequests {
		if r := here[a.Run]; r != nil && r.row.Epoch == a.Epoch {
			r.applyControl(a.Control)
		}
	}
	for _, id := range changes.Woken {
		if r := here[id]; r != nil {
			r.recheckWaits()
		}
	}
	if len(changes.Woken) > 0 {
		w.e.resultWaiters.QueryNow()
	}
	return nil
}

// recheckWaits makes the run's waits check the database again. If the run parks before they have checked, it
// becomes claimable at once, because the database reports each wake-up only once.
func (r *run) recheckWaits() {
	r.wokenInMemory.Store(true)
	r.waitingReceives.wake()
	r.permitWaits.Wake()
}
