package engine

import "github.com/seed8ec063be/durable/internal/telemetry"

// A run whose step waits for the result of another run lends its slot. Otherwise the other run might never
// get a slot. The waiting run stays in memory, so the number of lent slots is limited too. When the wait
// ends, the run continues at once. No other run begins until fewer than Concurrency runs are being
// executed again.

// lentAtOnce is the maximum number of lent slots, as a multiple of Concurrency.
const lentAtOnce = 16

// slotLoan is the loan of one run's slot. It is guarded by w.mu.
type slotLoan struct {
	waits   int  // how many functions of the run's steps wait
	lent    bool // the slot is lent
	refused bool // the slot could not be lent, because too many slots were lent
	over    bool // the run is ending, and lends no more
}

// lend lends the run's slot while a function of one of its steps waits. The returned function ends that
// wait.
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

// lend lends a slot, unless too many slots are lent already. The caller holds w.mu.
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
	w.freed.notify()
}

// regain takes back the slot that lend lent. The caller holds w.mu.
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

// endLoan takes the run's slot back for good, when the run ends or leaves.
func (w *worker) endLoan(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.loan.over = true
	w.regain(&r.loan)
}
