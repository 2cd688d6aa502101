package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var continues = []test{
	{"the run goes on with its owner, a new input and an empty history", continueGoesOn},
	{"all children move to the superseded generation", continueChildren},
	{"signals stay, and each shows the generation that received it", continueSignals},
	{"repeated after a lost reply, it changes nothing", continueRepeated},
	{"a run that is to be paused or cancelled does not continue", continueControlled},
	{"the owner of the superseded epoch writes nothing", continueLateOwner},
	{"without an owner, any worker claims it", continueReleased},
	{"against a cancel", func(b *fixture) { raceContinueCancel(b, b.store) }},
	{"against steps and signals", func(b *fixture) { raceContinueWrites(b, b.store) }},
}

// continueOf returns the repair with which a running run continues as new. Its generation has the number.
func (b *fixture) continueOf(r store.Run, number int32) *store.RepairRequest {
	next := r.Epoch.Next(nonce)
	renewal := b.completed(r.UUID, next, "renewal")
	renewal.Kind = store.KindKeyRenewal
	return &store.RepairRequest{
		RequestID: uuid.New(), Verb: "continue", Now: b.afterStart(time.Minute),
		Runs: []store.RunRepair{{
			Run: r.UUID, StateBefore: store.RunState{Found: true, Status: store.Running, Epoch: r.Epoch}, SupersededNumber: number, ContinuesAsNew: true,
			Input: fmt.Appendf(nil, `"input %d"`, number+1), FirstInputHash: fmt.Appendf(nil, "hash %d", number), NewSteps: []store.Step{renewal}, Progress: 1,
			Epoch: next, Status: store.Running, Owner: r.Owner, WakeAt: b.afterStart(time.Minute + 30*time.Second),
		}},
	}
}

func (b *fixture) wantFirstInputHash(run uuid.UUID, want string) {
	b.Helper()
	if got, err := b.store.FirstInputHash(b.ctx, run); err != nil || string(got) != want {
		b.Errorf("the hash of the first input is %q, %v, want %q", got, err, want)
	}
}

func continueGoesOn(b *fixture) {
	r := b.newRunningRun("")
	r.Deadline = b.afterStart(time.Hour)
	wantOutcome(b, "the start", b.commitStart(r).Outcome, store.Written)
	r = b.row(r.UUID)
	b.commitStep(b.completed(r.UUID, r.Epoch, "first"), false)
	b.wantFirstInputHash(r.UUID, "")
	b.wantRepaired(b.continueOf(r, 1))
	b.wantFirstInputHash(r.UUID, "hash 1")
	got := b.row(r.UUID)
	if got.Status != store.Running || got.Epoch != r.Epoch.Next(nonce) || got.Owner != r.Owner || !got.WakeAt.Equal(b.afterStart(time.Minute+30*time.Second)) ||
		!got.Deadline.Equal(r.Deadline) || string(got.Input) != `"input 2"` || got.Name != r.Name || !got.CreatedAt.Equal(r.CreatedAt) {
		b.Errorf("the next generation is %+v", got)
	}
	b.wantNames("the next generation", b.history(r.UUID), "renewal")
	all := b.generations(r.UUID)
	if len(all) != 1 || all[0].Run.Status != store.Superseded || string(all[0].Run.Input) != string(r.Input) || all[0].Verb != "continue" || !all[0].Run.EndedAt.IsZero() {
		b.Fatalf("the generations are %+v", all)
	}
	b.wantNames("the first", b.history(all[0].ArchiveID), "first")
	b.wantEvents(r.Name + " continued")
	wantOutcome(b, "the same step", b.commitStep(b.completed(r.UUID, got.Epoch, "first"), false).Outcome, store.Written)
	b.wantRepaired(b.continueOf(got, 2))
	got = b.row(r.UUID)
	wantOutcome(b, "the end", b.commitOwnershipEnd(b.newCompletion(r.UUID, got.Epoch)).Outcome, store.Written)
	b.wantFirstInputHash(r.UUID, "hash 2")
	if all = b.generations(r.UUID); len(all) != 2 || string(all[1].Run.Input) != `"input 2"` {
		b.Errorf("the generations are %+v", all)
	}
}

