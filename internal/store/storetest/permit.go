package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var permits = []test{
	{"no more units are held than the limit allows", permitConcurrent},
	{"a step that needs many units is not passed", permitUnits},
	{"higher priorities come first, then who came first", permitOrder},
	{"no more units are granted than the rate allows", permitRate},
	{"a clock that goes back grants nothing more", permitClock},
	{"a permit is held while its lease is, also when the clock was set back", permitLeaseClock},
	{"steps that a cancelled run no longer executes get no offers", permitCancelled},
	{"the next execution of a run takes its place in line", permitNextExecution},
	{"any number of steps whose runs nobody executes are passed", permitManyUnclaimed},
	{"each key has a line of its own", permitKeys},
	{"a permit ends with its lease, and with its execution", permitLease},
	{"what is free is offered, and its run is woken", permitOffer},
	{"an offer that is not taken goes to the next, and its step keeps its place", permitMissed},
	{"any number of steps that missed their offers are passed", permitManyMissed},
	{"a paused or ended run has no place", permitPaused},
	{"a run whose pause is withdrawn keeps its place", permitWithdrawn},
	{"an ask is repeated, and a new attempt asks anew", permitRepeated},
	{"a step that gives its permit back unused and requests it again keeps its place", permitRetaken},
	{"a former owner gets nothing, and gives nothing back", permitFenced},
	{"the ask of a former owner frees nothing", permitOfNextOwner},
	{"a step whose lease has ended gets no permit until the lease is renewed", permitWithoutLease},
	{"a step behind an offer asks when the rate allows it", permitBehindOffer},
	{"a rate that is raised applies at once, and one that is lowered too", permitRateChanged},
	{"a line whose limit was deleted goes on", permitUnbounded},
	{"lines that nobody uses are deleted", permitUnusedLines},
}

// newPermitRequest returns the request of a step of the run.
func (b *fixture) newPermitRequest(r store.Run, settings store.LimitSettings) *store.PermitRequest {
	return &store.PermitRequest{Limit: "l", Settings: settings, Run: r.UUID, Step: "step", Epoch: r.Epoch, Attempt: 1, Units: 1}
}

func (b *fixture) permits(batch *store.PermitBatch) {
	b.Helper()
	if batch.Now.IsZero() {
		batch.Now = b.now
	}
	if batch.Version == "" {
		batch.Version, batch.WorkerStarted = "v1", b.now
	}
	batch.CloseDurationAfterRewind = time.Minute
	if err := b.store.GrantAndReturnPermits(b.ctx, batch); err != nil {
		b.Fatalf("Permits: %v", err)
	}
}

// requestPermits makes the requests at the given time, and returns how many were granted.
func (b *fixture) requestPermits(at time.Time, asks ...*store.PermitRequest) (granted int) {
	b.Helper()
	b.permits(&store.PermitBatch{Now: at, Requests: asks})
	for _, a := range asks {
		if a.Outcome == store.Written {
			granted++
		}
	}
	return granted
}

// returnPermits gives the permit of an ask back.
func (b *fixture) returnPermits(at time.Time, asks ...*store.PermitRequest) {
	b.Helper()
	batch := &store.PermitBatch{Now: at}
	for _, a := range asks {
		batch.Returns = append(batch.Returns, a.NewPermitReturn())
	}
	b.permits(batch)
}

func (b *fixture) wantPermitOutcome(what string, a *store.PermitRequest, want store.WriteOutcome) {
	b.Helper()
	if a.Outcome != want {
		b.Errorf("%s: the outcome is %v, want %v", what, a.Outcome, want)
	}
}

func (b *fixture) runsNamed(n int) (all []store.Run) {
	b.Helper()
	for i := range n {
		all = append(all, b.commitRunningRun(fmt.Sprint("run", i)))
	}
	return all
}

func (b *fixture) permitOf(run uuid.UUID) store.QueuedPermit {
	b.Helper()
	all, err := b.store.PermitsOfRun(b.ctx, run)
	if err != nil || len(all) > 1 {
		b.Fatalf("PermitsOf: %v, %v", all, err)
	}
	if len(all) == 0 {
		return store.QueuedPermit{}
	}
	return all[0]
}

