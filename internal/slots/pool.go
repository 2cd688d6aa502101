package slots

import (
	"slices"
	"sync"
	"time"
)

// Pool holds the slots in which a worker executes runs.
//
// A caller reserves slots with Acquire before it knows which runs will use them, and assigns them to runs
// later. It can also reserve prefetch places: runs that are assigned a place wait in the queue of the pool,
// and get the next free slots in the order of their assignments.
//
// A pool is opened once and closed once. Before it is opened and after it is closed, it gives no slots.
type Pool struct {
	size         int
	onAllWaiting func(waiting int)
	freedChan    chan struct{} // holds an element if a slot came free since the last receive
	emptyChan    chan struct{}

	mu             sync.Mutex
	open           bool
	closed         bool
	quiet          bool    // no reservations, see SetQuiet
	takenSlots     int     // slots of reservations and of runs that are executed
	lentSlots      int     // slots lent by runs that wait
	refusedLoans   int     // runs that wait and could not lend their slots
	prefetchPlaces int     // prefetch places of reservations and of runs that have not got a slot
	queue          []*Slot // assigned slots that are not given yet, in the order of their assignments
	turnover       turnover
}

// NewPool returns a pool of size slots, which is not open yet. The pool calls allWait, without a lock, when
// size runs wait and cannot lend their slots because too many slots are lent already. waiting is the number
// of runs that wait.
func NewPool(size int, allWait func(waiting int)) *Pool {
	return &Pool{size: size, onAllWaiting: allWait, freedChan: make(chan struct{}, 1), emptyChan: make(chan struct{})}
}

// Open makes the pool give slots.
func (p *Pool) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = !p.closed
}

// Close makes the pool give no more slots, neither to new reservations nor to the queue.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.open, p.closed = false, true
	p.notifyIfEmpty()
}

// IsOpen reports whether the pool gives slots.
func (p *Pool) IsOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// SetQuiet makes a pool give no slots to reservations, or lets it give them again. Assigned slots are given as ever.
func (p *Pool) SetQuiet(quiet bool) {
	p.mu.Lock()
	p.quiet = quiet
	p.mu.Unlock()
	p.notifyFreed()
}

// IsQuiet reports whether SetQuiet has made the pool quiet.
func (p *Pool) IsQuiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.quiet
}

// IsClosed reports whether Close was called.
func (p *Pool) IsClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// WhenEmpty returns a channel that is closed when the pool is closed and none of its slots and places is taken
// or lent.
func (p *Pool) WhenEmpty() <-chan struct{} { return p.emptyChan }

// UseFreed makes the pool notify the given channel, of capacity one, instead of its own. Several pools may share a channel. Call
// UseFreed before Open.
func (p *Pool) UseFreed(c chan struct{}) { p.freedChan = c }

// Counts are the numbers of slots and places of a pool that are in use.
type Counts struct {
	Taken          int // slots of reservations and of runs that are executed
	Lent           int // slots lent by runs that wait
	PrefetchPlaces int // prefetch places of reservations and of runs that have not got a slot
	Queued         int // runs that wait for a slot
}

// Counts returns the current numbers.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Counts{Taken: p.takenSlots, Lent: p.lentSlots, PrefetchPlaces: p.prefetchPlaces, Queued: len(p.queue)}
}

// FreeSlots returns how many slots are free. It returns zero if the pool is quiet.
func (p *Pool) FreeSlots() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet {
		return 0
	}
	return p.freeSlots()
}

// JointRoom returns how many slots of the pools are free, and how many runs to prefetch now into all of them, at most limit. One caller
// reserves for these pools. Pools that are quiet or not open do not count.
func JointRoom(pools []*Pool, limit int) (free, prefetch int) {
	now, freed, places := time.Now(), 0, 0
	for _, p := range pools {
		p.mu.Lock()
		if p.open && !p.quiet {
			free += p.freeSlots()
			freed += p.turnover.count(now)
			places += p.prefetchPlaces
		}
		p.mu.Unlock()
	}
	return free, prefetchOf(freed, places, limit)
}

// PrefetchRoom returns how many runs to prefetch into this pool.
func (p *Pool) PrefetchRoom() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.turnover.count(time.Now())-p.prefetchPlaces)
}