func continueChildren(b *fixture) {
	r := b.commitRunningRun("")
	ended, live := b.childOf(r, "ended"), b.childOf(r, "live")
	wantOutcome(b, "the end", b.commitOwnershipEnd(b.childEnd(ended)).Outcome, store.Written)
	p := b.continueOf(b.row(r.UUID), 1)
	b.wantRepaired(p)
	for _, c := range []store.Run{ended, live} {
		if got := b.row(c.UUID); got.Parent.UUID != p.Runs[0].ArchiveID() {
			b.Errorf("child %q has the parent %v", c.Name, got.Parent)
		}
	}
	key := store.GenerationKey{ArchiveID: p.Runs[0].ArchiveID(), Run: r.UUID, Number: 1}
	if found, err := b.store.FindGenerations(b.ctx, []uuid.UUID{r.UUID, key.ArchiveID, live.UUID}); err != nil || !slices.Equal(found, []store.GenerationKey{key}) {
		b.Errorf("the generation of the children: %v, %v", found, err)
	}
	for _, f := range []store.Filter{{Parents: []uuid.UUID{r.UUID}}, {Parents: []uuid.UUID{key.ArchiveID, r.UUID}}, {Parents: []uuid.UUID{r.UUID}, UUIDs: []uuid.UUID{ended.UUID, live.UUID, r.UUID}}} {
		if found, err := b.store.ListRuns(b.ctx, f, uuid.UUID{}, 9); err != nil || len(found) != 2 {
			b.Errorf("the children by %+v: %v, %v", f, found, err)
		}
	}
	for all, want := range map[bool]int{true: 3, false: 1} {
		if tree, err := b.store.RunTree(b.ctx, r.UUID, all); err != nil || len(tree) != want {
			b.Errorf("with all generations %v, the tree has %d runs, %v", all, len(tree), err)
		}
	}
	if counts := b.counts(r.UUID); counts[store.Completed] != 1 || counts[store.Running] != 2 {
		b.Errorf("the tree counts %v", counts)
	}
	again := b.newRunningRun("live")
	again.UUID, again.Name, again.Parent = store.NewChildUUID(r.UUID), live.Name, owner(r.UUID)
	wantOutcome(b, "another child of the name", b.commitChild(again, p.Runs[0].Epoch).Outcome, store.Written)
	wantOutcome(b, "the end of the first", b.commitOwnershipEnd(b.childEnd(live)).Outcome, store.Written)
}

func continueSignals(b *fixture) {
	r := b.row(b.commitRunningRun("").UUID)
	for i := range 4 {
		w := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Key: fmt.Sprint(i), Payload: fmt.Appendf(nil, "%d", i), CreatedAt: b.afterStart(time.Duration(i) * time.Second)}
		b.commit(&store.Batch{Signals: []*store.SignalWrite{w}})
	}
	receive := func(want, receiver string) {
		w := b.receive(r, "next", "order")
		w.Receiver = receiver
		b.wantSignalReceived("generation "+want, b.commitReceive(w), []byte(want))
	}
	next := func(number int32) {
		b.wantRepaired(b.continueOf(r, number))
		r = b.row(r.UUID)
	}
	receive("0", "")
	next(1)
	receive("1", "next of 2")
	next(2)
	receive("2", "next of 3")
	again := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Key: "0", Payload: []byte("0"), CreatedAt: b.now}
	b.commit(&store.Batch{Signals: []*store.SignalWrite{again}})
	wantOutcome(b, "a key of the first generation", again.Outcome, store.AlreadyRecorded)
	// A repair of the newest generation releases its signals only.
	w := b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: r.Epoch, Status: store.Failed, Error: []byte(`{}`), EndedAt: b.afterStart(time.Minute)})
	wantOutcome(b, "the failure", w.Outcome, store.Written)
	p := b.repairOf(b.row(r.UUID), 3)
	p.Runs[0].ReleasedReceivers = []string{"next of 3"}
	b.wantRepaired(p)
	unreceived, err := b.store.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
	if err != nil || len(unreceived) != 1 || unreceived[0].Count != 2 {
		b.Errorf("unreceived: %+v, %v", unreceived, err)
	}
}

func continueRepeated(b *fixture) {
	r := b.row(b.commitRunningRun("").UUID)
	p := b.continueOf(r, 1)
	b.wantRepaired(p)
	b.commitStep(b.completed(r.UUID, p.Runs[0].Epoch, "of the second"), false)
	before := fmt.Sprintf("%+v", b.row(r.UUID))
	b.wantRepaired(p)
	if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
		b.Errorf("the repeated write changed\n%s to\n%s", before, after)
	}
	b.wantNames("after it", b.history(r.UUID), "of the second", "renewal")
}

