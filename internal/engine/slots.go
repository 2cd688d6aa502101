package engine

// acquire takes up to want slots, and returns how many it took. It leaves the given number of slots free,
// but takes one slot if any is free.
func (w *worker) acquire(want, leave int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return 0
	}
	free := max(0, w.e.cfg.Concurrency-w.slots)
	n := min(want, max(free-leave, min(free, 1)))
	w.slots += n
	return n
}

// release returns slots, and places for prefetched runs (ahead), that no run uses. It does nothing for a
// nil worker.
func (w *worker) release(slots, ahead int) {
	if w == nil || slots+ahead == 0 {
		return
	}
	w.mu.Lock()
	w.slots -= slots
	w.prefetchReserved -= ahead
	w.fill()
	w.vacated()
	w.mu.Unlock()
	w.freed.notify()
}

// vacated ends the drain's wait when no slot and no place for a prefetched run is taken. w.mu is held.
func (w *worker) vacated() {
	if !w.open && w.slots+w.lent == 0 && w.prefetchReserved == 0 {
		close(w.empty)
	}
}
