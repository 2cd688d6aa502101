package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var orders = []test{
	{"a pause, and a resume", orderPause},
	{"a cancel of what was never executed", orderCancel},
	{"what was executed is asked", orderExecuted},
	{"a tree of depth 5", orderTree},
	{"a dry run changes nothing", orderDryRun},
	{"own pauses and inherited ones are kept apart", orderApart},
	{"each scope", orderScopes},
	{"beneath an ended run", orderEndedMiddle},
	{"the first reason is kept", orderFirst},
	{"a replay changes nothing", orderReplay},
	{"no run, an ended run, and others", orderUnknown},
	{"parents are woken", orderWakes},
	{"a resume that freezes moves what is waited for", orderFreeze},
	{"a resume that freezes leaves a sleep that was over", orderFreezeLate},
	{"a resume that does not", orderNoFreeze},
	{"a large tree", orderLarge},
	{"many runs at once", orderMany},
}

func orderPause(b *fixture) {
	for name, begin := range map[string]func() store.Run{
		"running": func() store.Run { return b.commitRunningRun("running") },
		"pending": func() store.Run { return b.commitPendingRun("pending", b.afterStart(20*time.Minute)) },
		"waiting": func() store.Run {
			r := b.commitRunningRun("waiting")
			b.commitOwnershipEnd(b.park(r, b.afterStart(20*time.Minute)))
			return r
		},
	} {
		before := b.row(begin().UUID)
		o := b.newControlRequest(store.VerbPause, before.UUID)
		want := store.ControlResult{Found: true, Status: before.Status, ChangedCount: 1}
		if before.Status == store.Running {
			want.ChangedCount, want.RequestedCount = 0, 1
		}
		b.wantAnswers("pause of "+name, b.controlRuns(o), want)
		paused := before
		paused.Control, paused.PauseOrHoldReason, paused.PausedBy, paused.PausedAt = store.PausedItself, o.Reason, o.Actor, o.Now
		if before.Status != store.Running {
			paused.Status, paused.WakeAt = store.Paused, time.Time{}
		}
		wantRun(b, name+", paused", b.row(before.UUID), paused)
		if got := b.claim(b.query(b.afterStart(30 * time.Minute))); len(got.Runs) != 0 {
			b.Errorf("%s, paused: claimed %v", name, describeClaims(got.Runs))
		}
		o = b.newControlRequest(store.VerbResume, before.UUID)
		want = store.ControlResult{Found: true, Status: paused.Status, ControlBefore: store.PausedItself, ChangedCount: 1}
		b.wantAnswers("resume of "+name, b.controlRuns(o), want)
		resumed := before
		if before.Status != store.Running {
			resumed.Status, resumed.WakeAt = store.Pending, o.Now
		}
		wantRun(b, name+", resumed", b.row(before.UUID), resumed)
		if before.Status != store.Running {
			b.claimOne(b.query(o.Now), before.UUID)
		}
	}
}

func orderCancel(b *fixture) {
	pending, later, paused := b.commitPendingRun("pending", b.now), b.commitPendingRun("later", b.afterStart(time.Hour)), b.commitPendingRun("paused", b.now)
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	for _, id := range []uuid.UUID{pending.UUID, later.UUID, paused.UUID} {
		want := b.row(id)
		o := b.newControlRequest(store.VerbCancel, id)
		b.wantAnswers("cancel of "+want.Name, b.controlRuns(o), store.ControlResult{Found: true, Status: want.Status, ControlBefore: want.Control, ChangedCount: 1})
		want.Status, want.Control, want.Error, want.WakeAt, want.EndedAt = store.Cancelled, store.CancelRequested, o.Error, time.Time{}, o.Now
		want.PauseOrHoldReason, want.PausedBy, want.PausedAt = "", "", time.Time{}
		want.CancelReason, want.CancelledBy, want.CancelledAt = o.Reason, o.Actor, o.Now
		wantRun(b, want.Name+", cancelled", b.row(id), want)
	}
	if got := b.claim(b.query(b.afterStart(1000 * time.Hour))); len(got.Runs) != 0 || !got.NextDue.IsZero() {
		b.Errorf("cancelled: claimed %v, next %s, want nothing, ever", describeClaims(got.Runs), show(got.NextDue))
	}
}

