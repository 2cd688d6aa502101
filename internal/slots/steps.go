package slots

import (
	"container/list"
	"context"
	"sync"
)

// StepPool holds the slots in which a process executes functions of steps. A nil StepPool sets no bound.
type StepPool struct {
	mu        sync.Mutex
	freeSlots int
	queue     list.List // of chan struct{}, one for each waiting caller; closed when the caller gets its slot
}

// NewStepPool returns n slots. For zero it returns nil, which means no bound.
func NewStepPool(n int) *StepPool {
	if n <= 0 {
		return nil
	}
	return &StepPool{freeSlots: n}
}

// Acquire takes a slot, and waits behind earlier callers if none is free. It reports whether it had to
// wait. If ctx ends first, it takes no slot and returns the cause of ctx.
func (s *StepPool) Acquire(ctx context.Context) (slot *StepSlot, waited bool, err error) {
	if s == nil {
		return nil, false, nil
	}
	taken, waited := s.takeSlot(ctx, nil)
	if !taken {
		return nil, waited, context.Cause(ctx)
	}
	return &StepSlot{stepPool: s, isHeld: true}, waited, nil
}

// WaitingCount returns how many callers wait for a slot.
func (s *StepPool) WaitingCount() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// takeSlot takes one slot, and waits behind earlier callers if none is free. It reports whether it took a slot,
// and whether it had to wait. It takes no slot if ctx ends or unneeded is closed first.
func (s *StepPool) takeSlot(ctx context.Context, unneeded <-chan struct{}) (taken, waited bool) {
	s.mu.Lock()
	if s.freeSlots > 0 { // then nobody waits
		s.freeSlots--
		s.mu.Unlock()
		return true, false
	}
	turn := make(chan struct{})
	place := s.queue.PushBack(turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return true, true
	case <-ctx.Done():
	case <-unneeded:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-turn: // the slot came at the same time: pass it on
		s.returnSlot()
	default:
		s.queue.Remove(place)
	}
	return false, true
}

// returnSlot gives a slot to the caller that has waited longest, or counts it as free. s.mu is held.
func (s *StepPool) returnSlot() {
	if first := s.queue.Front(); first != nil {
		close(s.queue.Remove(first).(chan struct{}))
		return
	}
	s.freeSlots++
}

// StepSlot is the slot of one attempt of a step. The methods of a nil StepSlot do nothing.
type StepSlot struct {
	stepPool *StepPool

	// The fields below are guarded by of.mu.
	isHeld        bool
	activeWaits   int           // how many waits of the function are in progress
	requestsEnded chan struct{} // closed when the attempt has the slot again, or has ended; nil: no wait needs the slot
	isReleased    bool          // Leave was called
}

// Lend gives the slot to other functions while this function waits. The returned function ends the wait:
// it waits until it has a slot again. If ctx ends first, it takes no slot, because the function must then
// return. Waits of one function may overlap; the last of them that ends takes the slot.
func (s *StepSlot) Lend(ctx context.Context) (regain func()) {
	if s == nil {
		return func() {}
	}
	s.stepPool.mu.Lock()
	defer s.stepPool.mu.Unlock()
	s.activeWaits++
	s.returnIfHeld()
	return func() { s.regain(ctx) }
}

// regain ends one wait of the function. If several waits need the slot at once, each requests a slot. The
// first of them that gets one returns the others too, since the function needs one slot only.
func (s *StepSlot) regain(ctx context.Context) {
	s.stepPool.mu.Lock()
	s.activeWaits--
	if !s.needsSlot() {
		s.stepPool.mu.Unlock()
		return
	}
	if s.requestsEnded == nil {
		s.requestsEnded = make(chan struct{})
	}
	back := s.requestsEnded
	s.stepPool.mu.Unlock()
	if taken, _ := s.stepPool.takeSlot(ctx, back); !taken {
		return
	}
	s.stepPool.mu.Lock()
	defer s.stepPool.mu.Unlock()
	if s.needsSlot() {
		s.isHeld = true
		s.endRequests()
	} else { // meanwhile the attempt has ended, or the function waits again, or another wait has taken a slot
		s.stepPool.returnSlot()
	}
}

// endRequests makes the waits return that request a slot. s.of.mu is held.
func (s *StepSlot) endRequests() {
	if s.requestsEnded != nil {
		close(s.requestsEnded)
		s.requestsEnded = nil
	}
}

// needsSlot reports whether the function is executing without a slot. s.of.mu is held.
func (s *StepSlot) needsSlot() bool { return s.activeWaits == 0 && !s.isHeld && !s.isReleased }

// Release returns the slot at the end of the attempt. Calls after the first do nothing.
func (s *StepSlot) Release() {
	if s == nil {
		return
	}
	s.stepPool.mu.Lock()
	defer s.stepPool.mu.Unlock()
	s.isReleased = true
	s.returnIfHeld()
	s.endRequests()
}

// returnIfHeld returns the slot if the attempt holds it. s.of.mu is held.
func (s *StepSlot) returnIfHeld() {
	if s.isHeld {
		s.isHeld = false
		s.stepPool.returnSlot()
	}
}
