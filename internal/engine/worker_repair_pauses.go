package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const maxExpiredRepairPauses = 100 // how many runs one search resumes

// resumeAfterRepairs resumes live runs that were paused for repairs which did not end within their leases. The processes that made them
// have probably died. If one has not, it finds that its run has changed, and plans its repair anew.
func (w *worker) resumeAfterRepairs(ctx context.Context) error {
	now := w.e.clock.Now()
	runs, err := w.e.store.ExpiredRepairPauses(ctx, now, maxExpiredRepairPauses)
	if err != nil {
		return err
	}
	for _, id := range runs {
		o := &store.ControlRequest{Verb: store.VerbResume, Runs: uuidList(id), ForRepair: true}
		if err := w.e.controlRuns(ctx, callerUntil(ctx.Done()), o); err != nil {
			return err
		}
		if r := o.Results[0]; r.Control&store.PausedForRepair != 0 && !r.Status.IsTerminal() {
			w.log.Warn("a run is resumed that was paused for a repair: the process that repaired it has died, or took longer than its lease", telemetry.KeyRun, id)
		}
		if err := w.e.store.DeleteRepairPause(ctx, id, now); err != nil {
			return err
		}
	}
	return nil
}
