package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var retentions = []test{
	{"a tree is deleted with everything that is its own, and nothing else", deleteTakesAll},
	{"a repeated deletion changes nothing", deleteRepeated},
	{"a run that is live is not deleted, nor one with a live child", deleteLive},
	{"a run that ended too short a time ago is not deleted", deleteYoung},
	{"a run that was repaired since is not deleted", deleteRepaired},
	{"detached children stay while they live", deleteDetached},
	{"superseded generations go with their run, and by themselves", deleteGenerations},
	{"a run that still has its place in a queue stays", deleteInQueue},
	{"a deleted ID can start again", deleteStartsAgain},
	{"an event tells who deleted what", deleteEvent},
	{"a tree that can be deleted goes without one that cannot", deleteSome},
	{"random trees are deleted as the plan says", deleteRandom},
	{"a deletion against a repair", func(b *fixture) { raceDeleteRepair(b, b.store) }},
	{"of two deletions at once, one deletes", func(b *fixture) { raceDeletions(b, b.store) }},
	{"a deletion against the end of a detached child", func(b *fixture) { raceDeleteDetached(b, b.store) }},
}

// deletionOf returns the deletion of the run's tree, an hour after the case began.
func (b *fixture) deletionOf(runs ...store.Run) *store.DeleteTreesRequest {
	d := &store.DeleteTreesRequest{Now: b.afterStart(time.Hour)}
	for _, r := range runs {
		d.Trees = append(d.Trees, store.DeleteTreeRequest{Root: r.UUID, Name: r.Name, Epoch: b.row(r.UUID).Epoch, EndedBefore: b.afterStart(30 * time.Minute)})
	}
	return d
}

// deleteTrees tries a deletion until no row of it is locked, and returns the outcome of its first tree.
func (b *fixture) deleteTrees(d *store.DeleteTreesRequest) store.WriteOutcome {
	b.Helper()
	for {
		err := b.store.DeleteTrees(b.ctx, d)
		if err == nil && d.Trees[0].Outcome != store.Locked {
			return d.Trees[0].Outcome
		}
		if b.ctx.Err() != nil || err != nil && !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("DeleteTrees: %v", err)
		}
	}
}

func (b *fixture) exists(run uuid.UUID) bool {
	b.Helper()
	found, err := b.store.Statuses(b.ctx, []uuid.UUID{run})
	if err != nil {
		b.Fatalf("Statuses: %v", err)
	}
	return found[0] != 0
}

// wantGone checks that nothing of a run is left.
func (b *fixture) wantGone(what string, run uuid.UUID) {
	b.Helper()
	if b.exists(run) {
		b.Errorf("%s is there", what)
	}
	b.wantNames(what, b.history(run))
	if n := len(b.generations(run)); n != 0 {
		b.Errorf("%s has %d generations", what, n)
	}
	if o, err := b.store.RunProgress(b.ctx, run, b.now); err != nil || len(o.Tags) != 0 {
		b.Errorf("%s: %+v, %v", what, o, err)
	}
	if got, err := b.store.CountUnreceivedSignals(b.ctx, []uuid.UUID{run}); err != nil || len(got) != 0 {
		b.Errorf("%s: %+v, %v", what, got, err)
	}
}

// completeRun ends a run of the first epoch as completed.
func (b *fixture) completeRun(r store.Run) {
	b.Helper()
	end := b.newCompletion(r.UUID, epochAt(1))
	end.ParentToWake = r.Parent
	wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
}

// detachedOf commits and returns a detached child of a running run.
func (b *fixture) detachedOf(parent store.Run, name string) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	r.UUID, r.Name = store.NewChildUUID(parent.UUID), name
	r.Parent, r.Detached = uuid.NullUUID{UUID: parent.UUID, Valid: true}, true
	w := &store.StartWrite{Run: r, ParentEpoch: epochAt(1)}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	wantOutcome(b, "the start of child "+name, w.Outcome, store.Written)
	return r
}

