package slots

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

var errCancelled = errors.New("cancelled")

// Slots are given in the order of the requests. A slot for which the caller waits no longer goes to the
// next caller.
func TestStepSlotsAreGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		held := acquired(t, s)
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
				slot, waited, err := s.Acquire(ctx)
				if !waited || (err != nil) != (ctx == gone) || err != nil && !errors.Is(err, errCancelled) {
					t.Errorf("%d: %v, %v", i, waited, err)
				}
				if err == nil {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					slot.Release()
				}
			})
			synctest.Wait() // so that it waits behind the one before
		}
		wantFree(t, "at first", s, 0, 5)
		leave(errCancelled)
		synctest.Wait()
		held.Release()
		all.Wait()
		if !slices.Equal(order, []int{0, 2, 4}) {
			t.Errorf("given in the order %v", order)
		}
		wantFree(t, "at last", s, 1, 0)
	})
}

// A slot that comes when its caller has just stopped waiting is free again.
func TestStepSlotThatComesTooLateIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		held := acquired(t, s)
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			if _, _, err := s.Acquire(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}()
		synctest.Wait()
		s.mu.Lock()
		leave()
		held.returnIfHeld()
		s.mu.Unlock()
		synctest.Wait()
		wantFree(t, "at last", s, 1, 0)
	})
}

// However callers stop waiting, no slot is lost.
func TestStepSlotsAreNotLost(t *testing.T) {
	s := NewStepPool(2)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				ctx, leave := context.WithCancel(context.Background())
				if i%2 == 0 {
					go leave()
				}
				if slot, _, err := s.Acquire(ctx); err == nil {
					slot.Lend(ctx)()
					slot.Release()
					slot.Release()
				}
				leave()
			}
		})
	}
	all.Wait()
	wantFree(t, "at last", s, 2, 0)
}

// acquired returns a slot that must be free.
func acquired(t *testing.T, s *StepPool) *StepSlot {
	t.Helper()
	slot, waited, err := s.Acquire(t.Context())
	if waited || err != nil {
		t.Fatalf("waited: %v; %v", waited, err)
	}
	return slot
}

func wantFree(t *testing.T, when string, s *StepPool, free, waiting int) {
	t.Helper()
	if s.freeSlots != free || s.WaitingCount() != waiting {
		t.Errorf("%s, %d slots are free and %d callers wait, want %d and %d", when, s.freeSlots, s.WaitingCount(), free, waiting)
	}
}

// A function lends its slot while it waits, and then waits for its turn like others.
func TestLentStepSlotReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		mine := acquired(t, s)
		regain := mine.Lend(t.Context())
		wantFree(t, "while it waits", s, 1, 0)
		other := acquired(t, s)
		back := false
		go func() { regain(); back = true }()
		synctest.Wait()
		if back {
			t.Error("it continues although its slot is taken")
		}
		wantFree(t, "after its wait", s, 0, 1)
		other.Release()
		other.Release()
		synctest.Wait()
		if !back {
			t.Error("it does not continue although a slot is free")
		}
		wantFree(t, "when it continues", s, 0, 0)
		mine.Release()
		wantFree(t, "at last", s, 1, 0)
	})
}

// Waits of one function overlap: it lends its slot once, and the last wait that ends takes a slot.
func TestOverlappingWaitsLendOneStepSlot(t *testing.T) {
	s := NewStepPool(2)
	mine := acquired(t, s)
	first, second := mine.Lend(t.Context()), mine.Lend(t.Context())
	wantFree(t, "in two waits", s, 2, 0)
	first()
	wantFree(t, "in one wait", s, 2, 0)
	second()
	wantFree(t, "after the waits", s, 1, 0)
	mine.Release()
	wantFree(t, "at last", s, 2, 0)
}

// A function whose context has ended continues without a slot, because it must return.
func TestEndedFunctionTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		ctx, end := context.WithCancel(t.Context())
		mine := acquired(t, s)
		regain := mine.Lend(ctx)
		other := acquired(t, s)
		back := make(chan struct{})
		go func() { regain(); close(back) }()
		synctest.Wait()
		end()
		<-back
		wantFree(t, "without a slot", s, 0, 0)
		mine.Release() // it holds none
		wantFree(t, "after its end", s, 0, 0)
		other.Release()
		wantFree(t, "at last", s, 1, 0)
	})
}

// An attempt that has ended, or that waits again, passes the slot on that comes for its last wait.
func TestSlotThatIsNotNeededIsPassedOn(t *testing.T) {
	for name, meanwhile := range map[string]func(*testing.T, *StepSlot){
		"the attempt has ended":    func(_ *testing.T, s *StepSlot) { s.Release() },
		"the function waits again": func(t *testing.T, s *StepSlot) { s.Lend(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewStepPool(1)
				mine := acquired(t, s)
				regain := mine.Lend(t.Context())
				other := acquired(t, s)
				go regain()
				synctest.Wait()
				meanwhile(t, mine)
				other.Release()
				synctest.Wait()
				wantFree(t, "at last", s, 1, 0)
				mine.Release()
				wantFree(t, "after its end", s, 1, 0)
			})
		})
	}
}

// Two waits that end at once take one slot.
func TestWaitsThatEndTogetherTakeOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		mine := acquired(t, s)
		first := mine.Lend(t.Context())
		other := acquired(t, s)
		go first()
		synctest.Wait() // it waits for its slot
		second := mine.Lend(t.Context())
		go second()
		synctest.Wait()
		wantFree(t, "after both waits", s, 0, 2)
		other.Release()
		synctest.Wait()
		wantFree(t, "when it continues", s, 0, 0)
		mine.Release()
		synctest.Wait()
		wantFree(t, "at last", s, 1, 0)
	})
}

// Two waits of one function that get a slot each at the same time keep one of them.
func TestSecondSlotOfAFunctionIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(2)
		mine, one, two := acquired(t, s), acquired(t, s), (*StepSlot)(nil)
		first := mine.Lend(t.Context())
		two = acquired(t, s)
		go first()
		synctest.Wait()
		second := mine.Lend(t.Context())
		go second()
		synctest.Wait()
		wantFree(t, "after both waits", s, 0, 2)
		s.mu.Lock()
		one.returnIfHeld()
		two.returnIfHeld()
		s.mu.Unlock()
		synctest.Wait()
		wantFree(t, "when it continues", s, 1, 0)
		mine.Release()
		wantFree(t, "at last", s, 2, 0)
	})
}

// A wait that ends after its attempt needs no slot, and does not wait for one.
func TestWaitReturnsAfterItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStepPool(1)
		mine := acquired(t, s)
		early, late := mine.Lend(t.Context()), mine.Lend(t.Context())
		other := acquired(t, s)
		early()
		go late()
		synctest.Wait()
		wantFree(t, "in the attempt", s, 0, 1)
		mine.Release()
		synctest.Wait()
		wantFree(t, "after the attempt", s, 0, 0)
		mine.Lend(t.Context())()
		wantFree(t, "after a further wait", s, 0, 0)
		other.Release()
		wantFree(t, "at last", s, 1, 0)
	})
}

func TestNoBoundOnSteps(t *testing.T) {
	for _, n := range []int{0, -1} {
		s := NewStepPool(n)
		for range 100 {
			slot := acquired(t, s)
			slot.Lend(t.Context())()
			slot.Release()
		}
		if s.WaitingCount() != 0 {
			t.Errorf("%d wait", s.WaitingCount())
		}
	}
}
