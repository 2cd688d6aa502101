package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var leases = []test{
	{"a renewal extends what is held and names what is lost", leaseRenew},
	{"many in any order", leaseMany},
	{"a heartbeat registers the worker", leaseWorkers},
	{"a worker is made quiet and resumed", leaseQuiet},
	{"the pulse is the database's clock", leasePulse},
}

func (b *fixture) heartbeat(leases ...store.Lease) store.Heartbeat {
	return store.Heartbeat{
		Worker: store.Worker{ID: b.worker, Name: "host-1", Version: "v1", Capacity: 100, ActiveRuns: int32(len(leases)), StartedAt: b.now},
		Leases: leases, LeaseUntil: b.afterStart(9 * time.Hour),
	}
}

func leaseRenew(b *fixture) {
	held, finished, parked := b.commitRunningRun("held"), b.commitRunningRun("finished"), b.commitRunningRun("parked")
	b.commitOwnershipEnd(b.newCompletion(finished.UUID, epochAt(1)))
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: parked.UUID, Epoch: epochAt(1), Status: store.Waiting, WakeAt: b.afterStart(2 * time.Hour)})
	stolen := b.newRunningRun("stolen")
	stolen.WakeAt = b.now
	b.commitStart(stolen)
	b.claimOne(b.query(b.now), stolen.UUID)
	foreign := b.newRunningRun("foreign")
	foreign.Owner = owner(uuid.New())
	b.commitStart(foreign)
	before := []store.Run{b.row(finished.UUID), b.row(parked.UUID), b.row(stolen.UUID), b.row(foreign.UUID)}
	lost := []uuid.UUID{finished.UUID, parked.UUID, stolen.UUID, foreign.UUID, uuid.New()}

	h := b.heartbeat(store.Lease{Run: held.UUID, Epoch: epochAt(1)})
	for _, id := range lost {
		h.Leases = append(h.Leases, store.Lease{Run: id, Epoch: epochAt(1)})
	}
	pulse := b.renew(h)
	wantUUIDs(b, "lost", pulse.LostRuns, lost)
	held.WakeAt = h.LeaseUntil
	wantRun(b, "the run held", b.row(held.UUID), held)
	for _, r := range before {
		wantRun(b, "the run lost, "+r.Name, b.row(r.UUID), r)
	}
	if got := b.renew(b.heartbeat(store.Lease{Run: held.UUID, Epoch: epochAt(2)})); !slices.Equal(got.LostRuns, []uuid.UUID{held.UUID}) {
		b.Errorf("a lease of an epoch that is not there yet: lost %v, want it lost", got.LostRuns)
	}
}

func leaseMany(b *fixture) {
	batch := &store.Batch{}
	for range 300 {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newRunningRun("")})
	}
	b.commit(batch)
	h := b.heartbeat()
	var lost []uuid.UUID
	for i, w := range batch.Starts {
		lease := store.Lease{Run: w.Run.UUID, Epoch: epochAt(1)}
		if i%3 == 0 {
			lease.Epoch, lost = epochAt(2), append(lost, w.Run.UUID)
		}
		h.Leases = append(h.Leases, lease)
	}
	slices.Reverse(h.Leases)
	wantUUIDs(b, "lost", b.renew(h).LostRuns, lost)
	for i, w := range batch.Starts {
		if i%3 > 0 {
			w.Run.WakeAt = h.LeaseUntil
		}
		wantRun(b, "the run", b.row(w.Run.UUID), w.Run)
	}
}

