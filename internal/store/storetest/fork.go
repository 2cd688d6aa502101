package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var forks = []test{
	{"a run begins with checkpoints, tags and an event", forkCreates},
	{"repeated after a lost answer, it changes nothing", forkRepeated},
	{"under a name that is taken it creates nothing", forkNameTaken},
	{"in a queue with settings it waits for a place", forkInQueue},
	{"of two forks under one ID, one is made", forkTwice},
}

// forkOf returns the fork of a run under a name, with the given completed steps.
func (b *fixture) forkOf(source store.Run, name string, steps ...string) *store.ForkRequest {
	b.Helper()
	f := &store.ForkRequest{Start: &store.StartWrite{Run: b.newPendingRun(name, b.now)}, Source: source.UUID, Actor: "ada", Reason: "to look"}
	f.Start.Run.Epoch = epochAt(1)
	slices.Sort(steps)
	for i, step := range steps {
		s := b.completed(f.Start.Run.UUID, epochAt(1), step)
		s.Seq = int32(i + 1)
		f.Steps = append(f.Steps, s)
	}
	return f
}

// forked makes the fork, and tries it again while others hold rows.
func (b *fixture) forked(f *store.ForkRequest) store.WriteOutcome {
	b.Helper()
	for {
		err := b.store.ForkRun(b.ctx, f)
		if err == nil {
			return f.Start.Outcome
		}
		if b.ctx.Err() != nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("Fork: %v", err)
		}
	}
}

func forkCreates(b *fixture) {
	source := b.failedRun("first")
	f := b.forkOf(source, "copy", "first", "second")
	f.Start.Run.Deadline = b.afterStart(time.Hour)
	f.Start.Tags = []store.Tag{{Key: "team", Value: "a"}}
	f.Steps[1].Output = []byte{}
	before := b.row(source.UUID)
	wantOutcome(b, "the fork", b.forked(f), store.Written)
	if got := b.row(source.UUID); got.Status != before.Status || got.Epoch != before.Epoch {
		b.Errorf("the forked run is %+v", got)
	}
	b.wantNames("of the forked run", b.history(source.UUID), "fails", "first")
	id := f.Start.Run.UUID
	got := b.row(id)
	if got.Name != "copy" || got.Status != store.Pending || got.Epoch != epochAt(1) || !got.Deadline.Equal(b.afterStart(time.Hour)) || got.Parent.Valid {
		b.Errorf("the run is %+v", got)
	}
	wantSteps(b, "its history", b.history(id), f.Steps...)
	o, err := b.store.RunProgress(b.ctx, id, b.now)
	if err != nil || len(o.Tags) != 1 {
		b.Errorf("its tags are %+v, %v", o.Tags, err)
	}
	b.wantEvents(source.Name+" failed", "copy repaired")
	all := b.events("", 2)
	if e := all[len(all)-1]; e.Type != store.EventRepaired || e.Run != id || e.Actor != "ada" || e.Reason != "to look" || e.OldValue != source.UUID.String() || e.NewValue != "" {
		b.Errorf("the events are %+v", all)
	}
	c := b.claimOne(b.query(b.afterStart(time.Minute)), id)
	b.wantNames("claimed", c.History, "first", "second")
	wantOutcome(b, "a further step", b.commitStep(b.completed(id, c.Run.Epoch, "third"), false).Outcome, store.Written)
	wantOutcome(b, "the end", b.commitOwnershipEnd(b.newCompletion(id, c.Run.Epoch)).Outcome, store.Written)
}

func forkRepeated(b *fixture) {
	source := b.failedRun("first")
	f := b.forkOf(source, "copy", "first")
	wantOutcome(b, "the fork", b.forked(f), store.Written)
	c := b.claimOne(b.query(b.afterStart(time.Minute)), f.Start.Run.UUID)
	b.commitStep(b.completed(f.Start.Run.UUID, c.Run.Epoch, "second"), false)
	wantOutcome(b, "the fork again", b.forked(f), store.Written)
	b.wantNames("the run", b.history(f.Start.Run.UUID), "first", "second")
	b.wantEvents(source.Name+" failed", "copy repaired")
}

func forkNameTaken(b *fixture) {
	source := b.failedRun("first")
	f := b.forkOf(source, source.Name, "first", "second")
	wantOutcome(b, "the fork", b.forked(f), store.AlreadyRecorded)
	if f.Start.ExistingRun == nil || f.Start.ExistingRun.UUID != source.UUID {
		b.Errorf("the existing run is %+v", f.Start.ExistingRun)
	}
	b.wantNames("of the existing run", b.history(source.UUID), "fails", "first")
	b.wantEvents(source.Name + " failed")
}

func forkInQueue(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	first := q.start("")
	q.wantBegun("at first", q.afterStart(time.Second), first)
	f := b.forkOf(q.row(first), "copy", "first")
	w := q.newQueuedStart("copy", boundedQueue, "")
	w.Run.Epoch = epochAt(1)
	f.Start = w
	for i := range f.Steps {
		f.Steps[i].Run = w.Run.UUID
	}
	wantOutcome(b, "the fork", b.forked(f), store.Written)
	q.runs = append(q.runs, w.Run.UUID)
	q.wantBegun("while the forked run executes", q.afterStart(time.Second))
	q.wantState("the fork", w.Run.UUID, store.PlaceInLine, store.AdmissionInLine)
	q.finishRuns(first)
	q.wantBegun("when it has ended", q.afterStart(time.Second), w.Run.UUID)
	q.finishRuns(w.Run.UUID)
	q.admitAll(q.afterStart(time.Second))
}

func forkTwice(b *fixture) {
	source := b.failedRun("first")
	for round := range repairRounds {
		name := "copy-" + string(rune('a'+round))
		one, two := b.forkOf(source, name, "first"), b.forkOf(source, name)
		concurrently(func() { b.forked(one) }, func() { b.forked(two) })
		made := map[uuid.UUID]int{}
		for _, f := range []*store.ForkRequest{one, two} {
			if f.Start.Outcome == store.Written {
				made[f.Start.Run.UUID] = len(f.Steps)
			}
		}
		for id, steps := range made {
			if n := len(b.history(id)); n != steps {
				b.Errorf("round %d: %d checkpoints, want %d", round, n, steps)
			}
		}
		if len(made) != 1 {
			b.Fatalf("round %d: %d runs were made", round, len(made))
		}
	}
}