func permitConcurrent(b *fixture) {
	two := store.LimitSettings{Concurrent: 2}
	var asks []*store.PermitRequest
	for _, r := range b.runsNamed(5) {
		asks = append(asks, b.newPermitRequest(r, two))
	}
	if n := b.requestPermits(b.now, asks...); n != 2 {
		b.Errorf("%d of 5 hold a permit of 2", n)
	}
	if n := b.requestPermits(b.afterStart(time.Second), asks[2:]...); n != 0 {
		b.Errorf("%d more hold one while both are held", n)
	}
	for i, a := range asks[2:] {
		if p := b.permitOf(a.Run); p.Status != store.PermitWaiting || p.StepsAhead != i {
			b.Errorf("ask %d: %+v, want it to wait behind %d", i+2, p, i)
		}
	}
	b.returnPermits(b.afterStart(2*time.Second), asks[0])
	if n := b.requestPermits(b.afterStart(3*time.Second), asks[4], asks[3], asks[2]); n != 1 || asks[2].Outcome != store.Written {
		b.Errorf("%d of the waiting got the free permit, the first: %v", n, asks[2].Outcome)
	}
}

func permitUnits(b *fixture) {
	five := store.LimitSettings{Concurrent: 5}
	runs := b.runsNamed(4)
	many, few, one, most := b.newPermitRequest(runs[0], five), b.newPermitRequest(runs[1], five), b.newPermitRequest(runs[2], five), b.newPermitRequest(runs[3], five)
	few.Units, many.Units, most.Units = 3, 4, 90
	if n := b.requestPermits(b.now, few); n != 1 {
		b.Fatal("3 of 5 units were not granted")
	}
	b.requestPermits(b.afterStart(1), many)
	b.requestPermits(b.afterStart(2), one)
	b.wantPermitOutcome("4 of 2 free units", many, store.Locked)
	b.wantPermitOutcome("1 unit behind them", one, store.Locked)
	b.returnPermits(b.afterStart(3), few)
	b.requestPermits(b.afterStart(4), many, one)
	b.wantPermitOutcome("4 units of 5", many, store.Written)
	b.wantPermitOutcome("the last one", one, store.Written)
	b.returnPermits(b.afterStart(5), many, one)
	b.requestPermits(b.afterStart(6), most)
	b.wantPermitOutcome("more units than there are: all of them", most, store.Written)
}

func permitOrder(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(5)
	var asks []*store.PermitRequest
	for i, r := range runs {
		a := b.newPermitRequest(r, one)
		a.Priority = []int16{0, 0, 0, 1, -1}[i]
		b.requestPermits(b.afterStart(time.Duration(i)), a)
		asks = append(asks, a)
	}
	for _, want := range []int{0, 3, 1, 2, 4} {
		b.requestPermits(b.afterStart(time.Second), asks...)
		for i, a := range asks {
			if held := a.Outcome == store.Written; held != (i == want) {
				b.Errorf("step %d holds the permit: %v, want only step %d", i, held, want)
			}
		}
		b.returnPermits(b.afterStart(time.Second), asks[want])
		asks[want].Attempt++ // asks anew, at the end of the line
		asks[want].Priority = -2
	}
}

func permitRate(b *fixture) {
	rate := store.LimitSettings{Rate: 10, Period: time.Second, Burst: 3}
	at, granted := b.now, []time.Time(nil)
	runs := b.runsNamed(40)
	var left []*store.PermitRequest
	for _, r := range runs {
		left = append(left, b.newPermitRequest(r, rate))
	}
	for len(left) > 0 {
		b.requestPermits(at, left...)
		next := time.Time{}
		left = slices.DeleteFunc(left, func(a *store.PermitRequest) bool {
			if a.Outcome == store.Written {
				granted = append(granted, a.GrantedAt)
				return true
			}
			if a.RetryAt.IsZero() || !a.RetryAt.After(at) {
				b.Fatalf("at %v a step that waits is to ask again at %v", at.Sub(b.now), a.RetryAt)
			}
			if next.IsZero() || a.RetryAt.Before(next) {
				next = a.RetryAt
			}
			return false
		})
		at = next
	}
	if took := granted[len(granted)-1].Sub(granted[0]); took != 3700*time.Millisecond {
		b.Errorf("40 grants of a rate of 10 a second and a burst of 3 took %v, want 3.7s: the first three at once", took)
	}
	for i, from := range granted {
		for j := i; j < len(granted); j++ {
			window := granted[j].Sub(from)
			if most := 3 + int(window*10/time.Second); j-i+1 > most {
				b.Fatalf("%d grants within %v, want at most %d", j-i+1, window, most)
			}
		}
	}
}

