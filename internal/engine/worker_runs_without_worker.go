package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A run whose workflow no worker executes waits forever without an error. So each worker records its workflows and queues, and checks
// from time to time whether runs are due that no live worker executes. It logs each such workflow and queue once, until a worker
// executes it. Engine.Get reports the same for one run at once.

const (
	maxNamesRecordedPerWorker         = 500              // workflows or queues that a worker lists; if it has more, it counts as serving any
	overdueLanePageSize               = 1000             // lanes in the result of one statement
	maxOverdueLanePages               = 10               // results of that statement in one check
	maxRunsWithoutWorkerCheckInterval = 10 * time.Second // the time between two checks, unless leases are shorter
)

// namesUnlessTooMany returns the workflows or queues that a worker records, or nil if there are none, or too many.
func namesUnlessTooMany(names []string) []string {
	if len(names) == 0 || len(names) > maxNamesRecordedPerWorker {
		return nil
	}
	return names
}

// queueWorkflowWithoutWorker describes a pair of queue and workflow with due runs that no live worker executes.
type queueWorkflowWithoutWorker struct {
	firstSeen time.Time // when the pair was first seen, on this process's clock
	logged    bool
}

// runsWithoutWorkerLoop checks from time to time for due runs that no live worker executes.
func (w *worker) runsWithoutWorkerLoop(ctx context.Context) {
	every := min(w.e.cfg.Lease, maxRunsWithoutWorkerCheckInterval)
	seen := make(map[store.QueueWorkflow]*queueWorkflowWithoutWorker)
	for wakeup.SleepCtx(ctx, w.otherWorkers.PollInterval(every)) {
		places, err := w.findDueRunsWithoutWorker(ctx)
		if err != nil {
			w.log.Debug("could not look for runs that no worker executes", telemetry.KeyError, err)
			continue
		}
		w.logDueRunsWithoutWorker(seen, places, 3*every)
	}
}

// findDueRunsWithoutWorker returns the pairs with due runs from which no live worker takes runs.
func (w *worker) findDueRunsWithoutWorker(ctx context.Context) ([]store.OverdueLane, error) {
	now := w.e.clock.Now()
	after := store.FirstLane
	var others []store.OverdueLane
	index := make(map[store.QueueWorkflow]int) // the index of a pair in others, because a pair has a lane for each priority
	for range maxOverdueLanePages {
		page, err := w.e.store.OverdueClaimLanes(ctx, now, after, overdueLanePageSize)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			after = o.Lane
			if w.e.claimFilter.Includes(o.Queue, o.Workflow) {
				continue
			}
			i, seen := index[o.QueueWorkflow]
			switch {
			case !seen:
				index[o.QueueWorkflow] = len(others)
				others = append(others, o)
			case o.Since.Before(others[i].Since):
				others[i] = o
			}
		}
		if len(page) < overdueLanePageSize {
			break
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	pairs := make([]store.QueueWorkflow, len(others))
	for i, o := range others {
		pairs[i] = o.QueueWorkflow
	}
	executed, err := w.e.store.HaveLiveWorkers(ctx, pairs)
	if err != nil {
		return nil, err
	}
	left := others[:0]
	for i, o := range others {
		if !executed[i] {
			left = append(left, o)
		}
	}
	return left, nil
}

// logDueRunsWithoutWorker logs each pair that has been in places for at least the time after, and removes from
// seen the pairs that a worker executes now.
func (w *worker) logDueRunsWithoutWorker(seen map[store.QueueWorkflow]*queueWorkflowWithoutWorker, places []store.OverdueLane, after time.Duration) {
	still := make(map[store.QueueWorkflow]bool, len(places))
	for _, o := range places {
		still[o.QueueWorkflow] = true
		u := seen[o.QueueWorkflow]
		if u == nil {
			u = &queueWorkflowWithoutWorker{firstSeen: time.Now()}
			seen[o.QueueWorkflow] = u
		}
		if u.logged || time.Since(u.firstSeen) < after {
			continue
		}
		u.logged = true
		w.log.Warn("runs of a workflow are due, and no live worker executes it in their queue: start one that lists it in Config.Workflows, and whose Config.Queues is empty or names the queue",
			telemetry.KeyWorkflow, o.Workflow, telemetry.KeyQueue, o.Queue, telemetry.KeyRun, o.Run, telemetry.KeySince, o.Since)
	}
	for p := range seen {
		if !still[p] {
			delete(seen, p)
		}
	}
}

// IsRunWithoutWorker reports whether the run is due at the time now, but no live worker that claims runs executes the run's
// workflow in the run's queue.
func (e *Engine) IsRunWithoutWorker(ctx context.Context, r *store.Run, now time.Time) (bool, error) {
	if r.Status.IsTerminal() || r.WakeAt.IsZero() || r.WakeAt.After(now) {
		return false, nil
	}
	executed, err := e.store.HaveLiveWorkers(ctx, []store.QueueWorkflow{{Queue: r.Queue, Workflow: r.Workflow}})
	return err == nil && !executed[0], err
}

// DescribeRunState describes the run's state in words, for the error that a caller gets when its context has ended. DescribeRunState
// returns an empty string if the database does not return the state within finalRunReadTimeout.
func (e *Engine) DescribeRunState(ctx context.Context, id uuid.UUID) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalRunReadTimeout)
	defer cancel()
	found, err := e.store.GetRunsSelectingPayloads(ctx, []store.RunRef{{UUIDOrName: id.String()}}, store.NoPayloads)
	if err != nil || len(found) != 1 || found[0] == nil {
		return ""
	}
	state := ", which is " + DescribeStatus(found[0])
	if e.clock.EnsureReading(ctx, e.store) == nil {
		if nobody, err := e.IsRunWithoutWorker(ctx, found[0], e.clock.Now()); err == nil && nobody {
			return state + ", and which no live worker executes"
		}
	}
	return state + describeHowToContinue(found[0])
}
