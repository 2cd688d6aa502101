package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// repairRounds is how often each race of a repair is run.
const repairRounds = 8

func repairFence(b *fixture) {
	for _, status := range []store.Status{store.Running, store.Waiting, store.Pending, store.Paused} {
		r := b.commitRunningRun("")
		b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, "begun"), false)
		switch status {
		case store.Waiting:
			b.commitOwnershipEnd(b.park(r, b.afterStart(time.Hour)))
		case store.Pending:
			b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.afterStart(time.Hour)})
		case store.Paused:
			b.controlExistingRuns(store.VerbPause, r.UUID)
			b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
		}
		f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(b.row(r.UUID)), Reason: "a repair", Actor: "ada"}
		for range 2 {
			wantOutcome(b, "the fence of a run that is "+status.String(), b.fence(f), store.Written)
			got := b.row(r.UUID)
			if got.Status != store.Paused || got.Epoch != f.EpochAfterFence() || got.Control&store.PausedItself == 0 || got.Owner.Valid || !got.WakeAt.IsZero() {
				b.Errorf("it was %v, and is %+v", status, got)
			}
		}
		wantOutcome(b, "the owner's step", b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
		wantOutcome(b, "the owner's end", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
		b.wantRepaired(b.repairOf(b.row(r.UUID), 1, "begun"))
		if g := b.generations(r.UUID); len(g) != 1 || g[0].Run.Status != store.Superseded || !g[0].Run.EndedAt.IsZero() {
			b.Errorf("the generation that had not ended is %+v", g)
		}
	}
}

// repairFenceOfAHeldRun fences a run that is held for drift: it stays held, with its reason, and is not paused on top of that.
func repairFenceOfAHeldRun(b *fixture) {
	r := b.commitRunningRun("")
	b.holdForDrift(r.UUID, epochAt(1), "v2")
	held := b.row(r.UUID)
	f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(held), Reason: "a repair", Actor: "ada"}
	wantOutcome(b, "the fence of a held run", b.fence(f), store.Written)
	got := b.row(r.UUID)
	if got.Status != store.Paused || got.Epoch != f.EpochAfterFence() || got.Control != held.Control || got.Control != f.ControlAfterFence() || got.PauseOrHoldReason != held.PauseOrHoldReason || got.PausedBy != held.PausedBy {
		b.Errorf("it was %+v, and is %+v", held, got)
	}
}

func repairFenceOutdated(b *fixture) {
	r := b.commitRunningRun("")
	f := &store.FenceRequest{Run: r.UUID, StateBefore: store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)}}
	wantOutcome(b, "another epoch", b.fence(f), store.Fenced)
	wantState(b, "another epoch", f.RunState, stateOf(r))
	wantOutcome(b, "the owner's step", b.commitStep(b.completed(r.UUID, epochAt(1), "in time"), false).Outcome, store.Written)
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	f = &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(r)}
	wantOutcome(b, "a run that has ended since", b.fence(f), store.Fenced)
	f = &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(b.row(r.UUID))}
	wantOutcome(b, "a run that has ended", b.fence(f), store.Written)
	if got := b.row(r.UUID); got.Status != store.Completed || got.Epoch != epochAt(1) {
		b.Errorf("the fence changed a run that has ended: %+v", got)
	}
	f = &store.FenceRequest{Run: uuid.New(), StateBefore: stateOf(r)}
	wantOutcome(b, "a run that is not", b.fence(f), store.Fenced)
}

