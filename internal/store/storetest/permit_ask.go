package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// permitWithdrawn pauses a running run and resumes it before its process has noticed: its step still waits for an offer.
func permitWithdrawn(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, waits, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one)
	for i, a := range []*store.PermitRequest{holder, waits, last} {
		b.requestPermits(b.afterStart(time.Duration(i)), a)
	}
	b.returnPermits(b.afterStart(time.Second), holder)
	if p := b.permitOf(waits.Run); p.Status != store.PermitOffered {
		b.Fatalf("the first in line: %+v, want an offer", p)
	}
	b.controlExistingRuns(store.VerbPause, waits.Run)
	b.permits(&store.PermitBatch{Now: b.afterStart(time.Second), LimitKeys: []store.LimitKey{{Limit: "l"}}})
	if p, next := b.permitOf(waits.Run), b.permitOf(last.Run); p.Status != store.PermitWaiting || p.StepsAhead != 0 || next.Status != store.PermitOffered {
		b.Errorf("a step whose run is to be paused: %+v, the next: %+v; want the offer to go to the next, and the place to stay", p, next)
	}
	b.controlExistingRuns(store.VerbResume, waits.Run)
	b.requestPermits(b.afterStart(2*time.Second), last)
	b.returnPermits(b.afterStart(2*time.Second), last)
	if p := b.permitOf(waits.Run); p.Status != store.PermitOffered {
		b.Errorf("a step whose run was not paused after all: %+v, want the next offer", p)
	}
	b.wantOwnedRunChanges("the run", b.ownedRunChanges(b.worker, waits.Run), nil, waits.Run)
}

// permitOfNextOwner lets a former owner ask for a step whose permit the next owner holds, or is offered.
func permitOfNextOwner(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(2)
	former, other := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one)
	b.renew(b.heartbeat(store.Lease{Run: runs[1].UUID, Epoch: runs[1].Epoch}))
	again := b.claimOne(b.query(runs[0].WakeAt), runs[0].UUID).Run
	at := runs[0].WakeAt
	next := b.newPermitRequest(again, one)
	b.requestPermits(at, next)
	b.wantPermitOutcome("the next owner", next, store.Written)
	b.requestPermits(at, former, other)
	b.wantPermitOutcome("the former owner", former, store.Fenced)
	b.wantPermitOutcome("another step, while the next owner holds the permit", other, store.Locked)
	b.returnPermits(at, next)
	next.Attempt++
	b.requestPermits(at, next) // behind the other step, which has the offer
	b.returnPermits(at, other)
	if p := b.permitOf(again.UUID); p.Status != store.PermitOffered {
		b.Fatalf("the next owner: %+v, want an offer", p)
	}
	b.requestPermits(at, former, other)
	b.wantPermitOutcome("another step, while the next owner has an offer", other, store.Locked)
}

// permitWithoutLease lets a step ask whose run's lease has ended, as after an outage: a permit would end at once.
func permitWithoutLease(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(2)
	first, second := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one)
	b.renew(b.heartbeat(store.Lease{Run: second.Run, Epoch: second.Epoch}))
	at := runs[0].WakeAt
	b.requestPermits(at, first)
	b.wantPermitOutcome("a step whose lease has ended", first, store.Locked)
	if !first.RetryAt.After(at) {
		b.Errorf("it asks again at %v, want a time after %v", first.RetryAt, at)
	}
	b.renew(b.heartbeat(store.Lease{Run: first.Run, Epoch: first.Epoch}))
	b.requestPermits(first.RetryAt, second, first)
	b.wantPermitOutcome("the step after the renewal of its lease", first, store.Written)
	b.wantPermitOutcome("the step behind it", second, store.Locked)
}

// permitBehindOffer lets a step ask while a rate is kept for others.
func permitBehindOffer(b *fixture) {
	rate := store.LimitSettings{Rate: 1, Period: 10 * time.Second, Burst: 1}
	runs := b.runsNamed(3)
	first, offered, last := b.newPermitRequest(runs[0], rate), b.newPermitRequest(runs[1], rate), b.newPermitRequest(runs[2], rate)
	b.requestPermits(b.now, first, offered)
	at := b.afterStart(10 * time.Second)
	look := &store.PermitBatch{Now: at, LimitKeys: []store.LimitKey{{Limit: "l"}}}
	b.permits(look)
	if p := b.permitOf(offered.Run); p.Status != store.PermitOffered {
		b.Fatalf("the first in line: %+v, want an offer", p)
	}
	b.requestPermits(at, last)
	b.wantPermitOutcome("a step behind an offer", last, store.Locked)
	if want := b.afterStart(20 * time.Second); !last.RetryAt.Equal(want) {
		b.Errorf("it asks again at %v, want %v", last.RetryAt.Sub(b.now), want.Sub(b.now))
	}
	b.permits(look)
	if next := look.RecheckAt[look.LimitKeys[0]]; !next.Equal(b.afterStart(20 * time.Second)) {
		b.Errorf("the line is looked at again at %v, want 20s", next.Sub(b.now))
	}
}

// permitRetaken lets a step give its permit back and request it again in one call, because its grant was too old to be used.
func permitRetaken(b *fixture) {
	one := store.LimitSettings{Rate: 1, Period: time.Second, Burst: 1}
	runs := b.runsNamed(2)
	first, second := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one)
	b.requestPermits(b.now, first)
	b.wantPermitOutcome("the first step", first, store.Written)
	if !first.ArrivedAt.Equal(b.now) {
		b.Errorf("the first step arrived at %v, want %v", first.ArrivedAt, b.now)
	}
	b.requestPermits(b.now.Add(100*time.Millisecond), second)
	b.wantPermitOutcome("the step behind it", second, store.Locked)
	at := b.now.Add(200 * time.Millisecond)
	again := b.newPermitRequest(runs[0], one)
	again.ArrivedAt = first.ArrivedAt
	b.permits(&store.PermitBatch{Now: at, Returns: []store.PermitReturn{first.NewPermitReturn()}, Requests: []*store.PermitRequest{again}})
	b.wantPermitOutcome("the first step, while the rate is used up", again, store.Locked)
	if !again.ArrivedAt.Equal(first.ArrivedAt) {
		b.Errorf("its place is that of %v, want %v", again.ArrivedAt, first.ArrivedAt)
	}
	b.requestPermits(b.now.Add(time.Second), second, again)
	b.wantPermitOutcome("the first step, when the rate allows one", again, store.Written)
	b.wantPermitOutcome("the step behind it, when the rate allows one", second, store.Locked)
}
