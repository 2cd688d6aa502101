package engine

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const expiredRepairPausesPerSearch = 100 // how many runs one search resumes

// resumeAfterExpiredRepairsLoop calls resumeAfterExpiredRepairs from time to time.
func (w *worker) resumeAfterExpiredRepairsLoop(ctx context.Context) {
	w.callSearchPeriodically(ctx, w.resumeAfterExpiredRepairs, "could not resume all runs whose repairs have not ended")
}

// resumeAfterExpiredRepairs resumes live runs that were paused for repairs which did not end within their leases. The processes that made
// these repairs have probably died. A process that has not died finds that its run has changed, and plans its repair anew.
func (w *worker) resumeAfterExpiredRepairs(ctx context.Context) error {
	now := w.e.clock.Now()
	runs, err := w.e.store.ExpiredRepairPauses(ctx, now, expiredRepairPausesPerSearch)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range runs {
		errs = append(errs, w.resumeAfterExpiredRepair(ctx, id, now)) // after an error, the other runs are still resumed
	}
	return errors.Join(errs...)
}

// resumeAfterExpiredRepair resumes a run whose repair did not end by the given time.
func (w *worker) resumeAfterExpiredRepair(ctx context.Context, id uuid.UUID, now time.Time) error {
	o := &store.ControlRequest{Verb: store.VerbResume, Runs: uuidList(id), ForRepair: true}
	if err := w.e.controlRuns(ctx, newWriteOptions(ctx.Done()), o); err != nil {
		return err
	}
	if r := o.Results[0]; r.ControlBefore&store.PausedForRepair != 0 && !r.Status.IsTerminal() {
		w.log.Warn("a run is resumed that was paused for a repair: the process that repaired it has died, or took longer than its lease", telemetry.KeyRun, id)
	}
	return w.e.store.DeleteRepairPause(ctx, id, now)
}
