package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var children = []test{
	{"a child and its parent's row for it are one commit", childWhole},
	{"only while its parent runs, and nothing is asked of it", childGuarded},
	{"its row in its parent is kept out with it", childKeptOut},
	{"the next owner of its parent adopts it", childAdopts},
	{"a replay is written, whatever became of both", childReplay},
	{"its end wakes a waiting parent", childWakes},
	{"its end is kept for a running parent", childMarks},
	{"each of several ends wakes", childSeveral},
	{"its end and its parent's park in one batch", childOneBatch},
	{"a claim forgets what it was woken for", childClaimForgets},
	{"a paused, new or ended parent stays so", childLeaves},
	{"a fenced end wakes nobody", childFenced},
	{"its end against its parent's park", func(b *fixture) { raceChildEnd(b, b.store) }},
}

// child returns a pending child of the run.
func (b *fixture) child(parent store.Run, name string) store.Run {
	r := b.newPendingRun(name, b.now)
	r.UUID, r.Parent = store.NewChildUUID(parent.UUID), owner(parent.UUID)
	r.Name = name
	return r
}

// commitChild starts a child, as the owner of the parent at the given epoch.
func (b *fixture) commitChild(r store.Run, epoch store.Epoch) *store.StartWrite {
	b.Helper()
	w := &store.StartWrite{Run: r, ParentEpoch: epoch}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	return w
}

// commitRunningChild commits and returns a running child that this case's worker owns. The parent is at epoch
// 1.
func (b *fixture) commitRunningChild(parent store.Run, name string) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	r.UUID, r.Parent, r.Name = store.NewChildUUID(parent.UUID), owner(parent.UUID), name
	wantOutcome(b, "start of child "+name, b.commitChild(r, epochAt(1)).Outcome, store.Written)
	return r
}

// commitPendingChild commits and returns a pending child that nobody has executed.
func (b *fixture) commitPendingChild(parent store.Run, name string) store.Run {
	b.Helper()
	r := b.child(parent, name)
	wantOutcome(b, "start of child "+name, b.commitChild(r, epochAt(1)).Outcome, store.Written)
	return r
}

// childEnd returns the write that completes a child and wakes its parent.
func (b *fixture) childEnd(r store.Run) store.OwnershipEnd {
	w := b.newCompletion(r.UUID, r.Epoch)
	w.ParentToWake = r.Parent
	return w
}

// park returns the write that makes a run wait until wakeAt or, if that is zero, until something
// else wakes it.
func (b *fixture) park(r store.Run, wakeAt time.Time) store.OwnershipEnd {
	return store.OwnershipEnd{UUID: r.UUID, Now: b.afterStart(3 * time.Second), Epoch: r.Epoch, Status: store.Waiting, WakeAt: wakeAt}
}

// openChildStep returns the parent's checkpoint for a child that has not ended.
func (b *fixture) openChildStep(parent, child store.Run) store.Step {
	s := b.startedMarker(parent.UUID, parent.Epoch, 1, child.Name)
	s.Kind, s.Output = store.KindChild, []byte(`"`+child.UUID.String()+`"`)
	return s
}

func childWhole(b *fixture) {
	parent := b.commitRunningRun("parent")
	for _, detached := range []bool{false, true} {
		child := b.child(parent, fmt.Sprint("charge, detached: ", detached))
		child.Detached, child.Version, child.Deadline = detached, "v1", b.afterStart(time.Hour)
		start, row := &store.StartWrite{Run: child, ParentEpoch: epochAt(1)}, &store.StepWrite{Step: b.openChildStep(parent, child)}
		for _, when := range []string{"first", "replayed"} {
			b.commit(&store.Batch{Starts: []*store.StartWrite{start}, Steps: []*store.StepWrite{row}})
			wantOutcome(b, "the child, "+when, start.Outcome, store.Written)
			wantOutcome(b, "its row, "+when, row.Outcome, store.Written)
		}
		wantRun(b, "the child", b.row(child.UUID), child)
		q := b.query(b.now)
		got := b.claimOne(q, child.UUID).Run
		child.Status, child.Epoch, child.Owner, child.WakeAt, child.StartedAt = store.Running, epochAt(1), owner(q.Worker), q.LeaseUntil, b.now
		wantRun(b, "the child claimed", got, child)
	}
	wantRun(b, "the parent", b.row(parent.UUID), parent)
}

