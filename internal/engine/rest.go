package engine

import "time"

// What a probe asks of an engine, to know when nothing can happen before a time comes.

// Rest is what the runs in memory do.
type Rest struct {
	Busy   string        // a run that does not only wait, for a time ahead or for somebody else; empty: none
	Active int           // durable calls that execute or write
	Settle time.Duration // how long it must stay so until it is known that nothing goes on unseen
}

// Rest answers what the runs in memory do.
func (e *Engine) Rest() Rest {
	rest := Rest{Settle: settleAlone}
	w := e.worker()
	if w == nil {
		return rest
	}
	if len(w.news) > 0 {
		rest.Busy = "a run that has news"
	}
	for _, r := range w.snapshot() {
		if !r.resting() {
			rest.Busy = r.row.Address()
		}
		r.idle.mu.Lock()
		rest.Active += r.idle.active
		if r.idle.crowded {
			rest.Settle = settle
		}
		r.idle.mu.Unlock()
	}
	return rest
}

func (r *run) resting() bool {
	r.mu.Lock()
	going := r.suspended != nil || r.returned
	r.mu.Unlock()
	if going {
		return false
	}
	now := r.e.clock.now()
	i := &r.idle
	i.mu.Lock()
	defer i.mu.Unlock()
	for w := range i.waits {
		if !w.due.IsZero() && !w.due.After(now) {
			return false // it is about to go on
		}
	}
	return i.active == 0 && len(i.waits) > 0 && !i.stopped
}

// Park has every run in memory that waits for long leave, as it would after a moment. It
// reports whether one did.
func (e *Engine) Park() (left bool) {
	w := e.worker()
	if w == nil {
		return false
	}
	for _, r := range w.snapshot() {
		r.idle.park()
		left = left || r.gone()
	}
	return left
}

// Stir has the worker look for due runs, and the waiters for results, now.
func (e *Engine) Stir() {
	e.worker().hint()
	e.waiters.fresh.poke()
}

// Looking reports whether the worker takes runs: it is open, and not full.
func (e *Engine) Looking() bool {
	w := e.worker()
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open && len(w.pairs) > 0 && len(w.runs) < e.cfg.Concurrency
}

// Looks is how often the waiters have looked for results; waiting is false if nobody waits
// for any.
func (e *Engine) Looks() (looks uint64, waiting bool) {
	e.waiters.mu.Lock()
	defer e.waiters.mu.Unlock()
	return e.waiters.looks, e.waiters.looking
}

// Awaited is how many callers, runs apart, wait for results.
func (e *Engine) Awaited() int { return int(e.awaited.Load()) }
