package engine

import (
	"sync"

	"github.com/google/uuid"
)

// loadedRuns are the runs in a worker's memory, by their UUIDs.
type loadedRuns struct {
	mu   sync.Mutex
	byID map[uuid.UUID]*run
}

// add adds the run. It returns the run with the same UUID that it replaces, or nil. It replaces a run if this process has lost a run
// and has claimed it again.
func (l *loadedRuns) add(r *run) (before *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = make(map[uuid.UUID]*run)
	}
	before = l.byID[r.row.UUID]
	l.byID[r.row.UUID] = r
	return before
}

// remove removes the run, unless another run has replaced it.
func (l *loadedRuns) remove(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[r.row.UUID] == r {
		delete(l.byID, r.row.UUID)
	}
}

// get returns the run with the UUID, or nil.
func (l *loadedRuns) get(id uuid.UUID) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

// all returns all runs.
func (l *loadedRuns) all() []*run {
	l.mu.Lock()
	defer l.mu.Unlock()
	runs := make([]*run, 0, len(l.byID))
	for _, r := range l.byID {
		runs = append(runs, r)
	}
	return runs
}

// count returns how many runs there are.
func (l *loadedRuns) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}
