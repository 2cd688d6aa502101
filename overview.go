package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// maxCounted is how many runs Failures examines of each group, and StatusCounts counts in each range of an index.
	maxCounted = 10_000
	// maxFailureGroups is how many groups Failures returns.
	maxFailureGroups = 1000
)

// FailureKey is what the failures of a group of runs have in common: workflow, step and type of error. Set Filter.Failure to
// select the runs of a group.
type FailureKey struct {
	Workflow string
	// Step is the step whose error failed the run, with its scope, and with a star in place of the key of an item of a Map, as
	// in "resize/*". Step is empty if the workflow function failed by itself.
	Step string
	// Type is the Go type of the error that the step or the function returned, or the code of the error if no type is recorded.
	Type string
}

// FailureGroup describes the failed and expired runs that share one key.
type FailureGroup struct {
	FailureKey
	Runs        int       // the number of runs
	More        bool      // the database holds older runs with this key, which Failures has not examined
	First, Last time.Time // when the first and the last run of the group ended
	ID          string    // the ID that addresses the run of the group that ended last
	RunID       string    // the UUID of the run that ended last
	Err         *RunError // the error of the run that ended last
}

// Failures groups the failed and expired runs that match the filter by workflow, step and type of error, the largest group
// first. The step and the type of an error are stored in clear, even if a codec encrypts the error itself. The newest 10,000
// runs of each group are examined; see [FailureGroup.More]. Failures returns at most 1000 groups. To select the runs of one
// [FailureGroup], for example for [Engine.RetryAll], set [Filter.Failure].
//
// Failures returns [ErrInvalidConfig] for an invalid filter.
func (e *Engine) Failures(ctx context.Context, f Filter) ([]FailureGroup, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("group failures: %w", err)
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(f.RunID)+len(f.Parent) > 0 {
		return nil, fmt.Errorf("%w: the filter of Failures has RunID or Parent: leave them out", ErrInvalidConfig)
	}
	if f.GroupKey != "" || f.Held { // no run that has ended matches such a filter
		return nil, nil
	}
	rows, err := e.inner.Store().FailureGroups(ctx, filter, maxCounted, maxFailureGroups)
	if err != nil {
		return nil, fmt.Errorf("group failures: %w", err)
	}
	groups := make([]FailureGroup, len(rows))
	for i := range rows {
		r := &rows[i]
		groups[i] = FailureGroup{
			FailureKey: FailureKey(r.Key), Runs: r.RunCount, More: r.HasMoreRuns, First: r.First, Last: r.Last,
			ID: r.Newest.NameOrUUID(), RunID: r.Newest.UUID.String(), Err: newRunError(&r.Newest),
		}
	}
	slices.SortStableFunc(groups, func(l, r FailureGroup) int {
		return cmp.Or(cmp.Compare(r.Runs, l.Runs), r.Last.Compare(l.Last))
	})
	return groups, nil
}

// StatusCount is the number of runs that have one status.
type StatusCount struct {
	Status Status
	Runs   int
	More   bool // Runs is a lower bound, because not all runs were counted
}

// StatusCounts counts the runs that are pending, running, waiting, paused, failed or expired, and leaves out statuses that no
// run has. For each workflow and queue, StatusCounts counts at most 10,000 due runs, at most 10,000 runs that are due later,
// and at most 10,000 runs that wait without a time, are paused or have failed. StatusCounts therefore takes only milliseconds,
// even for millions of runs. StatusCounts does not count completed and cancelled runs.
func (e *Engine) StatusCounts(ctx context.Context) ([]StatusCount, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := e.inner.Store().StatusCounts(ctx, now, maxCounted)
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	counts := make([]StatusCount, len(rows))
	for i, r := range rows {
		counts[i] = StatusCount{Status: Status(r.Status.String()), Runs: r.RunCount, More: r.HasMoreRuns}
	}
	return counts, nil
}

// EventCursor returns the cursor of the newest event. With the cursor of EventCursor, [Engine.Events] and [Engine.WatchEvents]
// begin with the first event after the call of EventCursor. EventCursor returns an empty cursor if there is no event.
func (e *Engine) EventCursor(ctx context.Context) (string, error) {
	if err := e.checkUsable(ctx); err != nil {
		return "", fmt.Errorf("find the newest event: %w", err)
	}
	cursor, err := e.inner.Store().LastEventCursor(ctx)
	if err != nil {
		return "", fmt.Errorf("find the newest event: %w", err)
	}
	return cursor, nil
}

// maxMarkedCalls is how many calls of each run RunFingerprints considers.
const maxMarkedCalls = 10_000

// RunFingerprints returns a fingerprint of each of the runs with the given UUIDs. A fingerprint is a string that changes
// whenever the run, or one of its calls, changes. A program that shows runs compares fingerprints to learn which runs to
// read again. One query returns all fingerprints. The fingerprint of a run that does not exist is empty. RunFingerprints
// considers at most 10,000 calls of a run, so changes of calls beyond these may go unnoticed. RunFingerprints returns
// [ErrInvalidConfig] for a text that is no UUID.
func (e *Engine) RunFingerprints(ctx context.Context, runIDs ...string) ([]string, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read marks of changes: %w", err)
	}
	ids := make([]store.UUID, len(runIDs))
	for i, text := range runIDs {
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%w: RunFingerprints was called with %.40q: give UUIDs, as RunInfo.RunID is", ErrInvalidConfig, text)
		}
		ids[i] = id
	}
	if len(ids) == 0 {
		return nil, nil
	}
	marks, err := e.inner.Store().RunFingerprints(ctx, ids, maxMarkedCalls)
	if err != nil {
		return nil, fmt.Errorf("read marks of changes: %w", err)
	}
	return marks, nil
}

// DueRun is the run that has been due for the longest time among the runs of one workflow in one queue.
type DueRun struct {
	Queue    string
	Workflow string
	RunID    string    // the UUID of the run
	Since    time.Time // the time since which the run has been due
}

// OldestDue returns, for each queue and workflow, the run that has been due for the longest time among the runs that a worker
// may claim. The runs are returned in the order of their due times, the oldest first. OldestDue does not consider runs that
// wait for their turn in a queue with settings; see [QueueInfo.OldestDue].
func (e *Engine) OldestDue(ctx context.Context) ([]DueRun, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("find due runs: %w", err)
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, err
	}
	lanes, err := e.inner.Store().OverdueClaimLanes(ctx, now, store.FirstLane, maxCounted)
	if err != nil {
		return nil, fmt.Errorf("find due runs: %w", err)
	}
	slices.SortStableFunc(lanes, func(l, r store.OverdueLane) int { return l.Since.Compare(r.Since) })
	var oldest []DueRun
	seen := make(map[store.QueueWorkflow]bool, len(lanes)) // a pair has a lane for each priority
	for _, l := range lanes {
		if !seen[l.QueueWorkflow] {
			seen[l.QueueWorkflow] = true
			oldest = append(oldest, DueRun{Queue: l.Queue, Workflow: l.Workflow, RunID: l.Run.String(), Since: l.Since})
		}
	}
	return oldest, nil
}