func childGuarded(b *fixture) {
	missing, _ := store.NewRootIdentity("")
	refuse := func(what string, parent store.Run, epoch store.Epoch, want store.RunState) {
		b.Helper()
		child := b.child(parent, "charge")
		for tagged, tags := range map[string][]store.Tag{"": nil, ", tagged": {{Key: "team", Value: "red"}}} {
			w := &store.StartWrite{Run: child, ParentEpoch: epoch, Tags: tags}
			bystander := &store.StartWrite{Run: b.newPendingRun("", b.afterStart(1000*time.Hour))}
			b.commit(&store.Batch{Starts: []*store.StartWrite{w, bystander}})
			wantOutcome(b, what+tagged, w.Outcome, store.Fenced)
			wantState(b, what+tagged, w.RunState, want)
			wantOutcome(b, what+tagged+": a stranger in the batch", bystander.Outcome, store.Written)
			if rows := b.get(child.UUID.String()); rows[0] != nil {
				b.Errorf("%s%s: the child is there", what, tagged)
			}
		}
	}
	refuse("no parent", store.Run{UUID: missing}, epochAt(1), store.RunState{})
	for _, status := range []store.Status{store.Pending, store.Waiting, store.Paused, store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("")
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		refuse("a parent that is "+status.String(), r, epochAt(1), releasedRunState(status))
	}
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	for _, epoch := range []store.Epoch{{}, epochAt(1), epochAt(3)} {
		refuse(fmt.Sprintf("epoch %s of a parent at 2", epoch), r, epoch, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)})
	}
	for verb, bit := range map[store.ControlVerb]store.ControlBits{store.VerbPause: store.PausedItself, store.VerbCancel: store.CancelRequested} {
		r := b.commitRunningRun("")
		b.controlExistingRuns(verb, r.UUID)
		refuse(fmt.Sprintf("a parent asked by verb %d", verb), r, epochAt(1), store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: bit})
	}
	paused := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.controlExistingRuns(store.VerbResume, paused.UUID)
	wantOutcome(b, "a parent that was resumed", b.commitChild(b.child(paused, "charge"), epochAt(1)).Outcome, store.Written)
}

// childKeptOut checks that a requested pause or cancel fences the start of a child, and no other
// checkpoint.
func childKeptOut(b *fixture) {
	for verb, bit := range bitsSetByVerb {
		parent := b.commitRunningRun("")
		before := b.commitPendingChild(parent, "before")
		noted := b.commitStep(b.openChildStep(parent, before), false)
		b.controlExistingRuns(verb, parent.UUID)
		want := store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: bit}
		child := b.child(parent, "charge")
		start, row := &store.StartWrite{Run: child, ParentEpoch: epochAt(1)}, &store.StepWrite{Step: b.openChildStep(parent, child)}
		step := &store.StepWrite{Step: b.completed(parent.UUID, epochAt(1), "step")}
		b.commit(&store.Batch{Starts: []*store.StartWrite{start}, Steps: []*store.StepWrite{step, row}})
		wantOutcome(b, "the child", start.Outcome, store.Fenced)
		wantState(b, "the child", start.RunState, want)
		wantOutcome(b, "its row", row.Outcome, store.Fenced)
		wantState(b, "its row", row.RunState, want)
		wantOutcome(b, "a step beside it", step.Outcome, store.Written)
		wantOutcome(b, "an earlier child's row, replayed", b.commitStep(noted.Step, false).Outcome, store.Written)
		end := noted.Step
		end.Status, end.Output, end.EndedAt = store.StepCompleted, []byte(`"done"`), b.afterStart(time.Second)
		wantOutcome(b, "an earlier child's end", b.commitStep(end, true).Outcome, store.Written)
		wantSteps(b, "history", b.history(parent.UUID), end, step.Step)
	}
}

func childAdopts(b *fixture) {
	parent := b.commitPendingRun("parent", b.now)
	b.claimOne(b.query(b.now), parent.UUID)
	first := b.child(parent, "charge")
	first.WakeAt = b.afterStart(100 * time.Hour)
	wantOutcome(b, "the first", b.commitChild(first, epochAt(1)).Outcome, store.Written)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), parent.UUID)
	again := b.commitChild(b.child(parent, "charge"), epochAt(2))
	wantOutcome(b, "the next owner's", again.Outcome, store.AlreadyRecorded)
	if again.ExistingRun == nil {
		b.Fatal("the next owner's: no row is attached")
	}
	wantRun(b, "the row attached", *again.ExistingRun, first)
	wantOutcome(b, "the superseded owner's", b.commitChild(b.child(parent, "charge"), epochAt(1)).Outcome, store.Fenced)
}

