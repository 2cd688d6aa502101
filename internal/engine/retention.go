package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Retention tells how long a worker keeps ended runs and superseded generations. The zero value of Retention keeps everything.
type Retention struct {
	// Keep has, for each workflow whose runs are deleted and each final status, how long root runs that ended with that status are
	// kept. Runs with a status that the map lacks are kept forever.
	Keep map[string]map[store.Status]time.Duration
	// Generations is how long the superseded generations of these workflows' runs are kept. Zero means that generations are kept as
	// long as their runs.
	Generations time.Duration
	Events      time.Duration // zero: for ever
	// Archive is called before the worker deletes a run: once for the run, with generation zero, and once for each superseded generation,
	// with the number of the generation. If Archive returns an error, the worker keeps the tree of the run, and calls Archive again later.
	// If Archive is nil, the worker deletes runs without a call of Archive.
	Archive func(ctx context.Context, run uuid.UUID, generation int32) error
}

// isEnabled reports whether anything is ever deleted.
func (r *Retention) isEnabled() bool { return r.shortestPeriod() > 0 }

// shortestPeriod returns the shortest time for which something is kept, or zero if nothing is ever deleted.
func (r *Retention) shortestPeriod() time.Duration {
	shortest := r.shortestRunRetention()
	for _, d := range []time.Duration{r.Generations, r.Events} {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// shortestRunRetention is shortest for runs.
func (r *Retention) shortestRunRetention() (shortest time.Duration) {
	for _, keep := range r.Keep {
		for _, d := range keep {
			if d > 0 && (shortest == 0 || d < shortest) {
				shortest = d
			}
		}
	}
	return shortest
}

// deletionCutoff returns the time before which a root must have ended to be deleted, and false if it is kept for ever.
func (r *Retention) deletionCutoff(root *store.EndedRoot, now time.Time) (time.Time, bool) {
	d := r.Keep[root.Workflow][root.Status]
	return now.Add(-max(d, store.MinRetention)), d > 0
}
