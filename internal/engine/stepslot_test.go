package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// Slots are given in the order in which they were asked for, and one whose asker has left goes to the next.
func TestStepSlotsAreGivenByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStepSlots(1)
		if waited, err := s.take(t.Context()); waited || err != nil {
			t.Fatal(waited, err)
		}
		var mu sync.Mutex
		var order []int
		gone, leave := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		for i := range 5 {
			ctx := t.Context()
			if i == 1 || i == 3 {
				ctx = gone
			}
			all.Go(func() {
				waited, err := s.take(ctx)
				if !waited || (err != nil) != (ctx == gone) || err != nil && !errors.Is(err, ErrCancelled) {
					t.Errorf("%d: %v, %v", i, waited, err)
				}
				if err == nil {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					s.put()
				}
			})
			synctest.Wait() // so that it waits behind the one before
		}
		if s.waiting() != 5 {
			t.Errorf("%d wait", s.waiting())
		}
		leave(ErrCancelled)
		synctest.Wait()
		s.put()
		all.Wait()
		if !slices.Equal(order, []int{0, 2, 4}) || s.free != 1 || s.waiting() != 0 {
			t.Errorf("given in the order %v, then %d are free", order, s.free)
		}
	})
}

// A slot that comes at the moment in which its asker leaves is not lost.
func TestStepSlotsAreNotLost(t *testing.T) {
	s := newStepSlots(2)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				ctx, leave := context.WithCancel(context.Background())
				if i%2 == 0 {
					go leave()
				}
				if _, err := s.take(ctx); err == nil {
					slot := &stepSlot{of: s, held: true}
					slot.lend()
					slot.regain(ctx)
					slot.leave()
					slot.leave()
				}
				leave()
			}
		})
	}
	all.Wait()
	if s.free != 2 || s.waiting() != 0 {
		t.Errorf("%d slots are free, want 2", s.free)
	}
}