// addStepTagAndSignal gives a running run a checkpoint, a tag and a signal that it has not received.
func (b *fixture) addStepTagAndSignal(r store.Run) store.Run {
	b.Helper()
	b.commitStep(b.completed(r.UUID, epochAt(1), "first"), false)
	if ok, err := b.store.SetTags(b.ctx, r.UUID, []store.Tag{{Key: "team", Value: "a"}}, store.Epoch{}, store.ActorAndReason{}); err != nil || !ok {
		b.Fatal(ok, err)
	}
	w := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "n", Key: "k", CreatedAt: b.now}
	b.commit(&store.Batch{Signals: []*store.SignalWrite{w}})
	wantOutcome(b, "the signal", w.Outcome, store.Written)
	return r
}

func deleteTakesAll(b *fixture) {
	other := b.addStepTagAndSignal(b.commitRunningRun("other"))
	b.completeRun(other)
	root := b.addStepTagAndSignal(b.commitRunningRun("root"))
	kid := b.addStepTagAndSignal(b.childOf(root, "kid"))
	grandkid := b.addStepTagAndSignal(b.childOf(kid, "grandkid"))
	for _, r := range []store.Run{grandkid, kid, root} {
		b.completeRun(r)
	}
	d := b.deletionOf(root)
	wantOutcome(b, "the deletion", b.deleteTrees(d), store.Written)
	if d.Trees[0].DeletedRunCount != 3 {
		b.Errorf("%d runs were deleted", d.Trees[0].DeletedRunCount)
	}
	for _, r := range []store.Run{root, kid, grandkid} {
		b.wantGone(r.Name, r.UUID)
	}
	b.wantNames("the other run", b.history(other.UUID), "first")
	if o, err := b.store.RunProgress(b.ctx, other.UUID, b.now); err != nil || len(o.Tags) != 1 {
		b.Errorf("the tags of the other run: %+v, %v", o, err)
	}
}

func deleteRepeated(b *fixture) {
	r := b.commitRunningRun("")
	b.completeRun(r)
	d := b.deletionOf(r)
	wantOutcome(b, "the deletion", b.deleteTrees(d), store.Written)
	wantOutcome(b, "its repetition", b.deleteTrees(d), store.AlreadyRecorded)
	if err := b.store.DeleteTrees(b.ctx, &store.DeleteTreesRequest{Now: b.now}); err != nil {
		b.Errorf("a deletion of nothing: %v", err)
	}
}

// wantBlocked checks that a deletion is refused because of a run.
func (b *fixture) wantBlocked(what string, root, by store.Run) {
	b.Helper()
	d := b.deletionOf(root)
	wantOutcome(b, what, b.deleteTrees(d), store.Fenced)
	if got := d.Trees[0].Blocker; got.UUID != by.UUID {
		b.Errorf("%s: refused because of %+v", what, got)
	}
	if !b.exists(root.UUID) || !b.exists(by.UUID) {
		b.Errorf("%s: deleted", what)
	}
}

func deleteLive(b *fixture) {
	root := b.commitRunningRun("")
	b.wantBlocked("a running run", root, root)
	kid := b.childOf(root, "kid")
	b.failRun(root)
	b.wantBlocked("an ended run with a running child", root, kid)
	b.completeRun(kid)
	wantOutcome(b, "when all have ended", b.deleteTrees(b.deletionOf(root)), store.Written)
}

func deleteYoung(b *fixture) {
	r := b.commitRunningRun("")
	b.completeRun(r) // a minute after the case began
	d := b.deletionOf(r)
	d.Trees[0].EndedBefore = b.row(r.UUID).EndedAt
	wantOutcome(b, "a run that ended at the bound", b.deleteTrees(d), store.Fenced)
	d = b.deletionOf(r)
	d.Now, d.Trees[0].EndedBefore = b.row(r.UUID).EndedAt.Add(store.MinRetention), time.Time{}
	wantOutcome(b, "a run that has just ended", b.deleteTrees(d), store.Fenced)
	d.Trees[0].EndedBeforeCall = map[uuid.UUID]store.Epoch{r.UUID: epochAt(2)}
	wantOutcome(b, "another epoch of it was quiet", b.deleteTrees(d), store.Fenced)
	d.Trees[0].EndedBeforeCall, d.AwaitWriters = map[uuid.UUID]store.Epoch{r.UUID: epochAt(1)}, true
	wantOutcome(b, "after a wait", b.deleteTrees(d), store.Written)
}

