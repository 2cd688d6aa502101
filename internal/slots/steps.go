package slots

import (
	"container/list"
	"context"
	"sync"
)

// Steps holds the slots in which a process executes functions of steps. A nil Steps sets no bound.
type Steps struct {
	mu    sync.Mutex
	free  int
	queue list.List // of chan struct{}, one for each waiting caller; closed when the caller gets its slot
}

// NewSteps returns n slots. For zero it returns nil, which means no bound.
func NewSteps(n int) *Steps {
	if n <= 0 {
		return nil
	}
	return &Steps{free: n}
}

// Acquire takes a slot, and waits behind earlier callers if none is free. It reports whether it had to
// wait. If ctx ends first, it takes no slot and returns the cause of ctx.
func (s *Steps) Acquire(ctx context.Context) (slot *StepSlot, waited bool, err error) {
	if s == nil {
		return nil, false, nil
	}
	taken, waited := s.take(ctx, nil)
	if !taken {
		return nil, waited, context.Cause(ctx)
	}
	return &StepSlot{of: s, held: true}, waited, nil
}

// Waiting returns how many callers wait for a slot.
func (s *Steps) Waiting() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// take takes one slot, and waits behind earlier callers if none is free. It reports whether it took a slot,
// and whether it had to wait. It takes no slot if ctx ends or unneeded is closed first.
func (s *Steps) take(ctx context.Context, unneeded <-chan struct{}) (taken, waited bool) {
	s.mu.Lock()
	if s.free > 0 { // then nobody waits
		s.free--
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
		s.put()
	default:
		s.queue.Remove(place)
	}
	return false, true
}

// put gives a slot to the caller that has waited longest, or counts it as free. s.mu is held.
func (s *Steps) put() {
	if first := s.queue.Front(); first != nil {
		close(s.queue.Remove(first).(chan struct{}))
		return
	}
	s.free++
}

// StepSlot is the slot of one attempt of a step. The methods of a nil StepSlot do nothing.
type StepSlot struct {
	of *Steps

	// The fields below are guarded by of.mu.
	held  bool
	waits int           // how many waits of the function are in progress
	back  chan struct{} // closed when the attempt has the slot again, or has ended; nil: no wait needs the slot
	left  bool          // Leave was called
}

// Lend gives the slot to other functions while this function waits. The returned function ends the wait:
// it waits until it has a slot again. If ctx ends first, it takes no slot, because the function must then
// return. Waits of one function may overlap; the last of them that ends takes the slot.
func (s *StepSlot) Lend(ctx context.Context) (regain func()) {
	if s == nil {
		return func() {}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.waits++
	s.drop()
	return func() { s.regain(ctx) }
}

// regain ends one wait of the function. If several waits need the slot at once, each requests a slot. The
// first of them that gets one returns the others too, since the function needs one slot only.
func (s *StepSlot) regain(ctx context.Context) {
	s.of.mu.Lock()
	s.waits--
	if !s.isWanted() {
		s.of.mu.Unlock()
		return
	}
	if s.back == nil {
		s.back = make(chan struct{})
	}
	back := s.back
	s.of.mu.Unlock()
	if taken, _ := s.of.take(ctx, back); !taken {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.isWanted() {
		s.held = true
		s.endRequests()
	} else { // meanwhile the attempt has ended, or the function waits again, or another wait has taken a slot
		s.of.put()
	}
}

// endRequests makes the waits return that request a slot. s.of.mu is held.
func (s *StepSlot) endRequests() {
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
}

// isWanted reports whether the function is executing without a slot. s.of.mu is held.
func (s *StepSlot) isWanted() bool { return s.waits == 0 && !s.held && !s.left }

// Leave returns the slot at the end of the attempt. Calls after the first do nothing.
func (s *StepSlot) Leave() {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.left = true
	s.drop()
	s.endRequests()
}

// drop returns the slot if the attempt holds it. s.of.mu is held.
func (s *StepSlot) drop() {
	if s.held {
		s.held = false
		s.of.put()
	}
}
