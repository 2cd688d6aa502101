package engine

import "github.com/seed8ec063be/durable/internal/store"

// A run that was in memory when its process died, store.SuspectAfter times in a row and
// without a new checkpoint since, is a suspect: it, or one beside it, kills processes. A
// worker executes one suspect at a time, so that the next death counts against the one
// that was there, and the innocent get on. A suspect is cleared by its next checkpoint,
// or by leaving.

// suspects is how many suspects may be claimed now: none or one.
func (w *worker) suspects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.suspect != nil {
		return 0
	}
	return 1
}

// suspectIf notes a run that is a suspect. w.mu is held.
func (w *worker) suspectIf(r *run) {
	if r.row.Crashes >= store.SuspectAfter {
		w.suspect = r
		r.suspected.Store(true)
	}
}

// proven clears a suspect, and lets the next one come.
func (r *run) proven() {
	if !r.suspected.CompareAndSwap(true, false) {
		return
	}
	r.w.mu.Lock()
	if r.w.suspect == r {
		r.w.suspect = nil
	}
	r.w.mu.Unlock()
	r.w.hint()
}