// orderExecuted checks that a cancelled run is executed once more if it was executed before,
// whatever it has recorded, because it may have registered compensations and had effects.
func orderExecuted(b *fixture) {
	for name, leave := range map[string]func(r store.Run) store.ControlBits{
		"no checkpoint": func(r store.Run) (none store.ControlBits) {
			b.commitOwnershipEnd(b.park(r, b.afterStart(1000*time.Hour)))
			return
		},
		"a wait": func(r store.Run) store.ControlBits {
			s := b.startedMarker(r.UUID, epochAt(1), 1, "wait")
			s.Kind = store.KindReceive
			b.commitStep(s, false)
			b.commitOwnershipEnd(b.park(r, time.Time{}))
			return 0
		},
		"paused": func(r store.Run) store.ControlBits {
			b.commitOwnershipEnd(b.park(r, time.Time{}))
			b.controlExistingRuns(store.VerbPause, r.UUID)
			return store.PausedItself
		},
	} {
		r := b.commitRunningRun("")
		control := leave(r)
		was := b.row(r.UUID)
		o := b.newControlRequest(store.VerbCancel, r.UUID)
		b.wantAnswers(name, b.controlRuns(o), store.ControlResult{Found: true, Status: was.Status, ControlBefore: control, RequestedCount: 1})
		b.wantBits(name, r.UUID, store.Pending, store.CancelRequested)
		b.claimOne(b.query(o.Now), r.UUID)
	}
	running := b.commitRunningRun("")
	o := b.controlExistingRuns(store.VerbCancel, running.UUID)
	b.wantAnswers("a running one", o.Results, store.ControlResult{Found: true, Status: store.Running, RequestedCount: 1})
	running.Control, running.CancelReason, running.CancelledBy, running.CancelledAt = store.CancelRequested, o.Reason, o.Actor, o.Now
	wantRun(b, "a running one", b.row(running.UUID), running)
}

// chain commits a run, its child, a grandchild and so on, all of them running, and returns them.
func (b *fixture) chain(depth int) []store.Run {
	b.Helper()
	all := []store.Run{b.commitRunningRun("")}
	for len(all) < depth {
		all = append(all, b.commitRunningChild(all[len(all)-1], fmt.Sprint("depth-", len(all))))
	}
	return all
}

func orderDryRun(b *fixture) {
	root := b.commitRunningRun("root")
	pending, running := b.commitPendingChild(root, "pending"), b.commitRunningChild(root, "running")
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel, store.VerbTerminate} {
		before := []store.Run{b.row(root.UUID), b.row(pending.UUID), b.row(running.UUID)}
		dry, wet := b.newControlRequest(verb, root.UUID), b.newControlRequest(verb, root.UUID)
		dry.DryRun = true
		planned := b.controlRuns(dry)
		for _, r := range before {
			wantRun(b, "after a dry run", b.row(r.UUID), r)
		}
		b.wantAnswers("the dry run", planned, b.controlRuns(wet)...)
		if planned[0].ChangedCount+planned[0].RequestedCount == 0 || !slices.Equal(dry.ChangedRuns, wet.ChangedRuns) || !slices.Equal(dry.RequestedRuns, wet.RequestedRuns) {
			b.Errorf("the dry run: %+v, %v and %v; the request: %v and %v", planned, dry.ChangedRuns, dry.RequestedRuns, wet.ChangedRuns, wet.RequestedRuns)
		}
	}
}

func orderTree(b *fixture) {
	tree := b.chain(6)
	var leaves []store.Run
	for _, r := range tree[:5] {
		leaves = append(leaves, b.commitPendingChild(r, "leaf"))
	}
	bystander := b.commitRunningRun("bystander")
	b.wantAnswers("the pause", b.controlRuns(b.newControlRequest(store.VerbPause, tree[0].UUID)), store.ControlResult{Found: true, Status: store.Running, ChangedCount: 5, RequestedCount: 6})
	for i, r := range tree {
		bits := store.PausedByAncestor
		if i == 0 {
			bits = store.PausedItself
		}
		b.wantBits("paused", r.UUID, store.Running, bits)
	}
	for _, r := range leaves {
		b.wantBits("paused", r.UUID, store.Paused, store.PausedByAncestor)
	}
	b.controlExistingRuns(store.VerbResume, tree[0].UUID)
	for _, r := range tree {
		b.wantBits("resumed", r.UUID, store.Running, 0)
	}
	for _, r := range leaves {
		b.wantBits("resumed", r.UUID, store.Pending, 0)
	}
	b.wantAnswers("the cancel", b.controlRuns(b.newControlRequest(store.VerbCancel, tree[1].UUID)), store.ControlResult{Found: true, Status: store.Running, ChangedCount: 4, RequestedCount: 5})
	for _, r := range tree[1:] {
		b.wantBits("cancelled", r.UUID, store.Running, store.CancelRequested)
	}
	for _, r := range leaves[1:] {
		b.wantBits("cancelled", r.UUID, store.Cancelled, store.CancelRequested)
	}
	b.wantBits("above", tree[0].UUID, store.Running, 0)
	b.wantBits("beside", leaves[0].UUID, store.Pending, 0)
	wantRun(b, "a stranger", b.row(bystander.UUID), bystander)
}

