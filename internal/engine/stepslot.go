package engine

import (
	"container/list"
	"context"
	"sync"

	"github.com/seed8ec063be/durable/internal/store"
)

// stepSlots bounds how many functions of steps this process executes at once: of steps, Tx steps and
// compensations, in the order in which they ask. A function has its slot from before its started marker
// until it returns, so that neither its attempt's timeout nor its marker counts the wait, and writes
// its checkpoint without one.
//
// Nothing else holds a slot. What a step's function waits for may be a run whose steps need slots here: while it
// waits for a result by way of the engine, its slot is lent to others.
type stepSlots struct {
	mu    sync.Mutex
	free  int
	queue list.List // of chan struct{}, which are closed when their slot is given
}

// newStepSlots returns nil, which bounds nothing, for zero.
func newStepSlots(n int) *stepSlots {
	if n <= 0 {
		return nil
	}
	return &stepSlots{free: n}
}

// take takes a slot, and waits for one behind those who asked before. It reports whether it had to wait, and
// returns the cause of ctx if that ends first.
func (s *stepSlots) take(ctx context.Context) (waited bool, err error) {
	s.mu.Lock()
	if s.free > 0 && s.queue.Len() == 0 {
		s.free--
		s.mu.Unlock()
		return false, nil
	}
	turn := make(chan struct{})
	place := s.queue.PushBack(turn)
	s.mu.Unlock()
	select {
	case <-turn:
		return true, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-turn: // it came at the same time: the next one has it
		s.give()
	default:
		s.queue.Remove(place)
	}
	return true, context.Cause(ctx)
}

// put gives a slot back.
func (s *stepSlots) put() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give()
}

// give hands a slot to the one that has waited longest. s.mu is held.
func (s *stepSlots) give() {
	if first := s.queue.Front(); first != nil {
		close(s.queue.Remove(first).(chan struct{}))
		return
	}
	s.free++
}

// waiting is how many wait for a slot.
func (s *stepSlots) waiting() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// stepSlot is the slot of one attempt.
type stepSlot struct {
	of *stepSlots

	mu   sync.Mutex
	held bool
	lent int  // waits of the function for results
	over bool // the attempt is
}

// lend gives the slot to others while the function waits.
func (s *stepSlot) lend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent++
	s.drop()
}

// regain takes a slot again when the function goes on, unless ctx ends first: then the function is to return.
func (s *stepSlot) regain(ctx context.Context) {
	s.mu.Lock()
	s.lent--
	wanted := s.wanted()
	s.mu.Unlock()
	if !wanted {
		return
	}
	if _, err := s.of.take(ctx); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted() {
		s.held = true
	} else {
		s.of.put()
	}
}

// wanted reports whether the function works without a slot. s.mu is held.
func (s *stepSlot) wanted() bool { return s.lent == 0 && !s.held && !s.over }

// leave gives the slot back at the end of the attempt.
func (s *stepSlot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.drop()
}

// drop gives the slot back if it is held. s.mu is held.
func (s *stepSlot) drop() {
	if s.held {
		s.held = false
		s.of.put()
	}
}

// enter waits for the slot of an attempt, if there is a bound. The function returned, which may be called more
// than once, gives it back.
func (t *task) enter() (leave func(), err error) {
	slots := t.r.e.steps
	if slots == nil || t.spec.Kind > store.KindCompensation { // an effect calls no function of a user's
		return nothing, nil
	}
	waited, err := slots.take(t.s.ctx)
	if err != nil {
		return nothing, t.interruption()
	}
	slot := &stepSlot{of: slots, held: true}
	t.slot = slot
	if waited {
		if err := t.mayBegin(); err != nil {
			slot.leave()
			return nothing, err
		}
		if !t.exists && t.attempt == 1 {
			t.first = t.r.e.clock.now() // a total timeout counts from here
		}
	}
	return slot.leave, nil
}

func nothing() {}

// lent lends the slot of the step in whose function ctx is, if it has one, and that of its run. The function returned
// takes them again.
func lent(ctx context.Context) (regain func()) {
	t, ok := ctx.Value(attemptKey{}).(*task)
	if !ok {
		return nothing
	}
	again := t.r.lend()
	if t.slot == nil {
		return again
	}
	t.slot.lend()
	return func() {
		again()
		t.slot.regain(ctx)
	}
}
