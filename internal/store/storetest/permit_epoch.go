package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// parkInLine lets steps of the run wait in line behind the holder, and the run leave memory.
func (b *fixture) parkInLine(r store.Run, settings store.LimitSettings, steps int) (asks []*store.PermitRequest) {
	b.Helper()
	for i := range steps {
		a := b.newPermitRequest(r, settings)
		a.Step = fmt.Sprint("step", i)
		asks = append(asks, a)
	}
	if n := b.requestPermits(b.afterStart(time.Millisecond), asks...); n != 0 {
		b.Fatalf("%d steps got permits, want all to wait", n)
	}
	b.commitOwnershipEnd(b.park(r, time.Time{}))
	return asks
}

// recheckWhileDue checks the line of limit "l" as a worker does: again as long as the store wants it.
func (b *fixture) recheckWhileDue(at time.Time) {
	b.Helper()
	for range 100 {
		batch := &store.PermitBatch{Now: at, LimitKeys: []store.LimitKey{{Limit: "l"}}}
		b.permits(batch)
		if next, again := batch.RecheckAt[batch.LimitKeys[0]]; !again || next.After(at) {
			return
		}
	}
	b.Fatal("the store wants the line to be checked for ever")
}

// permitCancelled cancels a run whose steps wait in line. Its next execution compensates and does not reach these steps, so they
// get no offers.
func permitCancelled(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, other := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.now, holder)
	b.parkInLine(runs[1], one, 3)
	b.controlExistingRuns(store.VerbCancel, runs[1].UUID)
	again := b.claimOne(b.query(b.afterStart(time.Minute)), runs[1].UUID).Run
	b.returnPermits(b.afterStart(time.Second), holder)
	b.requestPermits(b.afterStart(2*time.Second), other)
	b.wantPermitOutcome("a step behind those that a cancelled run no longer executes", other, store.Written)
	b.returnPermits(b.afterStart(3*time.Second), other)
	undo := b.newPermitRequest(again, one)
	undo.Step = "undo"
	b.requestPermits(b.afterStart(4*time.Second), undo)
	b.wantPermitOutcome("the compensation of the cancelled run", undo, store.Written)
	b.returnPermits(b.afterStart(5*time.Second), undo)
	b.commitOwnershipEnd(b.park(again, time.Time{}))
	b.requestPermits(b.afterStart(6*time.Second), other)
	b.wantPermitOutcome("a step, after the cancelled run was unloaded", other, store.Written)
}

// permitNextExecution wakes a run whose step waits in line. The next execution requests the permit for the old place, and gets offers
// again.
func permitNextExecution(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(3)
	holder, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[2], one)
	b.requestPermits(b.now, holder)
	first := b.parkInLine(runs[1], one, 1)[0]
	b.requestPermits(b.afterStart(time.Second), last)
	b.commitNewSignal(runs[1].UUID, "go", 2)
	again := b.claimOne(b.query(b.afterStart(3*time.Second)), runs[1].UUID).Run
	b.permits(&store.PermitBatch{Now: b.afterStart(3 * time.Second), LimitKeys: []store.LimitKey{{Limit: "l"}}})
	a := b.newPermitRequest(again, one)
	a.Step = first.Step
	b.requestPermits(b.afterStart(4*time.Second), a)
	if !a.ArrivedAt.Equal(first.ArrivedAt) {
		b.Errorf("the place of the next execution is that of %v, want %v", a.ArrivedAt.Sub(b.now), first.ArrivedAt.Sub(b.now))
	}
	b.commitOwnershipEnd(b.park(again, time.Time{}))
	b.returnPermits(b.afterStart(5*time.Second), holder)
	if p := b.permitOf(again.UUID); p.Status != store.PermitOffered {
		b.Errorf("the step of the next execution: %+v, want the offer", p)
	}
}

// permitManyUnclaimed lets the line begin with more steps than are read at once, of cancelled runs that no worker claims.
func permitManyUnclaimed(b *fixture) {
	one := store.LimitSettings{Concurrent: 1}
	runs := b.runsNamed(2*store.MaxPermitsRead + 2)
	holder, last := b.newPermitRequest(runs[0], one), b.newPermitRequest(runs[len(runs)-1], one)
	b.requestPermits(b.now, holder)
	var ids []uuid.UUID
	for _, r := range runs[1 : len(runs)-1] {
		b.parkInLine(r, one, 1)
		ids = append(ids, r.UUID)
	}
	b.controlExistingRuns(store.VerbCancel, ids...)
	b.returnPermits(b.afterStart(time.Second), holder)
	b.requestPermits(b.afterStart(2*time.Second), last)
	b.recheckWhileDue(b.afterStart(2 * time.Second))
	if last.Outcome != store.Written {
		b.requestPermits(b.afterStart(2*time.Second), last)
	}
	b.wantPermitOutcome("a step behind those of runs that nobody executes", last, store.Written)
	for _, r := range runs[1:3] {
		if p := b.permitOf(r.UUID); p.Status != store.PermitWaiting {
			b.Errorf("a run that nobody executes: %+v, want it to keep its place", p)
		}
	}
}
