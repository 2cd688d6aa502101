package store

import (
	"context"
	"time"
)

// OverviewStore reads what an operator of many runs wants to see first. Each method of OverviewStore reads a bounded number of rows
// through an index, however many runs there are.
type OverviewStore interface {
	// FailureGroups returns up to limit groups of Failed and Expired runs that match the filter, ordered by failure key. FailureGroups
	// examines only the newest runs of each group, up to the given number. FailureGroups omits groups without a matching run.
	FailureGroups(ctx context.Context, f Filter, examine, limit int) ([]FailureGroup, error)

	// StatusCounts returns how many runs have each status, except for Completed and Cancelled runs, for which there is no index.
	// StatusCounts counts the runs in ranges of an index, and at most the given number of runs in each range; see StatusCount.
	StatusCounts(ctx context.Context, now time.Time, most int) ([]StatusCount, error)

	// SearchRuns examines the newest runs whose UUIDs are lower than before (zero: the newest of all), and returns the UUIDs of the runs
	// that match the filter, in descending order. SearchRuns examines up to the given number of runs of each shard, or ShardCount times as
	// many runs if the store keeps the runs of all shards together. The result reached is the UUID below which SearchRuns has not examined
	// runs, or zero if it has examined all. SearchRuns ignores the fields UUIDs, Parents, GroupKey and OnlyHeld of the filter.
	SearchRuns(ctx context.Context, f Filter, before UUID, examine int) (found []UUID, reached UUID, err error)

	// EventsBefore returns up to limit events before the cursor, newest first, among the events that Events can return. For an empty
	// cursor, EventsBefore begins with the newest event. EventsBefore returns ErrBadData if the text is not a cursor of this store.
	EventsBefore(ctx context.Context, before string, limit int) ([]Event, error)

	// LastEventCursor returns the cursor of the newest event that Events can return, or an empty text if there is no event.
	LastEventCursor(ctx context.Context) (string, error)
}

// FailureKey is what the failures of the runs in a FailureGroup have in common.
type FailureKey struct{ Workflow, Step, Type string }

// FailureGroup is a group of Failed and Expired runs whose failures have the same key.
type FailureGroup struct {
	Key         FailureKey
	RunCount    int
	HasMoreRuns bool // there are older runs with the key, which were not examined
	First, Last time.Time
	// Newest is the run that ended last. UUID, Parent, Name, Workflow, Status and Error are set.
	Newest Run
}

// StatusCount tells how many runs have one status.
type StatusCount struct {
	Status      Status
	RunCount    int
	HasMoreRuns bool // a range of the index has more runs of this status than were counted
}
