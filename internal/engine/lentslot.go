package engine

import "github.com/seed8ec063be/durable/internal/telemetry"

// A run whose step waits for another run's result lends its slot: else the run that it waits for might never get one.
// It stays in memory, so the number of slots that are lent is bounded, too. When the wait ends, the run goes on at once, and
// nothing new begins until fewer than Concurrency runs are executed again.

// lentAtOnce bounds the slots that are lent at once, in multiples of Concurrency.
const lentAtOnce = 16

// slotLoan is what one run has lent. w.mu guards it.
type slotLoan struct {
	waits   int  // of functions of its steps
	lent    bool // its slot is lent
	refused bool // its slot could not be lent
	over    bool // the run has left
}

// lend lends the run's slot while a function of one of its steps waits. The function returned ends that wait.
func (r *run) lend() (regain func()) {
	w, l := r.w, &r.loan
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.over {
		return nothing
	}
	if l.waits++; l.waits == 1 {
		w.lend(l)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if l.waits--; l.waits == 0 {
			w.regain(l)
		}
	}
}

// lend lends a slot, unless too many are lent. w.mu is held.
func (w *worker) lend(l *slotLoan) {
	if w.lent >= lentAtOnce*w.e.cfg.Concurrency {
		l.refused = true
		if w.unlent++; w.unlent == w.e.cfg.Concurrency {
			w.log.Warn("all runs in memory wait in steps for results of other runs, and no slot is free for those: raise Config.Concurrency, or wait outside of steps (Ctx.Child)",
				telemetry.KeyCount, w.lent+w.unlent)
		}
		return
	}
	l.lent = true
	w.slots--
	w.lent++
	w.fill()
	w.freed.poke()
}

// regain ends what lend began. w.mu is held.
func (w *worker) regain(l *slotLoan) {
	switch {
	case l.lent:
		w.slots++
		w.lent--
	case l.refused:
		w.unlent--
	}
	l.lent, l.refused = false, false
}

// endLoan has the run's slot be its own again, for its end.
func (w *worker) endLoan(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.loan.over = true
	w.regain(&r.loan)
}