func orderApart(b *fixture) {
	parent := b.commitRunningRun("parent")
	own, beneath, plain := b.commitRunningChild(parent, "own"), store.Run{}, b.commitPendingChild(parent, "plain")
	beneath = b.commitPendingChild(own, "beneath")
	b.commitOwnershipEnd(b.park(own, time.Time{}))
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	b.controlExistingRuns(store.VerbPause, own.UUID)
	b.controlExistingRuns(store.VerbPause, parent.UUID)
	b.wantBits("both paused", own.UUID, store.Paused, store.PausedMask)
	b.wantBits("both paused", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.controlExistingRuns(store.VerbResume, parent.UUID)
	b.wantBits("parent resumed", parent.UUID, store.Pending, 0)
	b.wantBits("parent resumed", plain.UUID, store.Pending, 0)
	b.wantBits("parent resumed", own.UUID, store.Paused, store.PausedItself)
	b.wantBits("parent resumed", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.controlExistingRuns(store.VerbPause, parent.UUID)
	b.controlExistingRuns(store.VerbResume, own.UUID)
	b.wantBits("child resumed, below a paused parent", own.UUID, store.Paused, store.PausedByAncestor)
	b.wantBits("child resumed, below a paused parent", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.controlExistingRuns(store.VerbResume, parent.UUID)
	for _, id := range []uuid.UUID{parent.UUID, own.UUID, beneath.UUID, plain.UUID} {
		b.wantBits("all resumed", id, store.Pending, 0)
	}
}

func orderScopes(b *fixture) {
	type want map[string]store.Status // statuses of the cancelled runs: Cancelled at once, or Running with a requested cancel
	for scope, expected := range map[store.CancelScope]want{
		store.CancelWholeTree:       {"root": store.Running, "child": store.Running, "new": store.Cancelled, "detached": store.Cancelled, "grandchild": store.Cancelled},
		store.CancelNotStarted:      {"root": store.Running, "new": store.Cancelled, "detached": store.Cancelled, "grandchild": store.Cancelled},
		store.CancelRunItself:       {"root": store.Running},
		store.CancelDescendants:     {"child": store.Running, "new": store.Cancelled, "grandchild": store.Cancelled},
		store.CancelWithoutDetached: {"root": store.Running, "child": store.Running, "new": store.Cancelled, "grandchild": store.Cancelled},
	} {
		root := b.commitRunningRun("")
		child := b.commitRunningChild(root, "child")
		detached := b.child(root, "detached")
		detached.Detached = true
		b.commitChild(detached, epochAt(1))
		all := map[string]store.Run{
			"root": root, "child": child, "new": b.commitPendingChild(root, "new"), "detached": detached, "grandchild": b.commitPendingChild(child, "grandchild"),
		}
		o := b.newControlRequest(store.VerbCancel, root.UUID)
		o.Scope = scope
		b.controlRuns(o)
		for name, r := range all {
			what := fmt.Sprintf("scope %d, %s", scope, name)
			if status, ok := expected[name]; ok {
				b.wantBits(what, r.UUID, status, store.CancelRequested)
			} else {
				b.wantBits(what, r.UUID, r.Status, 0)
			}
			// A run that continues although its parent ends is made detached, so that the parent's
			// end does not cancel it.
			spared := name == "detached" || scope == store.CancelRunItself && name != "root" && name != "grandchild" || scope == store.CancelNotStarted && name == "child"
			if got := b.row(r.UUID).Detached; got != spared {
				b.Errorf("%s: detached %v, want %v", what, got, spared)
			}
		}
	}
}

func orderEndedMiddle(b *fixture) {
	root := b.commitRunningRun("root")
	middle := b.commitRunningChild(root, "middle")
	leaf := b.child(middle, "leaf")
	leaf.Detached = true
	b.commitChild(leaf, epochAt(1))
	b.commitOwnershipEnd(b.childEnd(middle))
	ended := b.row(middle.UUID)
	b.controlExistingRuns(store.VerbPause, root.UUID)
	b.wantBits("paused", leaf.UUID, store.Paused, store.PausedByAncestor)
	b.controlExistingRuns(store.VerbResume, root.UUID)
	b.wantBits("resumed", leaf.UUID, store.Pending, 0)
	b.controlExistingRuns(store.VerbCancel, root.UUID)
	b.wantBits("cancelled", leaf.UUID, store.Cancelled, store.CancelRequested)
	wantRun(b, "what had ended", b.row(middle.UUID), ended)
}

func orderFirst(b *fixture) {
	running, waiting := b.commitRunningRun("running"), b.commitRunningRun("waiting")
	b.commitOwnershipEnd(b.park(waiting, time.Time{}))
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbCancel} {
		b.controlExistingRuns(verb, running.UUID, waiting.UUID)
		first := []store.Run{b.row(running.UUID), b.row(waiting.UUID)}
		second := b.newControlRequest(verb, running.UUID, waiting.UUID)
		second.Now, second.Reason, second.Actor, second.Error = b.afterStart(time.Hour), "another", "bob", []byte(`"other"`)
		b.controlRuns(second)
		for _, want := range first {
			wantRun(b, fmt.Sprintf("verb %d twice, %s", verb, want.Name), b.row(want.UUID), want)
		}
	}
}

func orderReplay(b *fixture) {
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel} {
		tree := b.chain(3)
		leaf := b.commitPendingChild(tree[2], "leaf")
		b.commitOwnershipEnd(b.park(tree[1], time.Time{}))
		if verb == store.VerbResume {
			b.controlExistingRuns(store.VerbPause, tree[0].UUID)
		}
		o := b.controlExistingRuns(verb, tree[0].UUID)
		var before []store.Run
		for _, id := range []uuid.UUID{tree[0].UUID, tree[1].UUID, tree[2].UUID, leaf.UUID} {
			before = append(before, b.row(id))
		}
		o.Now = b.afterStart(time.Hour)
		b.controlRuns(o)
		if o.Results[0].ChangedCount != 0 || !o.Results[0].Found {
			b.Errorf("verb %d, replayed: returned %+v, want found, and nothing changed", verb, o.Results[0])
		}
		for _, r := range before {
			wantRun(b, fmt.Sprintf("verb %d, replayed, %s", verb, r.Name), b.row(r.UUID), r)
		}
	}
}

func orderUnknown(b *fixture) {
	for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel} {
		ended, live := b.commitRunningRun(""), b.commitRunningRun("")
		b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
		before := b.row(ended.UUID)
		o := b.newControlRequest(verb, uuid.New(), ended.UUID, live.UUID, uuid.New())
		got := b.controlRuns(o)
		if got[0] != (store.ControlResult{}) || got[3] != (store.ControlResult{}) {
			b.Errorf("verb %d of no run: returned %+v and %+v, want neither found", verb, got[0], got[3])
		}
		if got[1] != (store.ControlResult{Found: true, Status: store.Completed}) {
			b.Errorf("verb %d of an ended run: returned %+v, want completed, and nothing else", verb, got[1])
		}
		wantRun(b, "the ended run", b.row(ended.UUID), before)
		b.wantBits(fmt.Sprintf("verb %d of the run between them", verb), live.UUID, store.Running, bitsSetByVerb[verb])
	}
	b.controlRuns(b.newControlRequest(store.VerbCancel))
	if rows := b.get("nobody"); rows[0] != nil {
		b.Error("an order of nothing made a run")
	}
}

