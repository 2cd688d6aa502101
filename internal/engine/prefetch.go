package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A claim costs a round trip and a commit. Without prefetching, slots that came free would stay empty for
// that time. So while more runs are due than slots are free, a worker also claims runs without a slot. It
// keeps them in memory, renews their leases, and gives them the next free slots. It prefetches at most as
// many runs as slots came free recently, so that other workers take the runs that would wait long here. A
// prefetched run that waits longer than 500 ms is released.
const (
	lately   = 30 * time.Millisecond  // the period over which free slots are counted
	overlong = 500 * time.Millisecond // how long a prefetched run waits for a slot before it is released
)

// errNoSlot is the cause with which a prefetched run is released.
var errNoSlot = errors.New("durable: no slot came free for the run")

// turnover counts the slots that ended runs gave back, over two periods.
type turnover struct {
	since     time.Time // when the current period began
	now, last int       // slots given back in the current period and in the period before
}

func (t *turnover) add(at time.Time) {
	t.pass(at)
	t.now++
}

// rate returns how many slots came free in a recent period. It returns zero for a single slot, which does
// not predict when the next slot comes free.
func (t *turnover) rate(at time.Time) int {
	t.pass(at)
	if n := max(t.now, t.last); n > 1 {
		return n
	}
	return 0
}

func (t *turnover) pass(at time.Time) {
	switch passed := at.Sub(t.since); {
	case passed >= 2*lately:
		t.since, t.now, t.last = at, 0, 0
	case passed >= lately:
		t.since, t.now, t.last = t.since.Add(lately), 0, t.now
	}
}

// freeSlotsAndPrefetch returns how many slots are free, and how many further runs may be prefetched.
func (w *worker) freeSlotsAndPrefetch() (free, room int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.e.cfg.Concurrency - w.slots, w.prefetchRoom(time.Now())
}

// prefetchRoom returns how many further runs may be prefetched. It returns zero if the number is too small to be
// worth a claim. The caller holds w.mu.
func (w *worker) prefetchRoom(at time.Time) int {
	most := min(w.e.cfg.ClaimLimit, w.turnover.rate(at))
	if room := most - w.prefetchReserved; room > 0 && 2*room >= most {
		return room
	}
	return 0
}

// reservePrefetch reserves places for n runs to be prefetched. It returns n, or zero if the worker is closed.
func (w *worker) reservePrefetch(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return 0
	}
	w.prefetchReserved += n
	return n
}

// queue puts a prefetched run, for which a place was reserved, last among the runs that wait for a slot.
// The caller holds w.mu.
func (w *worker) queue(r *run) {
	r.seat = make(chan struct{})
	w.prefetched = append(w.prefetched, r)
	w.fill() // a slot may have come free since the claim began
}

// fill gives free slots to the runs that wait for a slot. The caller holds w.mu.
func (w *worker) fill() {
	for w.open && len(w.prefetched) > 0 && w.slots < w.e.cfg.Concurrency {
		r := w.prefetched[0]
		w.prefetched = slices.Delete(w.prefetched, 0, 1)
		w.slots++
		w.prefetchReserved--
		close(r.seat)
	}
}

// unqueue removes the run from the runs that wait for a slot, if it is among them.
func (w *worker) unqueue(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.prefetched, r); i >= 0 {
		w.prefetched = slices.Delete(w.prefetched, i, i+1)
	}
}

// hasSlot reports whether the run has a slot.
func (r *run) hasSlot() bool {
	if r.seat == nil {
		return true // it was claimed with a slot
	}
	select {
	case <-r.seat:
		return true
	default:
		return false
	}
}

// awaitSlot waits until the prefetched run has a slot. It returns without a slot if the run is suspended
// first, or if the wait lasts longer than 500 ms.
func (r *run) awaitSlot() {
	t := time.NewTimer(overlong)
	defer t.Stop()
	ended := r.ctx.Done()
	for {
		select {
		case <-r.seat:
			return
		case <-ended:
			if r.leaving() == nil { // the run is to be cancelled, and is executed so that its compensations run
				ended = nil
				continue
			}
		case <-t.C:
			r.suspend(suspension{cause: errNoSlot, status: store.Pending})
		}
		r.w.unqueue(r)
		return
	}
}
