package storetest

import (
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// traces tests what a run records for people: the order of its calls, its failed attempts and its
// lost leases.
var traces = []test{
	{"a history is in the order in which its calls began", traceOrder},
	{"a row keeps its place in that order", traceKeepsPlace},
	{"failed attempts are kept, replaced and read back", traceFailures},
	{"crashes are forgotten with the next checkpoint", traceCrashes},
	{"who had the last lease that was lost, and when", traceLoss},
	{"what a tree waits for, and what is delayed", traceCounts},
}

func traceOrder(b *fixture) {
	r := b.commitRunningRun("")
	steps := make([]store.Step, 4)
	for i, name := range []string{"d", "a", "c", "b"} {
		steps[i] = b.completed(r.UUID, epochAt(1), name)
		steps[i].Seq = int32(i + 1)
	}
	wait := b.receive(r, "wait", "paid")
	wait.Step.Seq = 7
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: steps[2]}, {Step: steps[0]}, {Step: steps[1]}}})
	b.commitReceive(wait)
	b.commitStep(steps[3], false)
	wantSteps(b, "history", b.history(r.UUID), append(steps, wait.Step)...)
	b.commitOwnershipEnd(b.park(r, b.afterStart(time.Second)))
	claimed := b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
	wantSteps(b, "claimed", claimed.History, steps[1], steps[3], steps[2], steps[0], wait.Step)
}

func traceKeepsPlace(b *fixture) {
	r := b.commitRunningRun("")
	began := b.startedMarker(r.UUID, epochAt(1), 1, "step")
	began.Seq = 3
	b.commitStep(began, false)
	done := b.completed(r.UUID, epochAt(1), "step")
	done.Seq = 9
	b.commitStep(done, true)
	done.Seq = 3
	wantSteps(b, "after an update", b.history(r.UUID), done)
	b.commitStep(b.backoff(r.UUID, epochAt(1), 1, "mistaken"), false)
	again := b.completed(r.UUID, epochAt(1), "mistaken")
	again.Seq, again.Attempt = 5, 2
	b.commitStep(again, false) // the writer does not know that the row exists
	again.Seq = 0
	b.wantRow("a mistaken insert", again)
}

func traceFailures(b *fixture) {
	r := b.commitRunningRun("")
	first := b.backoff(r.UUID, epochAt(1), 1, "step")
	first.Failures = []byte(`{"first":{"attempt":1}}`)
	b.commitStep(first, false)
	b.wantRow("a first failure", first)
	second := b.startedMarker(r.UUID, epochAt(1), 2, "step")
	second.Failures = []byte(`{"first":{"attempt":1},"open":{"attempt":2}}`)
	b.commitStep(second, true)
	b.wantRow("a marker", second)
	done := b.completed(r.UUID, epochAt(1), "step")
	done.Attempt, done.Failures = 2, first.Failures
	clean := b.completed(r.UUID, epochAt(1), "clean")
	b.commit(&store.Batch{Steps: []*store.StepWrite{{Step: done, RowExists: true}, {Step: clean}}})
	b.wantRow("a success after it", done)
	b.wantRow("a success at first", clean)
	late := done
	late.Failures = nil
	if w := b.commitStep(late, false); w.Outcome != store.Written { // Written: the store takes it for a repeated call
		wantRecorded(b, "a later write", w.RecordedStep, done)
	}
	b.wantRow("after a later write", done)
}

