package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A run that is held because the code did not fit its history is tried again by a version that has not diverged on
// it, such as the fixed one, or the old one after a rollback. So each worker that has a version tries held runs
// from time to time, one at a time, beside its claims. A version that has diverged on a run does not try it again by itself. When
// another version has continued the run, the run's lane names the diverged versions, so that the claims of their workers do not take
// the run later; see store.DivergedVersions.

const (
	maxHeldRunsInterval   = 10 * time.Second       // the time between two searches, unless leases are shorter
	maxHeldRunTryDuration = 5 * time.Second        // after this time the next run is tried, even if the previous one still replays
	maxHeldRunPoll        = 100 * time.Millisecond // the longest time between two checks of the run that is tried
)

// retryHeldRunsLoop tries held runs from time to time.
func (w *worker) retryHeldRunsLoop(ctx context.Context) {
	w.callSearchPeriodically(ctx, w.retryHeldRuns, "could not try the runs that are held")
}

// callSearchPeriodically calls search until ctx ends, as often as held runs are searched for. If search fails, it logs the message.
func (w *worker) callSearchPeriodically(ctx context.Context, search func(context.Context) error, failed string) {
	for {
		if err := search(ctx); err != nil && ctx.Err() == nil {
			w.log.Debug(failed, telemetry.KeyError, err)
		}
		if !wakeup.SleepCtx(ctx, w.otherWorkers.PollInterval(min(w.e.cfg.Lease/3, maxHeldRunsInterval))) {
			return
		}
	}
}

// retryHeldRuns tries the held runs on which this version has not diverged. It also deletes the divergences of runs that have
// continued.
func (w *worker) retryHeldRuns(ctx context.Context) error {
	if err := w.e.store.DeleteDivergences(ctx); err != nil || w.e.programVersionIfOrdered() == "" {
		return err
	}
	var last uuid.UUID
	for ctx.Err() == nil {
		held, err := w.e.store.RunsHeldForDrift(ctx, w.e.programVersionIfOrdered(), w.e.claimFilter, last, 1)
		if err != nil || len(held) == 0 {
			return err
		}
		last = held[0]
		if err := w.retryHeldRun(ctx, last); err != nil {
			return err
		}
	}
	return nil
}

// retryHeldRun claims a held run, and waits until it has left memory or has executed something new.
func (w *worker) retryHeldRun(ctx context.Context, id uuid.UUID) error {
	free := w.awaitSlotForHeldRun(ctx)
	defer free.Release()
	if free.Capacity() == 0 {
		return nil
	}
	// The claim does not use the loop's context: a claim that is cancelled in flight may have taken the run.
	claiming, cancel := context.WithTimeout(w.ctx, w.e.cfg.Lease/2)
	defer cancel()
	held, err := w.e.store.GetRunsSelectingPayloads(claiming, []store.RunRef{{UUIDOrName: id.String()}}, store.NoPayloads)
	if err != nil || held[0] == nil {
		return err
	}
	q := w.newClaimQuery()
	if q.Versions, err = w.versionClaimRules(claiming, q.Now); err != nil {
		return err
	}
	if _, pinned := w.e.pinnedWorkflows[held[0].Workflow]; pinned && !q.Versions.AllowsClaim(held[0].Queue, held[0].Workflow, held[0].Version, "") {
		// The workflow is pinned and a worker of the run's version lives, so no other version executes the run. But a run without a recorded
		// call belongs to no version yet: its present version was only the first to claim it, and did not fit its input.
		if steps, err := w.e.store.HistoryOutline(claiming, id); err != nil || len(steps) > 0 {
			return err
		}
	}
	divergences, err := w.e.store.Divergences(claiming, id)
	if err != nil {
		return err
	}
	hintsBefore := w.ownedRunChangeHints.Load()
	row, err := w.e.store.ClaimRunHeldForDrift(claiming, held[0], store.DivergedVersionsOf(divergences), q)
	switch {
	case err != nil:
		w.failedClaims.add(q)
		return err
	case row == nil:
		return nil
	}
	w.log.Info("a run that was held is tried, because this version has not diverged on it", telemetry.KeyRun, id, telemetry.KeyWorkflow, row.Workflow)
	if row.Status != store.Running {
		w.wakeLoops()
		return nil
	}
	w.startExecution(&store.ClaimedRun{Run: *row, UnreadHistory: store.UnreadHistory{Exists: true}}, 0, &free)
	w.rereadChangesOfEnteredRuns(hintsBefore)
	began := time.Now()
	for wait := time.Millisecond; time.Since(began) < maxHeldRunTryDuration; wait = min(2*wait, maxHeldRunPoll) {
		if r := w.loadedRuns.get(id); r == nil || r.pastReplay.Load() && !r.isSuspended() {
			break
		}
		if !wakeup.SleepCtx(ctx, wait) {
			break
		}
	}
	return nil
}

// awaitSlotForHeldRun waits until a slot is free, and reserves it. If ctx ends first, it returns a Reservation without a slot.
func (w *worker) awaitSlotForHeldRun(ctx context.Context) slots.Reservation {
	for wait := time.Millisecond; ; wait = min(2*wait, maxHeldRunPoll) {
		if free := w.slots.Reserve(1, 0, 0); free.Capacity() > 0 || !wakeup.SleepCtx(ctx, wait) {
			return free
		}
	}
}