func repairLateOwner(b *fixture) {
	r := b.failedRun("first")
	b.wantRepaired(b.repairOf(r, 1, "first"))
	wantOutcome(b, "a step", b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "an update", b.commitStep(b.completed(r.UUID, epochAt(1), "first"), true).Outcome, store.Fenced)
	wantOutcome(b, "an end", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
	b.wantNames("after late writes", b.history(r.UUID), "first")
}

func repairChildren(b *fixture) {
	parent := b.commitRunningRun("")
	kept, dropped, live, detached := b.childOf(parent, "kept"), b.childOf(parent, "dropped"), b.childOf(parent, "live"), b.childOf(parent, "detached")
	b.commitOwnershipEnd(b.newCompletion(kept.UUID, epochAt(1)))
	b.commitOwnershipEnd(b.newCompletion(dropped.UUID, epochAt(1)))
	b.failRun(parent)
	p := b.repairOf(b.row(parent.UUID), 1)
	p.Runs[0].DetachedChildren = []uuid.UUID{dropped.UUID, live.UUID, detached.UUID}
	p.CancelRequest = &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{live.UUID}, Now: b.afterStart(time.Hour), Reason: "superseded"}
	b.wantRepaired(p)
	archive := p.Runs[0].ArchiveID()
	for _, c := range []struct {
		run    store.Run
		parent uuid.UUID
		asked  store.ControlBits
	}{{kept, parent.UUID, 0}, {dropped, archive, 0}, {live, archive, store.CancelRequested}, {detached, archive, 0}} {
		if got := b.row(c.run.UUID); got.Parent.UUID != c.parent || got.Control != c.asked {
			b.Errorf("child %q has parent %s and control %d", c.run.Name, got.Parent.UUID, got.Control)
		}
	}
	// What goes on without its parent's row.
	wantOutcome(b, "a step of the detached child", b.commitStep(b.completed(detached.UUID, epochAt(1), "on"), false).Outcome, store.Written)
	end := b.newCompletion(detached.UUID, epochAt(1))
	end.ParentToWake = uuid.NullUUID{UUID: archive, Valid: true}
	wantOutcome(b, "its end", b.commitOwnershipEnd(end).Outcome, store.Written)
	b.controlExistingRuns(store.VerbTerminate, live.UUID)
	if got := b.row(live.UUID); got.Status != store.Cancelled {
		b.Errorf("the cancelled child is %v", got.Status)
	}
	// The call starts another child of the same name.
	c := b.claimOne(b.query(b.afterStart(time.Hour)), parent.UUID)
	again := b.newRunningRun("live")
	again.UUID, again.Name = store.NewChildUUID(parent.UUID), live.Name
	again.Parent = uuid.NullUUID{UUID: parent.UUID, Valid: true}
	w := &store.StartWrite{Run: again, ParentEpoch: c.Run.Epoch}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	wantOutcome(b, "another child of the name", w.Outcome, store.Written)
}

// childOf commits a running child of a run of the first epoch.
func (b *fixture) childOf(parent store.Run, name string) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	r.UUID, r.Name = store.NewChildUUID(parent.UUID), name
	r.Parent = uuid.NullUUID{UUID: parent.UUID, Valid: true}
	w := &store.StartWrite{Run: r, ParentEpoch: epochAt(1)}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	wantOutcome(b, "the start of child "+name, w.Outcome, store.Written)
	return r
}

func repairTree(b *fixture) {
	parent := b.commitRunningRun("")
	child := b.childOf(parent, "kid")
	b.commitStep(b.completed(child.UUID, epochAt(1), "first"), false)
	b.failRun(child)
	b.failRun(parent)
	p := b.repairOf(b.row(parent.UUID), 1)
	p.Runs = append(p.Runs, b.repairOf(b.row(child.UUID), 1, "first").Runs[0])
	stale := *p
	stale.Runs = append([]store.RunRepair(nil), p.Runs...)
	stale.Runs[1].StateBefore.Epoch.Count++
	stale.RequestID = uuid.New()
	wantOutcome(b, "with another child", b.repair(&stale), store.Fenced)
	if got := b.row(parent.UUID); got.Status != store.Failed {
		b.Errorf("half of a repair was made: the parent is %v", got.Status)
	}
	b.wantRepaired(p)
	got := b.claim(b.query(b.afterStart(time.Hour)))
	if len(got.Runs) != 2 {
		b.Fatalf("claimed %v", describeClaims(got.Runs))
	}
	if row := b.row(child.UUID); row.Parent.UUID != parent.UUID {
		b.Errorf("the child has the parent %v", row.Parent)
	}
	end := b.newCompletion(child.UUID, epochAt(3))
	end.ParentToWake = uuid.NullUUID{UUID: parent.UUID, Valid: true}
	wantOutcome(b, "the child's end", b.commitOwnershipEnd(end).Outcome, store.Written)
}