func permitKeys(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(4)
	var asks []*store.PermitRequest
	for i, r := range runs {
		a := b.newPermitRequest(r, one)
		a.Key = []string{"", "a", "b", "a"}[i]
		asks = append(asks, a)
	}
	if n := b.requestPermits(b.now, asks...); n != 3 || asks[3].Outcome != store.Locked {
		b.Errorf("%d permits of three keys with one each, and the second of one key: %v", n, asks[3].Outcome)
	}
}

func permitLease(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, next, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.now, holder, next, last)
	lease := runs[0].WakeAt
	b.requestPermits(lease.Add(-1), next)
	b.wantPermitOutcome("before the lease of the holder ends", next, store.Locked)
	b.renew(b.heartbeat(store.Lease{Run: runs[1].UUID, Epoch: runs[1].Epoch}, store.Lease{Run: runs[2].UUID, Epoch: runs[2].Epoch}))
	b.requestPermits(lease.Add(time.Microsecond), next)
	b.wantPermitOutcome("after the lease of the holder", next, store.Written)
	b.commitOwnershipEnd(b.newCompletion(runs[1].UUID, runs[1].Epoch))
	b.requestPermits(lease.Add(time.Microsecond), last)
	b.wantPermitOutcome("after the end of the holder", last, store.Written)
}

func permitOffer(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, here, parked := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.now, holder, here)
	b.requestPermits(b.afterStart(1), parked)
	b.commitOwnershipEnd(b.park(runs[2], time.Time{}))
	b.returnPermits(b.afterStart(time.Second), holder)
	if p := b.permitOf(here.Run); p.Status != store.PermitOffered {
		b.Errorf("the first in line: %+v, want an offer", p)
	}
	b.wantOwnedRunChanges("the run in memory", b.ownedRunChanges(b.worker, runs[1].UUID), nil, runs[1].UUID)
	if n := b.requestPermits(b.afterStart(time.Second), holder); n != 0 {
		b.Error("somebody else got what is offered")
	}
	b.returnPermits(b.afterStart(time.Second), holder) // leaves the line
	b.requestPermits(b.afterStart(2*time.Second), here)
	b.wantPermitOutcome("the offered one", here, store.Written)
	b.returnPermits(b.afterStart(3*time.Second), here)
	if p := b.permitOf(parked.Run); p.Status != store.PermitOffered {
		b.Errorf("the next in line: %+v, want an offer", p)
	}
	b.claimOne(b.query(b.afterStart(3*time.Second)), runs[2].UUID)
}

func permitMissed(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, slow, next := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.now, holder)
	b.requestPermits(b.afterStart(1), slow)
	b.requestPermits(b.afterStart(2), next)
	b.returnPermits(b.afterStart(3), holder)
	b.permits(&store.PermitBatch{Now: b.afterStart(time.Minute), LimitKeys: []store.LimitKey{{Limit: "l"}}})
	if p := b.permitOf(slow.Run); p.Status != store.PermitWaiting || p.StepsAhead != 0 {
		b.Errorf("who missed its offer: %+v, want it to keep its place", p)
	}
	if p := b.permitOf(next.Run); p.Status != store.PermitOffered {
		b.Errorf("the next: %+v, want the offer", p)
	}
	b.requestPermits(b.afterStart(time.Minute), next)
	b.wantPermitOutcome("the next", next, store.Written)
	b.returnPermits(b.afterStart(time.Minute), next)
	next.Attempt++
	b.requestPermits(b.afterStart(2*time.Minute), next, slow)
	b.wantPermitOutcome("who kept its place", slow, store.Written)
	b.wantPermitOutcome("who asks after it", next, store.Locked)
}

