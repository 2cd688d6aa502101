package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/retention"
	"github.com/seed8ec063be/durable/internal/store"
)

// Retention determines how long runs that have ended, superseded generations and events are kept. The zero Retention keeps
// everything. A duration of zero keeps rows for ever; any other duration must be at least one minute. Workers delete rows that
// are older than the Retention allows from time to time, in small transactions.
//
// A root run is deleted with all its descendants, as by [Engine.Delete], when the root run and all descendants ended longer ago
// than the duration for the root's workflow and status. No event is written when Retention deletes a run. A [Detached] child
// that has not ended stays, and is later deleted as a root run.
//
// A worker deletes runs of the workflows that it executes ([Config].Workflows), and of the workflows in Retention.Workflows.
// Keep runs for longer than any client may repeat a start with the same ID, because after a deletion a start with the same ID
// starts a new run.
type Retention struct {
	// Runs is how long ended runs are kept, for each status.
	Runs RetentionByStatus
	// Workflows has, by the name of a workflow, durations that apply to the workflow's runs in place of Runs. If Workflows has
	// an entry for a workflow, no duration of Runs applies to that workflow.
	Workflows map[string]RetentionByStatus
	// Generations is how long superseded generations of live and ended runs are kept; see [Engine.Generations]. The newest
	// superseded generation of a run is kept as long as the run. [Detached] children of a superseded generation are kept as root
	// runs, as long as Runs and Workflows say. If Generations is zero, all superseded generations are kept as
	// long as the run.
	Generations time.Duration
	// Events is how long events are kept. Set Events to a longer time than a reader of events may be offline: a reader whose
	// cursor is older misses the deleted events. If Events is zero, events are kept for ever.
	Events time.Duration
	// Archive is called with each run before it is deleted, and with each superseded generation, one after the other. If
	// Archive returns an error or panics, the tree of the run is kept, the error is logged, and Archive is called again later.
	// Archive may be called several times with the same run, in several processes, so make Archive idempotent. The context that
	// Archive gets ends when [Engine.Run] ends. If the engine has a [Config.Codec], the payloads of the run that Archive gets
	// are encoded; see [Engine.DecodeExport]. A run with a payload that cannot be decoded is not deleted. If Archive is nil,
	// runs are deleted without an archive.
	Archive func(ctx context.Context, run *Exported) error
}

// RetentionByStatus sets, for each status, how long runs are kept after they have ended. Runs are kept for ever if the duration
// is zero.
type RetentionByStatus struct {
	Completed, Failed, Cancelled, Expired time.Duration
}

// KeepFor returns a RetentionByStatus with the same duration for each status.
func KeepFor(d time.Duration) RetentionByStatus { return RetentionByStatus{d, d, d, d} }

// durations returns the durations by status.
func (k RetentionByStatus) durations() map[store.Status]time.Duration {
	return map[store.Status]time.Duration{store.Completed: k.Completed, store.Failed: k.Failed, store.Cancelled: k.Cancelled, store.Expired: k.Expired}
}

// check returns ErrInvalidConfig for invalid durations.
func (r *Retention) check() error {
	var errs []error
	check := func(what string, d time.Duration) {
		if d != 0 && d < store.MinRetention {
			errs = append(errs, fmt.Errorf("%w: Retention.%s is %v: it must be at least %v, or zero for ever", ErrInvalidConfig, what, d, store.MinRetention))
		}
	}
	checkAll := func(what string, k RetentionByStatus) {
		check(what+".Completed", k.Completed)
		check(what+".Failed", k.Failed)
		check(what+".Cancelled", k.Cancelled)
		check(what+".Expired", k.Expired)
	}
	checkAll("Runs", r.Runs)
	for _, name := range slices.Sorted(maps.Keys(r.Workflows)) {
		if err := naming.Check("workflow", name); err != nil {
			errs = append(errs, fmt.Errorf("Config.Retention.Workflows: %w", err))
		}
		checkAll(fmt.Sprintf("Workflows[%q]", name), r.Workflows[name])
	}
	check("Generations", r.Generations)
	check("Events", r.Events)
	return errors.Join(errs...)
}

// toEngine returns the settings for the engine e, which executes the given workflows.
func (r *Retention) toEngine(e *Engine, executed map[string]bool) retention.Policy {
	out := retention.Policy{Keep: make(map[string]map[store.Status]time.Duration), Generations: r.Generations, Events: r.Events}
	for name := range executed {
		out.Keep[name] = r.Runs.durations()
	}
	for name, keep := range r.Workflows {
		out.Keep[name] = keep.durations()
	}
	if archive := r.Archive; archive != nil {
		out.Archive = func(ctx context.Context, run uuid.UUID, generation int32) error {
			x, err := e.exportRun(ctx, run.String(), int(generation), false)
			if err != nil {
				return err
			}
			return archive(ctx, x)
		}
	}
	return out
}