func deleteRepaired(b *fixture) {
	r := b.failedRun("first")
	d := b.deletionOf(r)
	b.wantRepaired(b.repairOf(r, 1, "first"))
	wantOutcome(b, "a run that is live again", b.deleteTrees(d), store.Fenced)
	c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
	b.commitOwnershipEnd(b.newCompletion(r.UUID, c.Run.Epoch))
	wantOutcome(b, "a run that has ended again", b.deleteTrees(d), store.Fenced)
	wantOutcome(b, "as it is now", b.deleteTrees(b.deletionOf(r)), store.Written)
	b.wantGone("the run", r.UUID)
	b.wantNames("its first generation", b.history(store.GenerationUUID(r.UUID, 1)))
}

func deleteDetached(b *fixture) {
	root := b.commitRunningRun("")
	done, live := b.detachedOf(root, "done"), b.detachedOf(root, "live")
	doneBelow, liveBelow := b.childOf(live, "done below"), b.childOf(done, "live below")
	b.completeRun(doneBelow)
	b.completeRun(done)
	b.completeRun(root)
	d := b.deletionOf(root)
	wantOutcome(b, "the deletion", b.deleteTrees(d), store.Written)
	if d.Trees[0].DeletedRunCount != 1 {
		b.Errorf("%d runs were deleted", d.Trees[0].DeletedRunCount)
	}
	b.wantGone("the root", root.UUID)
	for _, r := range []store.Run{done, live, doneBelow, liveBelow} {
		if got := b.row(r.UUID); got.Parent.UUID != r.Parent.UUID {
			b.Errorf("run %q: %+v", r.Name, got)
		}
	}
	if tree, err := b.store.RunTree(b.ctx, live.UUID, false); err != nil || len(tree) != 2 {
		b.Errorf("its tree has %d runs, %v", len(tree), err)
	}
	b.completeRun(live)
	b.completeRun(liveBelow)
	for _, r := range []store.Run{live, done} {
		wantOutcome(b, r.Name, b.deleteTrees(b.deletionOf(r)), store.Written)
	}
	for _, r := range []store.Run{done, live, doneBelow, liveBelow} {
		b.wantGone(r.Name, r.UUID)
	}
}

func deleteGenerations(b *fixture) {
	root := b.commitRunningRun("")
	kid := b.childOf(root, "kid")
	b.commitStep(b.completed(root.UUID, epochAt(1), "first"), false)
	b.completeRun(kid)
	b.failRun(root)
	p := b.repairOf(b.row(root.UUID), 1)
	p.Runs[0].DetachedChildren = []uuid.UUID{kid.UUID}
	b.wantRepaired(p)
	archive := p.Runs[0].ArchiveID()
	all := b.treeToDelete(root.UUID)
	if len(all) != 3 {
		b.Fatalf("the tree is %+v", all)
	}
	if below := b.treeToDelete(archive); len(below) != 2 {
		b.Fatalf("the generation has %+v", below)
	}
	d := &store.DeleteTreesRequest{Now: b.afterStart(3 * time.Hour), Trees: []store.DeleteTreeRequest{{Root: archive, Epoch: root.Epoch, EndedBefore: p.Now}}}
	wantOutcome(b, "a young generation", b.deleteTrees(d), store.Fenced)
	d.Trees[0].EndedBefore = p.Now.Add(time.Second)
	wantOutcome(b, "an old generation of a live run", b.deleteTrees(d), store.Written)
	b.wantGone("the child of the generation", kid.UUID)
	b.wantNames("the generation", b.history(archive))
	if n := len(b.generations(root.UUID)); n != 0 {
		b.Errorf("%d generations are left", n)
	}
	if got := b.row(root.UUID); got.Status != store.Pending {
		b.Errorf("the run is %v", got.Status)
	}
}

func (b *fixture) treeToDelete(root uuid.UUID) []store.TreeNode {
	b.Helper()
	nodes, err := b.store.TreeToDelete(b.ctx, root)
	if err != nil {
		b.Fatalf("TreeToDelete: %v", err)
	}
	return nodes
}

