package retention

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Policy tells how long a worker keeps ended runs and superseded generations. The zero Policy keeps everything.
type Policy struct {
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
func (p *Policy) isEnabled() bool { return p.shortestPeriod() > 0 }

// shortestPeriod returns the shortest time for which something is kept, or zero if nothing is ever deleted.
func (p *Policy) shortestPeriod() time.Duration {
	shortest := p.shortestRunRetention()
	for _, d := range []time.Duration{p.Generations, p.Events} {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}

// shortestRunRetention is shortestPeriod for runs.
func (p *Policy) shortestRunRetention() (shortest time.Duration) {
	for _, keep := range p.Keep {
		for _, d := range keep {
			if d > 0 && (shortest == 0 || d < shortest) {
				shortest = d
			}
		}
	}
	return shortest
}

// deletionCutoff returns the time before which a root must have ended to be deleted, and false if it is kept for ever.
func (p *Policy) deletionCutoff(root *store.EndedRoot, now time.Time) (time.Time, bool) {
	d := p.Keep[root.Workflow][root.Status]
	return now.Add(-max(d, store.MinRetention)), d > 0
}
