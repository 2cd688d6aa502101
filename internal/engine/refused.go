package engine

import (
	"bytes"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run parks when nothing that the engine can see goes on in it. Code of the function's own between
// two durable calls is not seen, nor can a machine that stands still be told from it: so a run may be
// parked too early. That shows when a goroutine that was not told of it makes its next call, which is refused,
// or when the function does not return at all. Nothing else would bring that run back before what its
// other goroutines wait for, which may never come. So it comes back by itself, and is given longer to
// settle from time to time.

const (
	mostHasty = 10_000 // runs that a worker remembers as parked too early
	mostStuck = 1      // times that one whose function does not return, and keeps its slot, comes back for that
	mostDelay = 10     // doublings of the time until such a run comes back
)

// refusals say who knows that the run is suspended.
type refusals struct {
	told  map[string]bool // goroutines
	early bool            // another made a call
}

// tell notes that this goroutine is told of the suspension. r.mu is held.
func (r *run) tell() {
	if r.refusals.told == nil {
		r.refusals.told = make(map[string]bool)
	}
	r.refusals.told[goroutine()] = true
}

// refused notes a call that is refused. r.mu is held.
func (r *run) refused() {
	if r.suspended != nil && r.suspended.cause == ErrParked && !r.refusals.told[goroutine()] {
		r.refusals.early = true
	}
	r.tell()
}

// hasty reports whether the run was parked too early, and how long it stays away then. A function
// that goes on although it was told, and calls again from another goroutine, looks the same: so each
// time it is twice as long.
func (r *run) hasty(s *suspension) (away time.Duration, early bool) {
	if s.cause != ErrParked || s.status != store.Waiting {
		return 0, false
	}
	r.mu.Lock()
	stuck := !r.joined
	early = r.refusals.early || stuck
	r.mu.Unlock()
	times := r.w.parkedEarly(r.row.ID, early)
	if stuck && times >= mostStuck {
		return 0, false
	}
	return max(settle, min(r.e.cfg.ParkAfter, time.Hour)) << min(times, mostDelay), early
}

// parkedEarly remembers that the run was parked too early, or was not, and answers how often that
// was so before.
func (w *worker) parkedEarly(id uuid.UUID, early bool) (times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	times = w.early[id]
	if !early {
		delete(w.early, id)
		return times
	}
	if len(w.early) >= mostHasty { // some of them have ended elsewhere
		clear(w.early)
	}
	w.early[id] = times + 1
	return times
}

// patience is how long a run that was so often parked too early has to settle, at least. w.mu is held.
func (w *worker) patience(id uuid.UUID) time.Duration {
	if times := w.early[id]; times > 0 {
		return 2 * settle << min(times, mostDelay)
	}
	return 0
}

// goroutine is the number of the calling one, which the runtime tells nobody but in stacks.
func goroutine() string {
	var b [32]byte
	_, rest, _ := bytes.Cut(b[:runtime.Stack(b[:], false)], []byte(" "))
	id, _, _ := bytes.Cut(rest, []byte(" "))
	return string(id)
}