func continueControlled(b *fixture) {
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbCancel, store.VerbTerminate} {
		r := b.row(b.commitRunningRun("").UUID)
		b.controlExistingRuns(verb, r.UUID)
		before := fmt.Sprintf("%+v", b.row(r.UUID))
		wantOutcome(b, fmt.Sprintf("after verb %v", verb), b.repair(b.continueOf(r, 1)), store.Fenced)
		if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
			b.Errorf("verb %v: the run was changed", verb)
		}
		if n := len(b.generations(r.UUID)); n != 0 {
			b.Errorf("verb %v: %d generations", verb, n)
		}
	}
}

func continueLateOwner(b *fixture) {
	r := b.row(b.commitRunningRun("").UUID)
	b.wantRepaired(b.continueOf(r, 1))
	wantOutcome(b, "a step", b.commitStep(b.completed(r.UUID, r.Epoch, "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "an end", b.commitOwnershipEnd(b.newCompletion(r.UUID, r.Epoch)).Outcome, store.Fenced)
	wantOutcome(b, "a further generation", b.repair(b.continueOf(r, 2)), store.Fenced)
	b.wantNames("the next generation", b.history(r.UUID), "renewal")
}

func continueReleased(b *fixture) {
	r := b.row(b.commitRunningRun("").UUID)
	p := b.continueOf(r, 1)
	p.Runs[0].Status, p.Runs[0].Owner, p.Runs[0].WakeAt = store.Pending, uuid.NullUUID{}, p.Now
	b.wantRepaired(p)
	c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
	if string(c.Run.Input) != `"input 2"` || c.Run.Crashes != 0 {
		b.Errorf("claimed %+v", c.Run)
	}
	b.wantNames("claimed", c.History, "renewal")
}

// raceContinueCancel checks that a cancel either comes before the next generation, which is then not made, or concerns it.
func raceContinueCancel(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.row(b.commitRunningRun("").UUID)
		p := b.continueOf(r, 1)
		o := &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{r.UUID}, Now: b.afterStart(time.Hour)}
		concurrently(func() { b.repair(p) }, func() {
			if err := other.ControlRuns(b.ctx, o); err != nil {
				b.Errorf("Control: %v", err)
			}
		})
		got := b.row(r.UUID)
		if got.Control&store.CancelRequested == 0 || got.Status != store.Running {
			b.Fatalf("round %d: the cancelled run is %v with control %d", round, got.Status, got.Control)
		}
		if made := p.Outcome == store.Written; made != (got.Epoch == p.Runs[0].Epoch) || made != (len(b.generations(r.UUID)) == 1) {
			b.Fatalf("round %d: the outcome is %d, and the run %+v", round, p.Outcome, got)
		}
		end := b.newCompletion(r.UUID, got.Epoch)
		end.Status = store.Cancelled
		wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
	}
}

// commitUntilUnlocked commits a batch of one write again while its row is locked for longer than a statement waits, as the journal does.
func (b *fixture) commitUntilUnlocked(batch *store.Batch, outcome *store.WriteOutcome) {
	b.Helper()
	for b.commit(batch); *outcome == store.Locked && b.ctx.Err() == nil; b.commit(batch) {
	}
}

// raceContinueWrites checks that a signal survives the change of the generation.
func raceContinueWrites(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.row(b.commitRunningRun("").UUID)
		p := b.continueOf(r, 1)
		sent := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Payload: []byte("1"), CreatedAt: b.now}
		taken := b.receive(r, "next", "order")
		concurrently(func() { b.wantRepaired(p) },
			func() {
				b.through(other).commitUntilUnlocked(&store.Batch{Signals: []*store.SignalWrite{sent}}, &sent.Outcome)
			},
			func() {
				b.through(other).commitUntilUnlocked(&store.Batch{Receives: []*store.ReceiveWrite{taken}}, &taken.Outcome)
			})
		wantOutcome(b, "the signal", sent.Outcome, store.Written)
		received := taken.RecordedStep != nil && taken.RecordedStep.Status == store.StepCompleted && taken.Outcome == store.Written
		unreceived, err := b.store.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
		if err != nil || received != (len(unreceived) == 0) {
			b.Fatalf("round %d: received: %t, unreceived: %+v, %v", round, received, unreceived, err)
		}
		b.wantNames("the next generation", b.history(r.UUID), "renewal")
		wantOutcome(b, "the end", b.commitOwnershipEnd(b.newCompletion(r.UUID, p.Runs[0].Epoch)).Outcome, store.Written)
	}
}
