package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func permitClock(b *fixture) {
	rate := store.LimitSettings{Rate: 1, Period: time.Minute, Burst: 1}
	runs := b.runsNamed(3)
	if b.requestPermits(b.now, b.newPermitRequest(runs[0], rate)) != 1 {
		b.Fatal("the first was not granted")
	}
	if b.requestPermits(b.afterStart(-time.Hour), b.newPermitRequest(runs[1], rate)) != 0 {
		b.Error("a second was granted by a clock that had gone back")
	}
	if b.requestPermits(b.afterStart(time.Minute), b.newPermitRequest(runs[2], rate)) != 0 || b.requestPermits(b.afterStart(time.Minute), b.newPermitRequest(runs[1], rate)) != 1 {
		b.Error("after a minute the one that came first was not granted")
	}
}

// permitLeaseClock sets the clock back by an hour. The leases are renewed by the same clock, so the permits are held on.
func permitLeaseClock(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, next, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.afterStart(time.Hour), holder)
	b.wantPermitOutcome("the first step", holder, store.Locked) // its lease has ended
	lease := func(until time.Time, asks ...*store.PermitRequest) {
		b.Helper()
		h := b.heartbeat()
		for _, a := range asks {
			h.Leases = append(h.Leases, store.Lease{Run: a.Run, Epoch: a.Epoch})
		}
		h.LeaseUntil = until
		b.renew(h)
	}
	lease(b.afterStart(time.Minute), holder, next, last)
	if b.requestPermits(b.now, holder) != 1 {
		b.Fatal("a step whose lease has not ended by the clock got no permit, because the clock was an hour ahead before")
	}
	b.requestPermits(b.afterStart(time.Second), next, last)
	b.wantPermitOutcome("a second step, while the first executes", next, store.Locked)
	if p := b.permitOf(holder.Run); p.Status != store.PermitHeld {
		b.Errorf("the permit of a step that executes under its lease: %+v, want it held", p)
	}
	b.returnPermits(b.afterStart(2*time.Second), holder)
	if p := b.permitOf(next.Run); p.Status != store.PermitOffered {
		b.Fatalf("the next step: %+v, want the offer", p)
	}
	b.permits(&store.PermitBatch{Now: b.afterStart(10 * time.Second), LimitKeys: []store.LimitKey{{Limit: "l"}}})
	if p := b.permitOf(last.Run); p.Status != store.PermitOffered {
		b.Errorf("the step after one that missed its offer: %+v, want the offer", p)
	}
	b.permits(&store.PermitBatch{Now: b.afterStart(-time.Hour), LimitKeys: []store.LimitKey{{Limit: "l"}}})
	if p := b.permitOf(last.Run); p.Status != store.PermitWaiting {
		b.Errorf("an offer that would last for an hour, because the clock was set back: %+v, want it to end", p)
	}
}