func deleteInQueue(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	first, second := q.start(""), q.start("")
	q.wantBegun("at first", q.afterStart(time.Second), first)
	q.finishRuns(first)
	d := b.deletionOf(b.row(first))
	wantOutcome(b, "a run with a place", b.deleteTrees(d), store.Fenced)
	if !d.Trees[0].Blocker.HoldsQueuePlace {
		b.Errorf("refused because of %+v", d.Trees[0].Blocker)
	}
	q.wantBegun("when its place was taken back", q.afterStart(time.Second), second)
	wantOutcome(b, "a run without a place", b.deleteTrees(d), store.Written)
	b.wantGone("the run", first)
	q.runs = []uuid.UUID{second}
	q.finishRuns(second)
	q.admitAll(q.afterStart(time.Minute))
}

func deleteStartsAgain(b *fixture) {
	r := b.addStepTagAndSignal(b.commitRunningRun("again"))
	b.completeRun(r)
	wantOutcome(b, "the deletion", b.deleteTrees(b.deletionOf(r)), store.Written)
	next := b.commitRunningRun("again")
	b.wantNames("the next run", b.history(next.UUID))
	wantOutcome(b, "a late step of the former one", b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
	wantOutcome(b, "its late end", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
	late := &store.SignalWrite{Run: r.UUID, ID: uuid.New(), Name: "n", CreatedAt: b.now}
	b.commit(&store.Batch{Signals: []*store.SignalWrite{late}})
	wantOutcome(b, "its late signal", late.Outcome, store.Fenced)
	b.wantGone("the former one", r.UUID)
}

func deleteEvent(b *fixture) {
	root := b.commitRunningRun("root")
	b.completeRun(b.childOf(root, "kid"))
	b.completeRun(root)
	d := b.deletionOf(root)
	d.WithEvents, d.Actor, d.Reason = true, "ada", "asked to"
	wantOutcome(b, "the deletion", b.deleteTrees(d), store.Written)
	wantOutcome(b, "its repetition", b.deleteTrees(d), store.AlreadyRecorded)
	all := b.events("", 3)
	for len(all) < 3 && b.ctx.Err() == nil { // open transactions of others delay events
		all = b.events("", 3)
	}
	if e := all[len(all)-1]; len(all) != 3 || e.Type != store.EventDeleted || e.Run != root.UUID || e.Actor != "ada" || e.Reason != "asked to" || e.OldValue != "root" || e.NewValue != "2" || e.Name != "" {
		b.Errorf("the events are %+v", all)
	}
}

func deleteSome(b *fixture) {
	live, one, two := b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun("")
	b.completeRun(one)
	b.completeRun(two)
	d := b.deletionOf(one, live, two)
	wantOutcome(b, "the first", b.deleteTrees(d), store.Written)
	wantOutcome(b, "the live one", d.Trees[1].Outcome, store.Fenced)
	wantOutcome(b, "the last", d.Trees[2].Outcome, store.Written)
	if b.exists(one.UUID) || b.exists(two.UUID) || !b.exists(live.UUID) {
		b.Error("other runs are there")
	}
}

// deleteRandom: the rows that are left are those that the plan of the rows before does not have.
func deleteRandom(b *fixture) {
	for round := range 6 {
		random := rand.New(rand.NewPCG(uint64(round), 7))
		all := []store.Run{b.commitRunningRun(fmt.Sprint("root-", round))}
		for i := range 12 {
			parent := all[random.IntN(len(all))]
			if name := fmt.Sprint("kid-", i); random.IntN(3) == 0 {
				all = append(all, b.detachedOf(parent, name))
			} else {
				all = append(all, b.childOf(parent, name))
			}
		}
		alive := map[uuid.UUID]bool{}
		for i := len(all) - 1; i >= 0; i-- {
			if alive[all[i].UUID] = random.IntN(8) == 0 && i > 0; !alive[all[i].UUID] {
				b.completeRun(all[i])
			}
		}
		d := b.deletionOf(all[0])
		want := d.Trees[0]
		plan := want.Plan(b.treeToDelete(all[0].UUID), d.Now, func(uuid.UUID) bool { return true })
		gone := make(map[uuid.UUID]bool)
		for _, id := range plan.Runs {
			gone[id] = true
		}
		wantOutcome(b, "the deletion", b.deleteTrees(d), want.Outcome)
		for _, r := range all {
			if b.exists(r.UUID) == gone[r.UUID] || gone[r.UUID] && alive[r.UUID] {
				b.Errorf("round %d: run %q: planned %v, alive %v", round, r.Name, gone[r.UUID], alive[r.UUID])
			}
		}
	}
}