func orderWakes(b *fixture) {
	waiting, running, busy := b.commitRunningRun("waiting"), b.commitRunningRun("running"), b.commitRunningRun("busy")
	one, two := b.commitPendingChild(waiting, "charge"), b.commitPendingChild(running, "charge")
	three := b.commitRunningChild(busy, "charge")
	b.commitOwnershipEnd(b.park(waiting, time.Time{}))
	b.commitOwnershipEnd(b.park(busy, time.Time{}))
	o := b.controlExistingRuns(store.VerbCancel, one.UUID, two.UUID, three.UUID)
	b.claimOne(b.query(o.Now), waiting.UUID)
	park := b.park(running, b.afterStart(90*time.Hour))
	b.commitOwnershipEnd(park)
	if got := b.row(running.UUID); !got.WakeAt.Equal(park.Now) {
		b.Errorf("the running parent parks until %s, want at once: its child was cancelled", show(got.WakeAt))
	}
	if got := b.row(busy.UUID); !got.WakeAt.IsZero() {
		b.Errorf("the parent of what still runs wakes at %s, want only when that has ended", show(got.WakeAt))
	}
}

func orderLarge(b *fixture) {
	root := b.commitRunningRun("root")
	batch := &store.Batch{}
	for i := range 400 {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.child(root, fmt.Sprint("item-", i)), ParentEpoch: epochAt(1)})
	}
	b.commit(batch)
	b.wantAnswers("the cancel", b.controlRuns(b.newControlRequest(store.VerbCancel, root.UUID)), store.ControlResult{Found: true, Status: store.Running, ChangedCount: 400, RequestedCount: 1})
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 0 {
		b.Errorf("claimed %d of the cancelled children", len(got.Runs))
	}
}

func orderMany(b *fixture) {
	var all []uuid.UUID
	for range 100 {
		all = append(all, b.commitPendingRun("", b.now).UUID)
	}
	for i, a := range b.controlRuns(b.newControlRequest(store.VerbPause, all...)) {
		if a != (store.ControlResult{Found: true, Status: store.Pending, ChangedCount: 1}) {
			b.Errorf("run %d: returned %+v", i, a)
		}
	}
	b.controlExistingRuns(store.VerbResume, all...)
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 100 {
		b.Errorf("resumed: claimed %d, want 100", len(got.Runs))
	}
}
