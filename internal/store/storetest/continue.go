package storetest

import (
	"fmt"
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
	{"against a cancel", func(b *bed) { raceContinueCancel(b, b.s) }},
	{"against steps and signals", func(b *bed) { raceContinueWrites(b, b.s) }},
}

// continueOf returns the repair with which a running run continues as new. Its generation has the number.
func (b *bed) continueOf(r store.Run, number int32) *store.Repair {
	next := r.Epoch.Next(nonce)
	renewal := b.completed(r.UUID, next, "renewal")
	renewal.Kind = store.KindRenewal
	return &store.Repair{
		Request: uuid.New(), Verb: "continue", Now: b.in(time.Minute),
		Runs: []store.RunRepair{{
			Run: r.UUID, Before: store.RunState{Found: true, Status: store.Running, Epoch: r.Epoch}, Number: number, Continues: true,
			Input: fmt.Appendf(nil, `"input %d"`, number+1), Write: []store.Step{renewal}, Progress: 1,
			Epoch: next, Status: store.Running, Owner: r.Owner, WakeAt: b.in(time.Minute + 30*time.Second),
		}},
	}
}

func continueGoesOn(b *bed) {
	r := b.running("")
	r.Deadline = b.in(time.Hour)
	wantOutcome(b, "the start", b.commitStart(r).Outcome, store.Written)
	r = b.row(r.UUID)
	b.commitStep(b.completed(r.UUID, r.Epoch, "first"), false)
	b.repaired(b.continueOf(r, 1))
	got := b.row(r.UUID)
	if got.Status != store.Running || got.Epoch != r.Epoch.Next(nonce) || got.Owner != r.Owner || !got.WakeAt.Equal(b.in(time.Minute+30*time.Second)) ||
		!got.Deadline.Equal(r.Deadline) || string(got.Input) != `"input 2"` || got.Name != r.Name || !got.CreatedAt.Equal(r.CreatedAt) {
		b.Errorf("the next generation is %+v", got)
	}
	b.wantNames("the next generation", b.history(r.UUID), "renewal")
	all := b.generations(r.UUID)
	if len(all) != 1 || all[0].Run.Status != store.Superseded || string(all[0].Run.Input) != string(r.Input) || all[0].Verb != "continue" || !all[0].Run.EndedAt.IsZero() {
		b.Fatalf("the generations are %+v", all)
	}
	b.wantNames("the first", b.history(all[0].Archive), "first")
	b.wantEvents(r.Name + " continued")
	wantOutcome(b, "the same step", b.commitStep(b.completed(r.UUID, got.Epoch, "first"), false).Outcome, store.Written)
	b.repaired(b.continueOf(got, 2))
	got = b.row(r.UUID)
	wantOutcome(b, "the end", b.commitRun(b.finish(r.UUID, got.Epoch)).Outcome, store.Written)
	if all = b.generations(r.UUID); len(all) != 2 || string(all[1].Run.Input) != `"input 2"` {
		b.Errorf("the generations are %+v", all)
	}
}

func continueChildren(b *bed) {
	r := b.started("")
	ended, live := b.childOf(r, "ended"), b.childOf(r, "live")
	wantOutcome(b, "the end", b.commitRun(b.childEnd(ended)).Outcome, store.Written)
	p := b.continueOf(b.row(r.UUID), 1)
	b.repaired(p)
	for _, c := range []store.Run{ended, live} {
		if got := b.row(c.UUID); got.Parent.UUID != p.Runs[0].Archive() {
			b.Errorf("child %q has the parent %v", c.Name, got.Parent)
		}
	}
	again := b.running("live")
	again.UUID, again.Name, again.Parent = store.NewChildUUID(r.UUID), live.Name, owner(r.UUID)
	wantOutcome(b, "another child of the name", b.commitChild(again, p.Runs[0].Epoch).Outcome, store.Written)
	wantOutcome(b, "the end of the first", b.commitRun(b.childEnd(live)).Outcome, store.Written)
}

func continueSignals(b *bed) {
	r := b.row(b.started("").UUID)
	for i := range 4 {
		w := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Key: fmt.Sprint(i), Payload: fmt.Appendf(nil, "%d", i), CreatedAt: b.in(time.Duration(i) * time.Second)}
		b.commit(&store.Batch{Signals: []*store.SignalWrite{w}})
	}
	receive := func(want, receiver string) {
		w := b.receive(r, "next", "order")
		w.Receiver = receiver
		b.wantTaken("generation "+want, b.commitReceive(w), []byte(want))
	}
	next := func(number int32) {
		b.repaired(b.continueOf(r, number))
		r = b.row(r.UUID)
	}
	receive("0", "")
	next(1)
	receive("1", "next of 2")
	next(2)
	receive("2", "next of 3")
	again := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Key: "0", Payload: []byte("0"), CreatedAt: b.now}
	b.commit(&store.Batch{Signals: []*store.SignalWrite{again}})
	wantOutcome(b, "a key of the first generation", again.Outcome, store.Adopted)
	// A repair of the newest generation releases its signals only.
	w := b.commitRun(store.OwnershipEnd{UUID: r.UUID, Epoch: r.Epoch, Status: store.Failed, Error: []byte(`{}`), EndedAt: b.in(time.Minute)})
	wantOutcome(b, "the failure", w.Outcome, store.Written)
	p := b.repairOf(b.row(r.UUID), 3)
	p.Runs[0].Release = []string{"next of 3"}
	b.repaired(p)
	unreceived, err := b.s.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
	if err != nil || len(unreceived) != 1 || unreceived[0].Count != 2 {
		b.Errorf("unreceived: %+v, %v", unreceived, err)
	}
}