// freeSlots returns how many slots are free. It returns zero while more runs are executed than there are slots,
// because some have taken back their lent slots. p.mu is held.
func (p *Pool) freeSlots() int { return max(0, p.size-p.takenSlots) }

// prefetchOf returns how many runs to prefetch, at most limit, when the given numbers of slots came free recently and of places are
// taken. It returns zero if the number is too small to be worth a claim, and after a single slot, which does not predict when the next
// slot comes free.
func prefetchOf(freed, places, limit int) int {
	most := min(limit, freed)
	if room := most - places; freed > 1 && room > 0 && 2*room >= most {
		return room
	}
	return 0
}

// Reserve reserves up to want slots. It leaves the given number of slots free, but takes one slot if any is
// free. For the rest of want it reserves up to prefetch places. It reserves nothing if the pool is not open or is quiet.
func (p *Pool) Reserve(want, leaveFree, prefetch int) Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open || p.quiet {
		return Reservation{}
	}
	free := p.freeSlots()
	r := Reservation{pool: p, slots: min(want, max(free-leaveFree, min(free, 1)))}
	r.prefetchPlaces = min(prefetch, want-r.slots)
	p.takenSlots += r.slots
	p.prefetchPlaces += r.prefetchPlaces
	return r
}

// AcquireBeyond reserves the slots that are left of the given number beyond the size of the pool, for runs that leave at once. The pool
// gives no other slot until fewer runs are executed than it has slots. AcquireBeyond reserves nothing if the pool is not open or is quiet.
func (p *Pool) AcquireBeyond(most int) Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open || p.quiet {
		return Reservation{}
	}
	r := Reservation{pool: p, slots: max(0, min(most, p.size+most-p.takenSlots)), beyond: true}
	p.takenSlots += r.slots
	return r
}

// giveFreeSlots gives free slots to the queue. p.mu is held.
func (p *Pool) giveFreeSlots() {
	for p.open && len(p.queue) > 0 && p.takenSlots < p.size {
		s := p.queue[0]
		p.queue = slices.Delete(p.queue, 0, 1)
		p.takenSlots++
		p.prefetchPlaces--
		close(s.givenChan)
	}
}

// notifyIfEmpty closes the channel of WhenEmpty if the pool is closed and nothing of it is in use. p.mu is held.
func (p *Pool) notifyIfEmpty() {
	if p.closed && p.takenSlots+p.lentSlots+p.prefetchPlaces == 0 {
		close(p.emptyChan)
	}
}

// notifyFreed tells the receiver of the channel given to UseFreed that slots came free.
func (p *Pool) notifyFreed() {
	select {
	case p.freedChan <- struct{}{}:
	default:
	}
}

// Reservation is a number of slots and prefetch places that no run uses yet. The zero value reserves
// nothing. A reservation must not be copied, and serves one goroutine at a time.
type Reservation struct {
	pool                  *Pool
	slots, prefetchPlaces int
	beyond                bool // see AcquireBeyond
}

// UnassignedSlots returns how many slots are reserved and not assigned.
func (r *Reservation) UnassignedSlots() int { return r.slots }

// Capacity returns how many runs the reservation has slots or places for.
func (r *Reservation) Capacity() int { return r.slots + r.prefetchPlaces }

// Assign assigns s a slot of the reservation. If no slot is left, s takes a prefetch place and waits for
// the next free slot of the pool. If no place is left either, Assign adds a place. s must be a zero Slot,
// and the reservation must come from a pool that was open.
func (r *Reservation) Assign(s *Slot) {
	s.pool, s.beyond = r.pool, r.beyond
	if r.slots > 0 {
		r.slots--
		return
	}
	p := r.pool
	s.givenChan = make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.prefetchPlaces > 0 {
		r.prefetchPlaces--
	} else {
		p.prefetchPlaces++
	}
	p.queue = append(p.queue, s)
	p.giveFreeSlots() // a slot may have come free since the reservation
}

// Release returns the slots and places that were not assigned. Calls after the first do nothing.
func (r *Reservation) Release() {
	if r.Capacity() == 0 {
		return
	}
	p := r.pool
	p.mu.Lock()
	p.takenSlots -= r.slots
	p.prefetchPlaces -= r.prefetchPlaces
	r.slots, r.prefetchPlaces = 0, 0
	p.giveFreeSlots()
	p.notifyIfEmpty()
	p.mu.Unlock()
	p.notifyFreed()
}