func leaseWorkers(b *fixture) {
	if got := b.workers(); len(got) != 0 {
		b.Errorf("an empty database has workers: %v", got)
	}
	var want []store.Worker
	for i, name := range []string{"third", "first", "it's the second; \U0001F680"} {
		w := store.Worker{ID: uuid.New(), Name: name, Version: "v1", Capacity: 7, ActiveRuns: int32(i), StartedAt: b.afterStart(-time.Duration([]int{1, 3, 2}[i]) * time.Hour), SchemaVersion: int16(i), ClockAhead: time.Duration(i-1) * 90 * time.Second}
		w.HeartbeatAt = b.renew(store.Heartbeat{Worker: w, LeaseUntil: b.afterStart(time.Hour)}).Now
		w.DeadAt = b.afterStart(time.Hour)
		want = append(want, w)
	}
	want[0].ActiveRuns, want[0].Capacity, want[0].SchemaVersion, want[0].DeadAt, want[0].ClockAhead = 5, 8, store.SchemaVersion, b.afterStart(2*time.Hour), 7*time.Microsecond
	want[0].HeartbeatAt = b.renew(store.Heartbeat{Worker: want[0], LeaseUntil: b.afterStart(2 * time.Hour)}).Now
	want = []store.Worker{want[1], want[2], want[0]}
	got := b.workers()
	if len(got) != len(want) {
		b.Fatalf("got %d workers, want %d", len(got), len(want))
	}
	for i := range got {
		// The statement that reads the time of the heartbeat may be another one than the statement
		// that writes the row.
		if apart := got[i].HeartbeatAt.Sub(want[i].HeartbeatAt).Abs(); apart < time.Minute {
			got[i].HeartbeatAt = want[i].HeartbeatAt
		}
		wantFields(b, "worker, oldest first: "+want[i].Name, got[i], want[i])
	}
}

func leaseQuiet(b *fixture) {
	h := b.heartbeat()
	b.renew(h)
	change := func(by string, resume, found bool) {
		b.Helper()
		c := store.SetWorkerQuietRequest{Worker: b.worker, Resume: resume, Now: b.now, Actor: by, Reason: "it's why"}
		for range 2 { // its reply may be lost
			if got, err := b.store.SetWorkerQuiet(b.ctx, c); err != nil || got != found {
				b.Errorf("SetWorkerQuiet by %s: %v, %v, want %v", by, got, err, found)
			}
		}
	}
	check := func(what string, r store.RenewResult, quiet bool, last store.OperatorChange) {
		b.Helper()
		w := b.workers()[0]
		if r.Quiet != quiet || w.Quiet != quiet || r.LastChange == nil || *r.LastChange != last || w.LastChange == nil || *w.LastChange != last {
			b.Errorf("%s: the heartbeat returned %v by %+v, the registry %v by %+v, want %v by %+v", what, r.Quiet, r.LastChange, w.Quiet, w.LastChange, quiet, last)
		}
	}
	if r := b.renew(h); r.Quiet || r.LastChange != nil || b.workers()[0].Quiet {
		b.Errorf("a new worker is %+v", r)
	}
	change("ann", false, true)
	change("bob", false, true) // changes nothing
	quiet := store.OperatorChange{Verb: store.OperatorQuiet, At: b.now, By: "ann", Reason: "it's why"}
	check("quiet", b.renew(h), true, quiet)
	if got, err := b.store.HaveLiveWorkers(b.ctx, []store.QueueWorkflow{{Queue: "q", Workflow: "w"}}); err != nil || got[0] {
		b.Errorf("AreExecuted with a quiet worker: %v, %v", got, err)
	}
	change("bob", true, true)
	resumed := store.OperatorChange{Verb: store.OperatorResume, At: b.now, By: "bob", Reason: "it's why"}
	check("resumed", b.renew(h), false, resumed)
	own := b.query(b.now)
	own.Worker = b.worker
	if _, err := b.store.EndLeases(b.ctx, []uuid.UUID{b.worker}, own); err != nil {
		b.Fatal(err)
	}
	change("eve", false, false) // it is not registered
	h.Worker.Quiet, h.Worker.LastChange = true, &quiet
	check("registered again", b.renew(h), true, quiet)
	h.Worker.Quiet, h.Worker.LastChange = false, nil
	check("registered already", b.renew(h), true, quiet)
}

func leasePulse(b *fixture) {
	for range 3 {
		before := b.clock()
		pulse := b.renew(b.heartbeat())
		after := b.clock()
		const tick = time.Microsecond // times are rounded to microseconds
		if pulse.Now.Before(before.Add(-tick)) || pulse.Now.After(after.Add(tick)) {
			b.Errorf("the pulse says %s, want it between %s and %s, the clock before and after", show(pulse.Now), show(before), show(after))
		}
	}
}

// wantUUIDs compares two sets of UUIDs.
func wantUUIDs(b *fixture, what string, got, want []uuid.UUID) {
	b.Helper()
	order := func(l, r uuid.UUID) int { return slices.Compare(l[:], r[:]) }
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		b.Errorf("%s: got %v, want %v", what, got, want)
	}
}
