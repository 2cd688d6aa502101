package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// During an outage the database is unreachable, or cannot commit. Results of claims are lost and
// leases expire, although no process has died.
var outages = []test{
	{"a claim is found by its nonce", outageFound},
	{"what a claim took and has moved on is not found", outageMoved},
	{"a lease that ended in the claimer's outage counts no crash", outageExcused},
	{"an outage never pauses", outageNeverPauses},
	{"a suspect stays one", outageSuspect},
}

// heldBy returns the leases that LeasesOfClaim finds for the claim, ordered by run.
func (b *fixture) heldBy(q store.ClaimQuery) []store.Lease {
	b.Helper()
	leases, err := b.store.LeasesOfClaim(b.ctx, q)
	if err != nil {
		b.Fatalf("HeldBy: %v", err)
	}
	slices.SortFunc(leases, func(l, r store.Lease) int { return slices.Compare(l.Run[:], r.Run[:]) })
	return leases
}

func outageFound(b *fixture) {
	q := b.query(b.now)
	if got := b.heldBy(q); len(got) != 0 {
		b.Errorf("before the claim: %v", got)
	}
	var want []store.Lease
	for range 3 {
		want = append(want, store.Lease{Run: b.commitPendingRun("", b.now).UUID, Epoch: epochAt(1)})
	}
	slices.SortFunc(want, func(l, r store.Lease) int { return slices.Compare(l.Run[:], r.Run[:]) })
	started := b.newRunningRun("started by the worker")
	started.Owner, started.WakeAt = owner(q.Worker), q.LeaseUntil
	started.Epoch.Nonce++
	b.commitStart(started)
	b.claim(q)
	if got := b.heldBy(q); !slices.Equal(got, want) {
		b.Errorf("after the claim: got %v, want %v", got, want)
	}
	for what, change := range map[string]func(q *store.ClaimQuery){
		"another worker":           func(q *store.ClaimQuery) { q.Worker = uuid.New() },
		"another nonce":            func(q *store.ClaimQuery) { q.EpochNonce -= 1 << 31 },
		"another end of the lease": func(q *store.ClaimQuery) { q.LeaseUntil = q.LeaseUntil.Add(time.Microsecond) },
	} {
		other := q
		change(&other)
		if got := b.heldBy(other); len(got) != 0 {
			b.Errorf("%s: got %v, want none", what, got)
		}
	}
}

func outageMoved(b *fixture) {
	q := b.query(b.now)
	q.Worker = b.worker
	kept, renewed, ended, left := b.commitPendingRun("", b.now), b.commitPendingRun("", b.now), b.commitPendingRun("", b.now), b.commitPendingRun("", b.now)
	b.claim(q)
	b.renew(b.heartbeat(store.Lease{Run: renewed.UUID, Epoch: epochAt(1)}))
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: left.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.afterStart(50 * time.Minute)})
	if got := b.heldBy(q); !slices.Equal(got, []store.Lease{{Run: kept.UUID, Epoch: epochAt(1)}}) {
		b.Errorf("got %v, want the run that is as the claim left it", got)
	}
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: kept.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.afterStart(time.Minute)})
	if got := b.claimOne(b.query(b.afterStart(30*time.Minute)), kept.UUID).Run; got.Crashes != 0 {
		b.Errorf("given back and claimed: %d crashes, want none", got.Crashes)
	}
}

func outageExcused(b *fixture) {
	from, until := b.afterStart(time.Hour), b.afterStart(2*time.Hour)
	for what, c := range map[string]struct {
		end     time.Time
		crashes int16
	}{
		"before the outage":    {from, 1},
		"as it began":          {from.Add(time.Microsecond), 0},
		"as it ended":          {until, 0},
		"after the outage":     {until.Add(time.Microsecond), 1},
		"long before, and due": {b.now, 1},
	} {
		r := b.newRunningRun(what)
		r.WakeAt = c.end
		b.commitStart(r)
		q := b.query(b.afterStart(3 * time.Hour))
		q.OutageFrom, q.OutageUntil, q.MaxCrashes = from, until, 2
		if got := b.claimOne(q, r.UUID).Run; got.Crashes != c.crashes || got.Status != store.Running {
			b.Errorf("%s: %s with %d crashes, want running with %d", what, got.Status, got.Crashes, c.crashes)
		}
		if got := b.row(r.UUID).Crashes; got != c.crashes {
			b.Errorf("%s: %d crashes in its row, want %d", what, got, c.crashes)
		}
		b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2)))
	}
}

func outageNeverPauses(b *fixture) {
	r := b.commitRunningRun("")
	for i := range 5 {
		q := b.query(b.afterStart(time.Hour * time.Duration(2*i+2)))
		q.MaxCrashes, q.OutageFrom, q.OutageUntil = 1, b.now, q.Now
		if got := b.claimOne(q, r.UUID).Run; got.Status != store.Running || got.Crashes != 0 {
			b.Fatalf("claim %d in the outage: %s with %d crashes, want running with none", i, got.Status, got.Crashes)
		}
	}
	q := b.query(b.afterStart(100 * time.Hour))
	q.MaxCrashes = 1
	if got := b.claimOne(q, r.UUID).Run; got.Status != store.Paused {
		b.Errorf("a claim without an outage: %s, want paused", got.Status)
	}
}

func outageSuspect(b *fixture) {
	r := b.commitRunningRun("")
	for i, crashes := range []int16{1, 2} {
		if got := b.claimOne(b.query(b.afterStart(time.Hour*time.Duration(2*i+2))), r.UUID).Run.Crashes; got != crashes {
			b.Fatalf("%d crashes, want %d", got, crashes)
		}
	}
	q := b.query(b.afterStart(6 * time.Hour))
	q.OutageFrom, q.OutageUntil, q.MaxSuspects = b.now, q.Now, 0
	if got := b.claim(q); len(got.Runs) != 0 {
		b.Errorf("a suspect was claimed as none: %v", describeClaims(got.Runs))
	}
	q.MaxSuspects = 1
	if got := b.claimOne(q, r.UUID).Run.Crashes; got != 2 {
		b.Errorf("%d crashes after the outage, want the 2 of before", got)
	}
}