func traceCrashes(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	b.claimOne(q, r.UUID)
	q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	claimed := b.claimOne(q, r.UUID)
	shown := func(what string, want int16) {
		b.Helper()
		if got := b.row(r.UUID).Crashes; got != want {
			b.Errorf("%s: Get tells of %d crashes, want %d", what, got, want)
		}
		listed, err := b.store.ListRuns(b.ctx, store.Filter{}, uuid.UUID{}, 10)
		if err != nil || len(listed) != 1 || listed[0].Crashes != want {
			b.Errorf("%s: List: %v, %v; want %d crashes", what, listed, err, want)
		}
		named, err := b.store.ListRuns(b.ctx, store.Filter{NamePrefix: r.Name}, uuid.UUID{}, 10)
		if err != nil || len(named) != 1 || named[0].Crashes != want {
			b.Errorf("%s: List by name: %v, %v; want %d crashes", what, named, err, want)
		}
		for _, f := range []store.Filter{{Tag: store.Tag{Key: "t.a"}}, {Tag: store.Tag{Key: "t.a", Value: "1"}}} {
			tagged, err := b.store.ListRuns(b.ctx, f, uuid.UUID{}, 10)
			if err != nil || len(tagged) != 1 || tagged[0].Crashes != want {
				b.Errorf("%s: List by tag: %v, %v; want %d crashes", what, tagged, err, want)
			}
		}
		if tree := b.tree(r.UUID); len(tree) != 1 || tree[0].Crashes != want {
			b.Errorf("%s: Tree: %v; want %d crashes", what, tree, want)
		}
	}
	b.tag(r.UUID, store.Tag{Key: "t.a", Value: "1"})
	shown("after a crash", 1)
	if claimed.ProgressAtLastCrash != 0 {
		b.Errorf("the claim tells of the progress %d, want none", claimed.ProgressAtLastCrash)
	}
	b.commitStep(b.startedMarker(r.UUID, claimed.Run.Epoch, 1, "begun"), false)
	shown("after a marker", 1)
	b.commitStep(b.completed(r.UUID, claimed.Run.Epoch, "step"), false)
	shown("after a checkpoint", 0)
	q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	again := b.claimOne(q, r.UUID)
	shown("after another crash", 1)
	if again.ProgressAtLastCrash != 1 || again.Run.Crashes != 1 {
		b.Errorf("the claim tells of the progress %d and %d crashes, want one of each", again.ProgressAtLastCrash, again.Run.Crashes)
	}
	for i, status := range []store.StepStatus{store.StepStarted, store.StepCompleted} {
		child := b.startedMarker(r.UUID, again.Run.Epoch, 1, "child")
		child.Kind, child.Status = store.KindChild, status
		b.commitStep(child, i > 0)
		shown("after a child is "+status.String(), 0)
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
		again = b.claimOne(q, r.UUID)
		shown("after a further crash", 1)
		if again.ProgressAtLastCrash != 2+i || again.Run.Crashes != 1 {
			b.Errorf("the claim tells of the progress %d and %d crashes, want %d and 1", again.ProgressAtLastCrash, again.Run.Crashes, 2+i)
		}
	}
}

func traceLoss(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	b.claimOne(q, r.UUID)
	if got := b.outline(r.UUID, b.now).LastLeaseLoss; got != (store.LeaseLoss{}) {
		b.Errorf("nothing was lost, got %v", got)
	}
	for _, verb := range []store.ControlVerb{0, store.VerbPause} { // with VerbPause, the claim pauses the run
		if verb != 0 {
			b.controlExistingRuns(verb, r.UUID)
		}
		had := q.Worker
		q.Worker, q.Now, q.LeaseUntil = uuid.New(), q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
		b.claimOne(q, r.UUID)
		wantFields(b, "the loss", b.outline(r.UUID, b.now).LastLeaseLoss, store.LeaseLoss{At: q.Now, Worker: had})
	}
	killer := b.commitPendingRun("", q.LeaseUntil)
	q.MaxCrashes = 1
	q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	b.claimOne(q, killer.UUID)
	had := q.Worker
	q.Worker, q.Now, q.LeaseUntil = uuid.New(), q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	b.claimOne(q, killer.UUID)
	wantFields(b, "the loss of a crash loop", b.outline(killer.UUID, b.now).LastLeaseLoss, store.LeaseLoss{At: q.Now, Worker: had})
}

func traceCounts(b *fixture) {
	root := b.commitRunningRun("")
	child := b.child(root, "child")
	child.Status, child.Epoch, child.Owner, child.StartedAt, child.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, b.afterStart(time.Hour)
	b.commit(&store.Batch{Starts: []*store.StartWrite{{Run: child, ParentEpoch: epochAt(1)}}})
	sleep := b.completed(root.UUID, epochAt(1), "asleep")
	sleep.Kind, sleep.NextAt = store.KindSleep, b.afterStart(time.Minute)
	b.commitReceive(b.receive(root, "wait", "paid"))
	b.commitStep(sleep, false)
	b.commitStep(b.completed(root.UUID, epochAt(1), "done"), false)
	b.commitStep(b.backoff(root.UUID, epochAt(1), 1, "again"), false)
	count := func(what string, at time.Time, delayed int, open map[store.StepKind]int) {
		b.Helper()
		got, err := b.store.RunTreeCounts(b.ctx, root.UUID, at)
		if err != nil || got.DelayedCount != delayed || !maps.Equal(got.OpenCallsByKind, open) {
			b.Errorf("%s: %+v, %v; want %d delayed and %v open", what, got, err, delayed, open)
		}
	}
	count("at first", b.now, 1, map[store.StepKind]int{store.KindSleep: 1, store.KindReceive: 1, store.KindStep: 1})
	count("later", b.afterStart(2*time.Hour), 0, map[store.StepKind]int{store.KindReceive: 1, store.KindStep: 1})
	end := b.newCompletion(root.UUID, epochAt(1))
	b.commitOwnershipEnd(end)
	count("at the end", b.now, 1, map[store.StepKind]int{})
}