func continueRepeated(b *bed) {
	r := b.row(b.started("").UUID)
	p := b.continueOf(r, 1)
	b.repaired(p)
	b.commitStep(b.completed(r.UUID, p.Runs[0].Epoch, "of the second"), false)
	before := fmt.Sprintf("%+v", b.row(r.UUID))
	b.repaired(p)
	if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
		b.Errorf("the repeated write changed\n%s to\n%s", before, after)
	}
	b.wantNames("after it", b.history(r.UUID), "of the second", "renewal")
}

func continueControlled(b *bed) {
	for _, verb := range []store.Verb{store.VerbPause, store.VerbCancel, store.VerbTerminate} {
		r := b.row(b.started("").UUID)
		b.ordered(verb, r.UUID)
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

func continueLateOwner(b *bed) {
	r := b.row(b.started("").UUID)
	b.repaired(b.continueOf(r, 1))
	wantOutcome(b, "a step", b.commitStep(b.completed(r.UUID, r.Epoch, "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "an end", b.commitRun(b.finish(r.UUID, r.Epoch)).Outcome, store.Fenced)
	wantOutcome(b, "a further generation", b.repair(b.continueOf(r, 2)), store.Fenced)
	b.wantNames("the next generation", b.history(r.UUID), "renewal")
}

func continueReleased(b *bed) {
	r := b.row(b.started("").UUID)
	p := b.continueOf(r, 1)
	p.Runs[0].Status, p.Runs[0].Owner, p.Runs[0].WakeAt = store.Pending, uuid.NullUUID{}, p.Now
	b.repaired(p)
	c := b.claimOne(b.query(b.in(time.Hour)), r.UUID)
	if string(c.Run.Input) != `"input 2"` || c.Run.Crashes != 0 {
		b.Errorf("claimed %+v", c.Run)
	}
	b.wantNames("claimed", c.History, "renewal")
}

// raceContinueCancel checks that a cancel either comes before the next generation, which is then not made, or concerns it.
func raceContinueCancel(b *bed, other store.Store) {
	for round := range repairRounds {
		r := b.row(b.started("").UUID)
		p := b.continueOf(r, 1)
		o := &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{r.UUID}, Now: b.in(time.Hour)}
		concurrently(func() { b.repair(p) }, func() {
			if err := other.Control(b.ctx, o); err != nil {
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
		end := b.finish(r.UUID, got.Epoch)
		end.Status = store.Cancelled
		wantOutcome(b, "the end", b.commitRun(end).Outcome, store.Written)
	}
}

// commitUnlocked commits a batch of one write again while its row is locked for longer than a statement waits, as the journal does.
func (b *bed) commitUnlocked(batch *store.Batch, outcome *store.Outcome) {
	b.Helper()
	for b.commit(batch); *outcome == store.Locked && b.ctx.Err() == nil; b.commit(batch) {
	}
}

// raceContinueWrites checks that a signal survives the change of the generation.
func raceContinueWrites(b *bed, other store.Store) {
	for round := range repairRounds {
		r := b.row(b.started("").UUID)
		p := b.continueOf(r, 1)
		sent := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "order", Payload: []byte("1"), CreatedAt: b.now}
		taken := b.receive(r, "next", "order")
		concurrently(func() { b.repaired(p) },
			func() {
				b.through(other).commitUnlocked(&store.Batch{Signals: []*store.SignalWrite{sent}}, &sent.Outcome)
			},
			func() {
				b.through(other).commitUnlocked(&store.Batch{Receives: []*store.ReceiveWrite{taken}}, &taken.Outcome)
			})
		wantOutcome(b, "the signal", sent.Outcome, store.Written)
		received := taken.Recorded != nil && taken.Recorded.Status == store.StepCompleted && taken.Outcome == store.Written
		unreceived, err := b.s.CountUnreceivedSignals(b.ctx, []uuid.UUID{r.UUID})
		if err != nil || received != (len(unreceived) == 0) {
			b.Fatalf("round %d: received: %t, unreceived: %+v, %v", round, received, unreceived, err)
		}
		b.wantNames("the next generation", b.history(r.UUID), "renewal")
		wantOutcome(b, "the end", b.commitRun(b.finish(r.UUID, p.Runs[0].Epoch)).Outcome, store.Written)
	}
}