func childReplay(b *fixture) {
	parent := b.commitPendingRun("parent", b.now)
	b.claimOne(b.query(b.now), parent.UUID)
	parent.Epoch = epochAt(1)
	child := b.newRunningRun("charge")
	child.UUID, child.Parent = store.NewChildUUID(parent.UUID), owner(parent.UUID)
	start := &store.StartWrite{Run: child, ParentEpoch: epochAt(1)}
	again := func(when string) {
		b.Helper()
		start.Outcome, start.ExistingRun, start.RunState = store.Fenced, &store.Run{}, store.RunState{Found: true} // results of an earlier try
		b.commit(&store.Batch{Starts: []*store.StartWrite{start}})
		wantOutcome(b, when, start.Outcome, store.Written)
		if start.ExistingRun != nil {
			b.Errorf("%s: a row is attached to a written start", when)
		}
	}
	again("first")
	again("replayed")
	b.controlExistingRuns(store.VerbPause, parent.UUID)
	again("replayed after its parent was asked to pause")
	b.controlExistingRuns(store.VerbResume, parent.UUID)
	b.commitOwnershipEnd(b.childEnd(child))
	again("replayed after the child's end")
	b.claimOne(b.query(b.afterStart(2*time.Hour)), parent.UUID)
	again("replayed in the next epoch")
	b.commitOwnershipEnd(b.newCompletion(parent.UUID, epochAt(2)))
	again("replayed after its parent's end")
}

func childWakes(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		for _, wakeAt := range []time.Time{{}, b.afterStart(5 * time.Hour)} {
			parent := b.commitRunningRun("")
			child := b.commitRunningChild(parent, "charge")
			b.commitOwnershipEnd(b.park(parent, wakeAt))
			if got := b.claim(b.query(b.afterStart(4 * time.Hour))); len(got.Runs) != 1 || got.Runs[0].Run.UUID != child.UUID {
				b.Fatalf("before its end: claimed %v, want the child alone, whose lease is over", describeClaims(got.Runs))
			}
			end := b.childEnd(child)
			end.Epoch, end.Status, end.Output, end.Now = epochAt(2), status, nil, b.afterStart(4*time.Hour)
			wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
			if got := b.row(parent.UUID); !got.WakeAt.Equal(end.Now) {
				b.Errorf("a child has %s: its parent, waiting until %s, is %s and wakes at %s, want %s",
					status, show(wakeAt), got.Status, show(got.WakeAt), show(end.Now))
			}
			b.claimOne(b.query(end.Now), parent.UUID)
			b.commitOwnershipEnd(b.newCompletion(parent.UUID, epochAt(2)))
		}
	}
}

func childMarks(b *fixture) {
	for _, wakeAt := range []time.Time{{}, b.afterStart(5 * time.Hour)} {
		parent := b.commitRunningRun("")
		b.commitOwnershipEnd(b.childEnd(b.commitRunningChild(parent, "charge")))
		if got := b.row(parent.UUID); got.Status != store.Running || !got.WakeAt.Equal(parent.WakeAt) {
			b.Errorf("the running parent: %s, wakes at %s, want its lease as it was", got.Status, show(got.WakeAt))
		}
		park := b.park(parent, wakeAt)
		for _, when := range []string{"first", "replayed"} {
			wantOutcome(b, "the park, "+when, b.commitOwnershipEnd(park).Outcome, store.Written)
			if got := b.row(parent.UUID); got.Status != store.Waiting || !got.WakeAt.Equal(park.Now) {
				b.Errorf("parked, %s: %s, wakes at %s, want waiting, at once: %s", when, got.Status, show(got.WakeAt), show(park.Now))
			}
		}
		b.claimOne(b.query(park.Now), parent.UUID)
		parent.Epoch = epochAt(2)
		b.commitOwnershipEnd(b.park(parent, wakeAt))
		if got := b.row(parent.UUID); !got.WakeAt.Equal(wakeAt) {
			b.Errorf("parked again: wakes at %s, want %s: it was woken before", show(got.WakeAt), show(wakeAt))
		}
	}
}

func childSeveral(b *fixture) {
	parent := b.commitRunningRun("parent")
	one, two, three := b.commitRunningChild(parent, "one"), b.commitRunningChild(parent, "two"), b.commitRunningChild(parent, "three")
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	b.commitOwnershipEnd(b.childEnd(one))
	b.claimOne(b.query(b.afterStart(time.Minute)), parent.UUID)
	parent.Epoch = epochAt(2)
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	second, third := b.childEnd(two), b.childEnd(three)
	b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&second, &third}})
	wantOutcome(b, "the second end", second.Outcome, store.Written)
	wantOutcome(b, "the third end", third.Outcome, store.Written)
	b.claimOne(b.query(b.afterStart(time.Minute)), parent.UUID)
}

