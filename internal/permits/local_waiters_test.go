package permits

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The steps of a process ask in the order of their line when permits are given back, as many as the units are enough for.
func TestReturnedPermitWakesTheNextOfItsLine(t *testing.T) {
	p := NewBatcher(Config{})
	line, now := store.LimitKey{Limit: "l"}, time.Now()
	ask := func(s *WaitingStep, outcome store.WriteOutcome, after time.Duration, priority int16, units int) *pendingRequest {
		a := &store.PermitRequest{Limit: "l", Run: uuid.New(), Step: "s", Units: units, Priority: priority, ArrivedAt: now.Add(after), Outcome: outcome}
		return &pendingRequest{PermitRequest: a, step: s}
	}
	join := func(after time.Duration, priority int16, units int) *WaitingStep {
		s := new(WaitingSteps).Add(line, "s")
		p.updateLocalWaitersFromOutcomes([]*pendingRequest{ask(s, store.Locked, after, priority, units)})
		return s
	}
	giveBack := func(line store.LimitKey, units int) (woken int) {
		p.pendingReturns = []pendingReturn{{PermitReturn: store.PermitReturn{Limit: line.Limit}, units: units}}
		return p.wakeLocalWaiters()
	}
	third, second, urgent := join(2*time.Second, 0, 3), join(time.Second, 0, 1), join(3*time.Second, 1, 1)
	all := map[string]*WaitingStep{"urgent": urgent, "second": second, "third": third}
	woken := func(when string, want ...string) {
		t.Helper()
		wanted := make(map[string]bool)
		for _, name := range want {
			wanted[name] = true
		}
		for name, s := range all {
			select {
			case <-s.requestDue:
				if !wanted[name] {
					t.Errorf("%s: %s requests", when, name)
				}
			default:
				if wanted[name] {
					t.Errorf("%s: %s does not ask", when, name)
				}
			}
		}
	}
	giveBack(line, 1)
	woken("one unit is returned", "urgent")
	giveBack(line, 1)
	woken("it requests already")
	if giveBack(line, 2) != 1 {
		t.Error("the number of steps that were woken is not one")
	}
	woken("a second unit is returned", "second")
	if n := p.updateLocalWaitersFromOutcomes([]*pendingRequest{ask(urgent, store.Written, 0, 0, 1)}); n != 1 {
		t.Errorf("%d permits were granted, want one", n)
	}
	p.endLocalWait(second)
	giveBack(line, 1)
	woken("those before have left", "third")
	p.endLocalWait(third)
	p.updateLocalWaitersFromOutcomes([]*pendingRequest{ask(third, store.Locked, time.Second, 0, 1)})
	if giveBack(line, 5); len(p.localWaiters) != 0 {
		t.Errorf("%d lines are kept in which nobody waits", len(p.localWaiters))
	}
	giveBack(store.LimitKey{Limit: "other"}, 1)
	woken("nobody waits")
}