func permitPaused(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(4)
	holder, paused, ended, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[1], one), b.newPermitRequest(runs[2], one), b.newPermitRequest(runs[3], one)
	for i, a := range []*store.PermitRequest{holder, paused, ended, last} {
		b.requestPermits(b.afterStart(time.Duration(i)), a)
	}
	b.controlExistingRuns(store.VerbPause, runs[1].UUID)
	b.commitOwnershipEnd(b.park(runs[1], time.Time{}))
	b.commitOwnershipEnd(b.newCompletion(runs[2].UUID, runs[2].Epoch))
	b.returnPermits(b.afterStart(time.Second), holder)
	if p := b.permitOf(last.Run); p.Status != store.PermitOffered {
		b.Errorf("behind a paused and an ended run: %+v, want the offer", p)
	}
	for i, r := range runs[1:3] {
		if p := b.permitOf(r.UUID); p.Status != 0 {
			b.Errorf("run %d has still a place: %+v", i+1, p)
		}
	}
}

func permitRepeated(b *fixture) {
	both := store.LimitSettings{Concurrent: 2, Rate: 1, Period: time.Hour, Burst: 2}
	r := b.commitRunningRun("run")
	a := b.newPermitRequest(r, both)
	for i := range 3 {
		b.requestPermits(b.afterStart(time.Duration(i)*time.Second), a)
		b.wantPermitOutcome("the same ask again", a, store.Written)
		if !a.GrantedAt.Equal(b.now) {
			b.Errorf("ask %d was granted at %v, want the first time again", i, a.GrantedAt)
		}
	}
	a.Attempt++
	b.requestPermits(b.afterStart(time.Minute), a)
	b.wantPermitOutcome("the next attempt", a, store.Written)
	if !a.GrantedAt.Equal(b.afterStart(time.Minute)) {
		b.Errorf("the next attempt was granted at %v, want a grant of its own", a.GrantedAt)
	}
	a.Attempt++
	b.requestPermits(b.afterStart(2*time.Minute), a)
	b.wantPermitOutcome("a third, beyond the rate", a, store.Locked)
}

func permitFenced(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	r := b.commitRunningRun("run")
	first := b.newPermitRequest(r, one)
	b.requestPermits(b.now, first)
	again := b.claimOne(b.query(r.WakeAt), r.UUID).Run
	next := b.newPermitRequest(again, one)
	b.requestPermits(r.WakeAt, next)
	b.wantPermitOutcome("the new owner", next, store.Written)
	b.returnPermits(r.WakeAt, first)
	b.requestPermits(r.WakeAt, first)
	b.wantPermitOutcome("the former owner", first, store.Fenced)
	if first.RunState.Epoch != again.Epoch {
		b.Errorf("the former owner is told %+v", first.RunState)
	}
	third := b.newPermitRequest(b.commitRunningRun("other"), one)
	b.requestPermits(r.WakeAt, third)
	b.wantPermitOutcome("another run, while the new owner holds it", third, store.Locked)
	nobody := b.newPermitRequest(store.Run{UUID: store.NewUUID(0), Epoch: epochAt(1)}, one)
	b.requestPermits(r.WakeAt, nobody)
	b.wantPermitOutcome("no run", nobody, store.Fenced)
}

func permitManyMissed(b *fixture) {
	const n = store.MaxPermitsRead + 1
	settings := store.LimitSettings{Concurrent: n}
	runs := b.runsNamed(n + 2)
	all := make([]*store.PermitRequest, len(runs))
	for i, r := range runs {
		all[i] = b.newPermitRequest(r, settings)
	}
	holder, last := all[n], all[n+1]
	holder.Units = n
	b.requestPermits(b.now, holder)
	b.requestPermits(b.now, all[:n]...)
	b.returnPermits(b.now, holder)
	now := b.now
	for range 3 { // all are offered a permit, and none takes it
		now = now.Add(3 * time.Second)
		b.permits(&store.PermitBatch{Now: now, LimitKeys: []store.LimitKey{{Limit: "l"}}})
	}
	b.requestPermits(now, last)
	b.wantPermitOutcome("a step behind those that missed their offers", last, store.Written)
	b.requestPermits(now, all[0])
	b.wantPermitOutcome("a step that missed its offer", all[0], store.Written)
}
