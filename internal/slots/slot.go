package slots

import (
	"slices"
	"time"
)

// maxLoansPerSlot is the maximum number of lent slots, as a multiple of the size of the pool. A run that lends
// its slot stays in memory, so the number of lent slots is limited.
const maxLoansPerSlot = 16

// Slot is the slot of one run, or the run's place in the queue for a slot. Reservation.Assign initializes
// it. A Slot must not be copied.
//
// A run whose step waits for the result of another run lends its slot. Otherwise the other run might never
// get a slot. When the wait ends, the run continues at once, also if all slots are taken again. The pool
// then gives no slot until fewer runs are executed than it has slots.
type Slot struct {
	pool      *Pool
	givenChan chan struct{} // closed when the slot is given; nil: the slot was assigned from a reservation
	beyond    bool          // see IsBeyond

	// The fields below are guarded by pool.mu.
	activeWaits int // how many waits of the run are in progress
	loan        loanState
	isReleased  bool // Release was called
}

// loanState says what happened to the slot of a run that waits.
type loanState int

const (
	noLoan      loanState = iota
	loanGranted           // the slot is lent
	loanRefused           // too many slots were lent
)

// WhenGiven returns a channel that is closed when the pool gives the slot. It returns nil if the run did not
// have to wait for the slot.
func (s *Slot) WhenGiven() <-chan struct{} { return s.givenChan }

// IsBeyond reports whether the slot is one beyond the size of the pool, so that the run is to leave at once.
func (s *Slot) IsBeyond() bool { return s.beyond }

// IsGiven reports whether the run has got the slot.
func (s *Slot) IsGiven() bool {
	if s.givenChan == nil {
		return true
	}
	select {
	case <-s.givenChan:
		return true
	default:
		return false
	}
}

// LeaveQueue removes the slot from the queue. If the pool has given the slot before, LeaveQueue does nothing.
// The prefetch place stays taken until Release.
func (s *Slot) LeaveQueue() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.removeFromQueue(s)
}

// removeFromQueue removes s from the queue if it is there. p.mu is held.
func (p *Pool) removeFromQueue(s *Slot) {
	if i := slices.Index(p.queue, s); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

// Lend lends the slot while the run waits. The caller calls regain when the wait ends. Waits of one run
// may overlap; the slot is lent until the last of them ends. If too many slots are lent already, or after
// Leave, the run keeps what it has.
func (s *Slot) Lend() (regain func()) {
	p := s.pool
	p.mu.Lock()
	if s.isReleased || !s.IsGiven() {
		p.mu.Unlock()
		return func() {}
	}
	freed, waiting := false, 0
	if s.activeWaits++; s.activeWaits == 1 {
		freed, waiting = p.lend(s)
	}
	p.mu.Unlock()
	if freed {
		p.notifyFreed()
	}
	if waiting > 0 {
		p.onAllWaiting(waiting)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.activeWaits--; s.activeWaits == 0 {
			p.regain(s)
		}
	}
}

// lend lends the slot of a run, and reports whether it did so. If the run is the last of size runs that
// cannot lend their slots, lend returns how many runs wait. p.mu is held.
func (p *Pool) lend(s *Slot) (freed bool, waiting int) {
	if p.lentSlots >= maxLoansPerSlot*p.size {
		s.loan = loanRefused
		if p.refusedLoans++; p.refusedLoans == p.size {
			waiting = p.lentSlots + p.refusedLoans
		}
		return false, waiting
	}
	s.loan = loanGranted
	p.takenSlots--
	p.lentSlots++
	p.giveFreeSlots()
	return true, 0
}

// regain takes back the slot that lend lent. p.mu is held.
func (p *Pool) regain(s *Slot) {
	switch s.loan {
	case loanGranted:
		p.takenSlots++
		p.lentSlots--
	case loanRefused:
		p.refusedLoans--
	}
	s.loan = noLoan
}

// MoveTo gives the slot, which the run has got, to another run. to must be a zero Slot. If the slot was lent, to has it back. A
// later Release of s does nothing. If s was released, to takes a slot although none may be free.
func (s *Slot) MoveTo(to *Slot) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	to.pool = p
	if s.isReleased {
		p.takenSlots++
		return
	}
	p.regain(s)
	s.isReleased = true
}

// Release returns the slot to the pool, also if it is lent, or leaves the queue. Calls after the first do
// nothing.
func (s *Slot) Release() {
	p := s.pool
	p.mu.Lock()
	if s.isReleased {
		p.mu.Unlock()
		return
	}
	s.isReleased = true
	p.regain(s)
	if s.IsGiven() {
		if !s.beyond {
			p.turnover.countReturn(time.Now())
		}
		p.takenSlots--
	} else {
		p.removeFromQueue(s)
		p.prefetchPlaces--
	}
	p.giveFreeSlots()
	p.notifyIfEmpty()
	p.mu.Unlock()
	p.notifyFreed()
}
