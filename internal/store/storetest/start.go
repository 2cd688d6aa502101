package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var starts = []test{
	{"an owned start is a running run", startOwned},
	{"a pending start is claimable", startPending},
	{"a start records the first step of its run", startWithStep},
	{"the same name adopts", startAdopts},
	{"the same name twice in a batch", startTwice},
	{"a replay is written", startReplay},
	{"names are unique below a parent only", startParents},
	{"names are unique in a shard only", startShards},
	{"a large batch in any order", startMany},
	{"nanoseconds do not matter", startNanoseconds},
}

func startOwned(b *fixture) {
	r := b.newRunningRun("order-42")
	r.Version, r.Trace, r.Deadline = "v1.2", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", b.afterStart(24*time.Hour)
	wantOutcome(b, "start", b.commitStart(r).Outcome, store.Written)
	wantRun(b, "the run started", b.row(r.UUID), r)
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 0 {
		b.Errorf("a run whose lease holds was claimed: %v", describeClaims(got.Runs))
	}
}

func startWithStep(b *fixture) {
	write := func(r store.Run) (*store.StartWrite, *store.StepWrite) {
		start, step := &store.StartWrite{Run: r}, &store.StepWrite{Step: b.completed(r.UUID, r.Epoch, "shape/1")}
		b.commit(&store.Batch{Starts: []*store.StartWrite{start}, Steps: []*store.StepWrite{step}})
		return start, step
	}
	r := b.newRunningRun("order-42")
	start, step := write(r)
	wantOutcome(b, "start", start.Outcome, store.Written)
	wantOutcome(b, "its first step", step.Outcome, store.Written)
	if got := b.history(r.UUID); len(got) != 1 || got[0].Name != "shape/1" {
		b.Errorf("the history is %v", got)
	}
	second := b.newRunningRun("order-42")
	start, step = write(second)
	wantOutcome(b, "second start of the name", start.Outcome, store.AlreadyRecorded)
	wantOutcome(b, "its first step", step.Outcome, store.Fenced)
	if got := b.history(second.UUID); len(got) != 0 {
		b.Errorf("a run that was not created has the history %v", got)
	}
}

func startPending(b *fixture) {
	r := b.commitPendingRun("order-42", b.afterStart(time.Minute))
	wantRun(b, "the run started", b.row(r.UUID), r)
	got := b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
	if got.Run.Epoch != epochAt(1) {
		b.Errorf("epoch after the first claim: got %s, want 1", got.Run.Epoch)
	}
}

func startAdopts(b *fixture) {
	first := b.commitRunningRun("order-42")
	finish := b.newCompletion(first.UUID, epochAt(1))
	for _, state := range []string{"running", "completed"} {
		second := b.newRunningRun("order-42")
		second.Input, second.Workflow = []byte(`"other"`), "other"
		w := b.commitStart(second)
		wantOutcome(b, "second start of a "+state+" run", w.Outcome, store.AlreadyRecorded)
		if w.ExistingRun == nil {
			b.Fatalf("second start of a %s run: no row is attached", state)
		}
		wantRun(b, "the row attached, "+state, *w.ExistingRun, first)
		if rows := b.get(second.UUID.String()); rows[0] != nil {
			b.Errorf("the run that was not created is there: %s", rows[0].UUID)
		}
		b.commitOwnershipEnd(finish)
		first.Status, first.Owner, first.WakeAt, first.Output, first.EndedAt = store.Completed, uuid.NullUUID{}, time.Time{}, finish.Output, finish.EndedAt
		wantRun(b, "the first run, completed", b.row(first.UUID), first)
	}
}

func startTwice(b *fixture) {
	one, two, other := &store.StartWrite{Run: b.newRunningRun("twice")}, &store.StartWrite{Run: b.newRunningRun("twice")}, &store.StartWrite{Run: b.newRunningRun("once")}
	b.commit(&store.Batch{Starts: []*store.StartWrite{one, other, two}})
	wantOutcome(b, "a stranger in the batch", other.Outcome, store.Written)
	if one.Outcome != store.Written {
		one, two = two, one
	}
	wantOutcome(b, "one of the two", one.Outcome, store.Written)
	wantOutcome(b, "the other of the two", two.Outcome, store.AlreadyRecorded)
	if two.ExistingRun == nil {
		b.Fatal("no row is attached to the adopted start")
	}
	wantRun(b, "the row attached", *two.ExistingRun, one.Run)
}

