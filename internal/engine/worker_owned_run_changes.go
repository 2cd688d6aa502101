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

// notifyOwnedRunChange makes the worker read the changes of its runs, because one of them may have changed: after a notification, at the
// deadline of a run, and after each renewal of leases, where notifications may be missing.
func (w *worker) notifyOwnedRunChange() {
	w.ownedRunChangeHints.Add(1)
	w.ownedRunChangesPending.Notify()
}

// rereadChangesOfEnteredRuns is called when runs have entered memory of which the worker has become the owner since ownedRunChangeHints was
// before. A change of such a run notifies the worker from then on. If the worker was notified meanwhile, it may have read the changes already,
// without the run in the read. The next read would follow only the renewal of leases, so the changes are read again. This read counts as no
// hint: otherwise the starts of a busy worker would make it read all the time.
func (w *worker) rereadChangesOfEnteredRuns(before uint64) {
	if w.ownedRunChangeHints.Load() != before {
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
	var due []*run
	for i, r := range runs {
		if r.deadline.hasCome.Load() {
			due = append(due, r)
		}
		held[i] = store.Lease{Run: r.row.UUID, Epoch: r.row.Epoch, RunDeadline: r.deadline.expiryTime()}
	}
	changes, err := w.e.store.OwnedRunChanges(ctx, w.id, held)
	if err != nil {
		for _, r := range runs {
			r.recheckWaits()
		}
		return err
	}
	here := make(map[uuid.UUID]*run)
	if !changes.IsEmpty() { // usually nothing has changed, and a busy worker has many runs
		for _, r := range runs {
			here[r.row.UUID] = r
		}
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
	for _, r := range due {
		r.deadline.expireIfDue()
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
