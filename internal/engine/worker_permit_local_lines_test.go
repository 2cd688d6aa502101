package engine

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The steps of a process ask in the order of their line when permits are given back, as many as the units are enough for.
func TestReturnedPermitWakesTheNextOfItsLine(t *testing.T) {
	p := &permitExchange{wakeLoop: newNotifier()}
	line, now := store.PermitLineKey{Limit: "l"}, time.Now()
	join := func(after time.Duration, priority int16, units int) *stepAwaitingPermit {
		var waits runPermitWaits
		s := waits.addStep(line, "s")
		arrived := now.Add(after)
		waits.recordPlace(s, arrived)
		p.addToLocalLine(s, &store.PermitRequest{Limit: "l", Run: uuid.New(), Step: "s", Units: units, Priority: priority, ArrivedAt: arrived})
		return s
	}
	third, second, urgent := join(2*time.Second, 0, 3), join(time.Second, 0, 1), join(3*time.Second, 1, 1)
	all := map[string]*stepAwaitingPermit{"urgent": urgent, "second": second, "third": third}
	woken := func(when string, want ...string) {
		t.Helper()
		wanted := make(map[string]bool)
		for _, name := range want {
			wanted[name] = true
		}
		for name, s := range all {
			select {
			case <-s.mustAsk:
				if !wanted[name] {
					t.Errorf("%s: %s asks", when, name)
				}
			default:
				if wanted[name] {
					t.Errorf("%s: %s does not ask", when, name)
				}
			}
		}
	}
	p.wakeNext(line, 1)
	woken("one unit is returned", "urgent")
	p.wakeNext(line, 1)
	woken("it asks already")
	p.wakeNext(line, 2)
	woken("a second unit is returned", "second")
	p.leaveLocalLine(urgent)
	p.leaveLocalLine(second)
	p.wakeNext(line, 1)
	woken("those before have left", "third")
	p.leaveLocalLine(third)
	if p.wakeNext(line, 5); len(p.localPermitLines) != 0 {
		t.Errorf("%d lines are kept in which nobody waits", len(p.localPermitLines))
	}
	p.wakeNext(store.PermitLineKey{Limit: "other"}, 1)
	woken("nobody waits")
}