func repairSignals(b *fixture) {
	r := b.commitRunningRun("")
	if ok, err := b.store.SetTags(b.ctx, r.UUID, []store.Tag{{Key: "team", Value: "a"}}, store.Epoch{}, store.ActorAndReason{}); err != nil || !ok {
		b.Fatal(ok, err)
	}
	send := func(name, key string) *store.SignalWrite {
		w := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: name, Key: key, Payload: []byte(`"` + key + `"`), CreatedAt: b.now}
		b.commit(&store.Batch{Signals: []*store.SignalWrite{w}})
		return w
	}
	receive := func(name string, epoch store.Epoch) *store.ReceiveWrite {
		w := &store.ReceiveWrite{Signal: name, Step: store.Step{Run: r.UUID, Name: "get " + name, Kind: store.KindReceive, Status: store.StepStarted, Attempt: 1, Epoch: epoch, StartedAt: b.now}}
		b.commit(&store.Batch{Receives: []*store.ReceiveWrite{w}})
		return w
	}
	for _, name := range []string{"kept", "dropped", "waiting"} {
		wantOutcome(b, name, send(name, name).Outcome, store.Written)
	}
	for _, name := range []string{"kept", "dropped"} {
		if w := receive(name, epochAt(1)); w.RecordedStep == nil || w.RecordedStep.Status != store.StepCompleted {
			b.Fatalf("receive %q: %+v", name, w)
		}
	}
	b.failRun(r)
	p := b.repairOf(b.row(r.UUID), 1, "get kept")
	p.Runs[0].ReleasedReceivers = []string{"get dropped"}
	b.wantRepaired(p)
	unreceived, err := b.store.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
	if err != nil || len(unreceived) != 2 || unreceived[0].Name != "dropped" || unreceived[1].Name != "waiting" {
		b.Fatalf("unreceived: %+v, %v", unreceived, err)
	}
	if w := send("kept", "kept"); w.Outcome != store.AlreadyRecorded {
		b.Errorf("a repeated signal has the outcome %d", w.Outcome)
	}
	c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
	for _, name := range []string{"dropped", "waiting"} {
		if w := receive(name, c.Run.Epoch); w.RecordedStep == nil || string(w.RecordedStep.Output) != `"`+name+`"` {
			b.Errorf("receive %q in the next generation: %+v", name, w.RecordedStep)
		}
	}
	o, err := b.store.RunProgress(b.ctx, r.UUID, b.now)
	if err != nil || len(o.Tags) != 1 {
		b.Errorf("tags: %+v, %v", o.Tags, err)
	}
}

func raceRepairs(b *fixture, other store.Store) {
	for range repairRounds {
		r := b.failedRun("first")
		one, two := b.repairOf(r, 1, "first"), b.repairOf(r, 1)
		concurrently(func() { b.repair(one) }, func() { b.through(other).repair(two) })
		made := 0
		for _, p := range []*store.RepairRequest{one, two} {
			if p.Outcome == store.Written {
				made++
				b.wantNames("of the repair that was made", b.history(r.UUID), p.Runs[0].KeptSteps...)
			}
		}
		if n := len(b.generations(r.UUID)); made != 1 || n != 1 {
			b.Fatalf("%d repairs were made, %d generations", made, n)
		}
	}
}

