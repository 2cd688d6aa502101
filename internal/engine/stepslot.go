package engine

import (
	"container/list"
	"context"
	"sync"

	"github.com/seed8ec063be/durable/internal/store"
)

// stepSlots bounds how many functions of steps, Tx steps and compensations this process executes at once.
// They get slots in the order of their requests. A function takes its slot before its started marker is
// written, and keeps it until the function returns. So the wait for a slot does not count for the
// attempt's timeout or its marker, and the checkpoint is written without a slot.
//
// Nothing else holds a slot. The function of a step may wait for a run whose steps need slots in this
// process. While the function waits for a result through the engine, its slot is lent to other functions.
type stepSlots struct {
	mu    sync.Mutex
	free  int
	queue list.List // of chan struct{}, one for each waiting caller; closed when the caller gets its slot
}

// newStepSlots returns n slots. For zero it returns nil, which means no bound.
func newStepSlots(n int) *stepSlots {
	if n <= 0 {
		return nil
	}
	return &stepSlots{free: n}
}

// take takes a slot, and waits behind earlier callers if none is free. It reports whether it had to wait,
// and returns the cause of ctx if ctx ends first.
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
	case <-turn: // the slot came at the same time: pass it on
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

// give hands a slot to the caller that has waited longest, or counts it as free. s.mu is held.
func (s *stepSlots) give() {
	if first := s.queue.Front(); first != nil {
		close(s.queue.Remove(first).(chan struct{}))
		return
	}
	s.free++
}

// waiting returns how many callers wait for a slot.
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
	lent int  // how many waits of the function for results are in progress
	over bool // the attempt is over
}

// lend gives the slot to other functions while this function waits.
func (s *stepSlot) lend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent++
	s.drop()
}

// regain takes a slot again when a wait of the function ends. If ctx ends first, it takes no slot,
// because the function must then return.
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

// wanted reports whether the function is executing without a slot. s.mu is held.
func (s *stepSlot) wanted() bool { return s.lent == 0 && !s.held && !s.over }

// leave gives the slot back at the end of the attempt.
func (s *stepSlot) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.drop()
}

// drop gives the slot back if the attempt holds it. s.mu is held.
func (s *stepSlot) drop() {
	if s.held {
		s.held = false
		s.of.put()
	}
}

// enter waits for the slot of an attempt, if the number of slots is bounded. The returned function gives
// the slot back, and may be called more than once.
func (t *task) enter() (leave func(), err error) {
	slots := t.r.e.steps
	if slots == nil || t.spec.Kind > store.KindCompensation { // an effect calls no function of the user
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
			t.first = t.r.e.clock.now() // the total timeout counts from here
		}
	}
	return slot.leave, nil
}

func nothing() {}

// lent lends the slot of the step whose function was called with ctx, if it has a slot, and the slot of
// its run. The returned function takes both again.
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
