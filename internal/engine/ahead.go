package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A claim is a round trip and a commit, for which slots that came free would stand empty. So while
// there is more to take than slots, a worker claims some runs ahead of them: they are in memory, their
// leases are kept, and the next slots that come free are theirs. It takes no more of them than slots
// came free lately, so that a run which would wait for long is left to other workers; one that waits
// for long all the same is given back.
const (
	lately   = 30 * time.Millisecond  // the time over which slots that come free are counted
	overlong = 500 * time.Millisecond // for a run to wait for its slot
)

// errNoSlot is why a run that was claimed ahead is given back.
var errNoSlot = errors.New("durable: no slot came free for the run")

// turnover counts the slots that runs gave back, over two spells.
type turnover struct {
	since     time.Time // when the spell under way began
	now, last int       // slots given back in it, and in the one before
}

func (t *turnover) add(at time.Time) {
	t.pass(at)
	t.now++
}

// rate is how many slots came free in a spell, lately. One alone tells nothing of when the next will.
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

// vacancies says how many slots are free, and how many runs may be claimed ahead of theirs.
func (w *worker) vacancies() (free, room int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.e.cfg.Concurrency - w.slots, w.room(time.Now())
}

// room is how many runs may be claimed ahead: none, or so many that it is worth a claim. w.mu is
// held.
func (w *worker) room(at time.Time) int {
	most := min(w.e.cfg.ClaimLimit, w.turnover.rate(at))
	if room := most - w.ahead; room > 0 && 2*room >= most {
		return room
	}
	return 0
}

// takePlaces takes places for so many runs to be claimed ahead.
func (w *worker) takePlaces(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.open {
		return 0
	}
	w.ahead += n
	return n
}

// queue puts the run, for which a place was taken, last among those that wait for a slot. w.mu is
// held.
func (w *worker) queue(r *run) {
	r.seat = make(chan struct{})
	w.queued = append(w.queued, r)
	w.fill() // a slot may have come free since the claim began
}

// fill gives free slots to the runs that wait for one. w.mu is held.
func (w *worker) fill() {
	for w.open && len(w.queued) > 0 && w.slots < w.e.cfg.Concurrency {
		r := w.queued[0]
		w.queued = slices.Delete(w.queued, 0, 1)
		w.slots++
		w.ahead--
		close(r.seat)
	}
}

// unqueue takes the run from those that wait for a slot, if it is one of them.
func (w *worker) unqueue(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queued, r); i >= 0 {
		w.queued = slices.Delete(w.queued, i, i+1)
	}
}

// seated reports whether the run has a slot.
func (r *run) seated() bool {
	if r.seat == nil {
		return true // it came with one
	}
	select {
	case <-r.seat:
		return true
	default:
		return false
	}
}

// awaitSeat waits for the slot of a run that was claimed ahead. The run may leave without one.
func (r *run) awaitSeat() {
	t := time.NewTimer(overlong)
	defer t.Stop()
	ended := r.ctx.Done()
	for {
		select {
		case <-r.seat:
			return
		case <-ended:
			if r.leaving() == nil { // it is to be cancelled, for which it is executed
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