func raceRepairClaim(b *fixture, other store.Store) {
	r := b.failedRun("first")
	for number := range int32(repairRounds) {
		p := b.repairOf(r, number+1, "first")
		q := b.query(b.afterStart(time.Hour))
		var got store.ClaimResult
		concurrently(func() { b.wantRepaired(p) }, func() { got = b.through(other).claim(q) })
		if len(got.Runs) == 0 {
			got = b.claim(q)
		}
		if len(got.Runs) != 1 || got.Runs[0].Run.Epoch.Count != r.Epoch.Count+2 {
			b.Fatalf("claimed %+v", got.Runs)
		}
		b.wantNames("claimed", got.Runs[0].History, "first")
		b.commitOwnershipEnd(b.newCompletion(r.UUID, got.Runs[0].Run.Epoch))
		r = b.row(r.UUID)
	}
}

func raceRepairCancel(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.failedRun("first")
		p := b.repairOf(r, 1, "first")
		o := &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{r.UUID}, Now: b.afterStart(time.Hour)}
		concurrently(func() { b.wantRepaired(p) }, func() {
			if err := other.ControlRuns(b.ctx, o); err != nil {
				b.Errorf("Control: %v", err)
			}
		})
		got := b.row(r.UUID)
		if refused := o.Results[0].Status == store.Failed; refused != (got.Control&store.CancelRequested == 0) {
			b.Fatalf("round %d: the cancel found %v, and the run is %v with control %d", round, o.Results[0].Status, got.Status, got.Control)
		}
		c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
		end := b.newCompletion(r.UUID, c.Run.Epoch)
		end.Status = store.Cancelled
		b.commitOwnershipEnd(end)
	}
}

func raceRepairSignals(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.commitRunningRun("")
		f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(r)}
		var sent atomic.Int32
		concurrently(func() {
			wantOutcome(b, "the fence", b.fence(f), store.Written)
			b.wantRepaired(b.repairOf(b.row(r.UUID), 1))
		}, func() {
			for i := range 10 {
				w := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "n", Key: fmt.Sprint(i), CreatedAt: b.now}
				for w.Outcome == 0 || w.Outcome == store.Locked {
					if err := other.Commit(b.ctx, &store.Batch{Signals: []*store.SignalWrite{w}}); err != nil {
						b.Errorf("Commit: %v", err)
						return
					}
				}
				if w.Outcome == store.Written {
					sent.Add(1)
				}
			}
		})
		got, err := b.store.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
		if err != nil || sent.Load() != 10 || len(got) != 1 || got[0].Count != 10 {
			b.Fatalf("round %d: %d sent, and %+v wait, %v", round, sent.Load(), got, err)
		}
	}
}

func raceFenceFinish(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.commitRunningRun("")
		f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(r)}
		end := b.newCompletion(r.UUID, epochAt(1))
		concurrently(func() { b.fence(f) }, func() { end = *b.through(other).commitOwnershipEnd(end) })
		if got := b.row(r.UUID); (f.Outcome == store.Written) != (got.Status == store.Paused) || (end.Outcome == store.Written) != (got.Status == store.Completed) {
			b.Fatalf("round %d: fence %d, end %d, the run is %v", round, f.Outcome, end.Outcome, got.Status)
		}
	}
}

// raceFenceStep: a checkpoint that was acknowledged is in the history that a repair reads after its fence.
func raceFenceStep(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.commitRunningRun("")
		f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(r)}
		var read []store.Step
		var w *store.StepWrite
		concurrently(func() {
			wantOutcome(b, "the fence", b.fence(f), store.Written)
			read = b.history(r.UUID)
			b.wantRepaired(b.repairOf(b.row(r.UUID), 1, namesOf(read)...))
		}, func() { w = b.through(other).commitStep(b.completed(r.UUID, epochAt(1), "under way"), false) })
		if (w.Outcome == store.Written) != (len(read) == 1) {
			b.Fatalf("round %d: the checkpoint has the outcome %d, and the repair read %q", round, w.Outcome, namesOf(read))
		}
		b.wantNames("after the repair", b.history(r.UUID), namesOf(read)...)
	}
}