func startReplay(b *fixture) {
	owned, pending := &store.StartWrite{Run: b.newRunningRun("owned")}, &store.StartWrite{Run: b.newPendingRun("pending", b.now)}
	batch := &store.Batch{Starts: []*store.StartWrite{owned, pending}}
	for _, when := range []string{"first", "replayed", "replayed after a claim"} {
		owned.Outcome, owned.ExistingRun, pending.Outcome = 0, &store.Run{}, store.Fenced // results of an earlier try
		b.commit(batch)
		wantOutcome(b, "owned, "+when, owned.Outcome, store.Written)
		wantOutcome(b, "pending, "+when, pending.Outcome, store.Written)
		if owned.ExistingRun != nil {
			b.Errorf("owned, %s: a row is attached to a written start", when)
		}
		if when == "replayed" {
			b.claimOne(b.query(b.now), pending.Run.UUID)
		}
	}
	if got := b.row(pending.Run.UUID); got.Epoch != epochAt(1) || got.Status != store.Running {
		b.Errorf("a replay changed the run that was claimed meanwhile: %s at epoch %s, want running at 1", got.Status, got.Epoch)
	}
}

func startParents(b *fixture) {
	father, mother := b.commitRunningRun("father"), b.commitRunningRun("mother")
	root := b.commitRunningRun("charge")
	child := func(parent store.Run) store.Run {
		r := b.newPendingRun("charge", b.now)
		r.UUID, r.Parent = store.NewUUID(store.ShardOf(parent.UUID)), owner(parent.UUID)
		return r
	}
	his, hers := child(father), child(mother)
	wantOutcome(b, "his charge", b.commitChild(his, epochAt(1)).Outcome, store.Written)
	wantOutcome(b, "her charge", b.commitChild(hers, epochAt(1)).Outcome, store.Written)
	wantRun(b, "his charge", b.row(his.UUID), his)
	wantRun(b, "her charge", b.row(hers.UUID), hers)
	again := b.commitChild(child(father), epochAt(1))
	wantOutcome(b, "his second charge", again.Outcome, store.AlreadyRecorded)
	if again.ExistingRun == nil {
		b.Fatal("his second charge: no row is attached")
	}
	wantRun(b, "his second charge: the row attached", *again.ExistingRun, his)
	if rows := b.get("charge"); rows[0] == nil || rows[0].UUID != root.UUID {
		b.Errorf("a name addresses a root, never a child: got %v, want %s", rows[0], root.UUID)
	}
}

func startShards(b *fixture) {
	here := b.commitRunningRun("order-42")
	there := b.newRunningRun("order-42")
	there.UUID = store.NewUUID((store.ShardOf(here.UUID) + 1) % store.ShardCount)
	wantOutcome(b, "the same name in another shard", b.commitStart(there).Outcome, store.Written)
	wantRun(b, "the run in its shard", b.row(here.UUID), here)
	wantRun(b, "the run in the other shard", b.row(there.UUID), there)
}

func startMany(b *fixture) {
	batch := &store.Batch{}
	for i := range 500 {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.newRunningRun(fmt.Sprint("order-", i))})
	}
	rand.Shuffle(len(batch.Starts), func(i, j int) { batch.Starts[i], batch.Starts[j] = batch.Starts[j], batch.Starts[i] })
	had := batch.Starts[250].Run.Name
	first := b.commitRunningRun(had)
	b.commit(batch)
	for _, w := range batch.Starts {
		if w.Run.Name != had {
			wantOutcome(b, w.Run.Name, w.Outcome, store.Written)
			wantRun(b, w.Run.Name, b.row(w.Run.UUID), w.Run)
			continue
		}
		wantOutcome(b, "the one that was there", w.Outcome, store.AlreadyRecorded)
		if w.ExistingRun == nil || w.ExistingRun.UUID != first.UUID {
			b.Errorf("the one that was there: got %v attached, want %s", w.ExistingRun, first.UUID)
		}
	}
}

// startNanoseconds checks that a repeated write is recognized although the store rounds its times
// to microseconds.
func startNanoseconds(b *fixture) {
	r := b.newRunningRun("order-42")
	r.CreatedAt = b.now.Add(1499 * time.Nanosecond)
	s := b.completed(r.UUID, epochAt(1), "charge")
	s.StartedAt, s.EndedAt = b.now.Add(501*time.Nanosecond), b.now.Add(999*time.Nanosecond)
	f := b.newCompletion(r.UUID, epochAt(1))
	f.EndedAt = b.now.Add(2501 * time.Nanosecond)
	start, step, run := &store.StartWrite{Run: r}, &store.StepWrite{Step: s}, &f
	for _, when := range []string{"first", "replayed"} {
		b.commit(&store.Batch{Starts: []*store.StartWrite{start}, Steps: []*store.StepWrite{step}, OwnershipEnds: []*store.OwnershipEnd{run}})
		wantOutcome(b, "start, "+when, start.Outcome, store.Written)
		wantOutcome(b, "step, "+when, step.Outcome, store.Written)
		wantOutcome(b, "finish, "+when, run.Outcome, store.Written)
	}
	if got := b.row(r.UUID).CreatedAt; got.Sub(r.CreatedAt).Abs() > time.Microsecond {
		b.Errorf("created: got %s, want %s to the microsecond", show(got), show(r.CreatedAt))
	}
}
