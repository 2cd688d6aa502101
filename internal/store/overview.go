package store

import (
	"context"
	"time"
)

// OverviewStore reads what a person who operates many runs looks at first. Each method reads a bounded number of rows
// through an index, however many runs there are.
type OverviewStore interface {
	// FailureGroups returns up to limit groups of the Failed and Expired runs that match the filter, ordered by key. Of each group it
	// examines the newest runs, up to the given number. Groups without a matching run are left out.
	FailureGroups(ctx context.Context, f Filter, examine, limit int) ([]FailureGroup, error)

	// StatusCounts returns how many runs have each status, except for Completed and Cancelled runs, of which no index exists. It
	// counts in ranges of an index, up to most runs in each; see StatusCount.
	StatusCounts(ctx context.Context, now time.Time, most int) ([]StatusCount, error)

	// SearchRuns examines the newest runs with lower UUIDs than before (zero: the newest of all), and returns the UUIDs of those that match the filter, in
	// descending order. It examines up to the given number of runs of each shard. reached is the UUID below which runs have not been examined, or
	// zero if all have been. It ignores the conditions of a filter that has an index; see Filter.UsesIndex.
	SearchRuns(ctx context.Context, f Filter, before UUID, examine int) (found []UUID, reached UUID, err error)

	// EventsBefore returns up to limit events before the cursor, the newest first, of those that Events can return. An empty cursor
	// starts at the newest one. It returns ErrBadData if the text is no cursor of this store.
	EventsBefore(ctx context.Context, before string, limit int) ([]Event, error)

	// LastEventCursor returns the cursor of the newest event that Events can return; empty if there is none.
	LastEventCursor(ctx context.Context) (string, error)
}

// FailureKey is what the failures of a group of runs have in common.
type FailureKey struct{ Workflow, Step, Type string }

// FailureGroup is a group of Failed and Expired runs with the same key.
type FailureGroup struct {
	Key         FailureKey
	Runs        int
	More        bool // there are older runs with the key, which were not examined
	First, Last time.Time
	// Newest is the run that ended last. UUID, Parent, Name, Workflow, Status and Error are set.
	Newest Run
}

// StatusCount is the number of runs with a status.
type StatusCount struct {
	Status Status
	Runs   int
	More   bool // a range with runs of this status was longer than what was counted of it
}
