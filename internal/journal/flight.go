package journal

import (
	"slices"

	"github.com/google/uuid"
)

// A run leaves its process by a write, and with that write's commit others may claim it and read its
// history. Of two transactions at once the one that began first can commit last: a checkpoint
// beside its run's leave would so be recorded, and missing in the history that the next owner has read
// meanwhile, who would execute its step again. So a run's leave is never under way together with
// another write of the run, unless both are one transaction.

// flight is what one writer has under way, as far as it concerns the other one.
type flight struct {
	taken    bool        // by a writer
	recorded []uuid.UUID // runs whose histories it adds to
	left     []uuid.UUID // runs that leave
}

// load notes the entry as under way.
func (f *flight) load(e *Entry) {
	if run, leaves := e.leaves(); leaves {
		f.left = append(f.left, run)
	} else if run, records := e.records(); records {
		f.recorded = append(f.recorded, run)
	}
}

// land notes that nothing is under way any more.
func (f *flight) land() { f.recorded, f.left = f.recorded[:0], f.left[:0] }

// bars reports whether the entry may not be under way together with the flight.
func (f *flight) bars(e *Entry) bool {
	if run, leaves := e.leaves(); leaves {
		return slices.Contains(f.recorded, run)
	}
	if len(f.left) == 0 {
		return false
	}
	run, records := e.records()
	return records && slices.Contains(f.left, run)
}

// enlist counts one more writer, which there must be room for, and answers its flight. j.mu is held.
func (j *Journal) enlist() *flight {
	j.writers++
	own := &j.flights[0]
	if own.taken {
		own = &j.flights[1]
	}
	own.taken = true
	return own
}

// leave signs a writer off that has nothing under way. j.mu is held.
func (j *Journal) leave(own *flight) {
	own.taken = false
	j.writers--
	if j.closed && j.resting() {
		close(j.idle)
	}
}

// resting reports whether no transaction is under way. j.mu is held.
func (j *Journal) resting() bool { return j.writers == 0 && len(j.loners) == 0 }

// other is the flight of the other writer, if there is one. j.mu is held.
func (j *Journal) other(own *flight) *flight {
	if own == &j.flights[0] {
		return &j.flights[1]
	}
	return &j.flights[0]
}