func childOneBatch(b *fixture) {
	for _, first := range []string{"the end", "the park"} {
		parent := b.commitRunningRun("")
		child := b.commitRunningChild(parent, "charge")
		end, park := b.childEnd(child), b.park(parent, time.Time{})
		batch := &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end, &park}}
		if first == "the park" {
			batch.OwnershipEnds[0], batch.OwnershipEnds[1] = &park, &end
		}
		b.commit(batch)
		wantOutcome(b, "the end", end.Outcome, store.Written)
		wantOutcome(b, "the park", park.Outcome, store.Written)
		b.claimOne(b.query(b.afterStart(time.Minute)), parent.UUID)
		b.commitOwnershipEnd(b.newCompletion(parent.UUID, epochAt(2)))
	}
	parent := b.commitRunningRun("")
	last, all := b.childEnd(b.commitRunningChild(parent, "charge")), b.newCompletion(parent.UUID, epochAt(1))
	b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&all, &last}})
	wantOutcome(b, "both end: the child", last.Outcome, store.Written)
	wantOutcome(b, "both end: the parent", all.Outcome, store.Written)
	if got := b.row(parent.UUID); got.Status != store.Completed || !got.WakeAt.IsZero() {
		b.Errorf("both end: the parent is %s and wakes at %s, want completed, never", got.Status, show(got.WakeAt))
	}
}

func childClaimForgets(b *fixture) {
	parent := b.commitRunningRun("parent")
	b.commitOwnershipEnd(b.childEnd(b.commitRunningChild(parent, "charge")))
	b.claimOne(b.query(b.afterStart(2*time.Hour)), parent.UUID) // the parent's lease has expired; the claimed history shows that the child has ended
	parent.Epoch = epochAt(2)
	b.commitOwnershipEnd(b.park(parent, b.afterStart(50*time.Hour)))
	if got := b.row(parent.UUID); !got.WakeAt.Equal(b.afterStart(50 * time.Hour)) {
		b.Errorf("parked: wakes at %s, want as given: what woke it came before the claim", show(got.WakeAt))
	}
}

func childLeaves(b *fixture) {
	for what, leave := range map[string]func(parent store.Run){
		"paused": func(p store.Run) {
			b.commitOwnershipEnd(b.park(p, time.Time{}))
			b.controlExistingRuns(store.VerbPause, p.UUID)
		},
		"completed": func(p store.Run) { b.commitOwnershipEnd(b.newCompletion(p.UUID, epochAt(1))) },
		"pending": func(p store.Run) {
			b.commitOwnershipEnd(store.OwnershipEnd{UUID: p.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.afterStart(90 * time.Hour)})
		},
	} {
		parent := b.commitRunningRun("")
		child := b.commitRunningChild(parent, "charge")
		leave(parent)
		before := b.row(parent.UUID)
		wantOutcome(b, "the end of a child of a parent that is "+what, b.commitOwnershipEnd(b.childEnd(child)).Outcome, store.Written)
		wantRun(b, "the parent, "+what, b.row(parent.UUID), before)
	}
	orphan := b.commitRunningRun("orphan")
	end := b.childEnd(orphan)
	end.ParentToWake = owner(uuid.New())
	wantOutcome(b, "the end of a child whose parent was removed", b.commitOwnershipEnd(end).Outcome, store.Written)
}

func childFenced(b *fixture) {
	parent := b.commitRunningRun("parent")
	child := b.commitPendingChild(parent, "charge")
	b.claimOne(b.query(b.now), child.UUID)
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	before := b.row(parent.UUID)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), child.UUID)
	child.Epoch = epochAt(1)
	wantOutcome(b, "the end by a superseded owner", b.commitOwnershipEnd(b.childEnd(child)).Outcome, store.Fenced)
	wantRun(b, "the parent", b.row(parent.UUID), before)
}

// raceChildEnd parks a parent while its child ends. Whichever is first, the parent is claimable
// afterwards.
func raceChildEnd(b *fixture, s store.Store) {
	other := b.through(s)
	for range testsize.Of(60, 20) {
		parent := b.commitRunningRun("")
		child := b.commitRunningChild(parent, "charge")
		end, park := b.childEnd(child), b.park(parent, time.Time{})
		b.together(2, func(i int) error {
			if i == 0 {
				return b.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&park}})
			}
			return other.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}})
		})
		wantOutcome(b, "the park", park.Outcome, store.Written)
		wantOutcome(b, "the end", end.Outcome, store.Written)
		b.claimOne(b.query(b.afterStart(time.Minute)), parent.UUID)
		b.commitOwnershipEnd(b.newCompletion(parent.UUID, epochAt(2)))
	}
}
