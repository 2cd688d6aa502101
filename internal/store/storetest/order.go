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

// order executes a control request, which must succeed.
func (b *bed) order(o *store.ControlRequest) []store.ControlResult {
	b.Helper()
	if err := b.s.Control(b.ctx, o); err != nil {
		b.Fatalf("Order: %v", err)
	}
	if len(o.Results) != len(o.Runs) {
		b.Fatalf("Control returned %d of %d runs", len(o.Results), len(o.Runs))
	}
	return o.Results
}

// newOrder returns a control request whose time is ten seconds after the beginning of the case.
func (b *bed) newOrder(verb store.Verb, runs ...uuid.UUID) *store.ControlRequest {
	return &store.ControlRequest{Verb: verb, Runs: runs, Now: b.in(10 * time.Second), Reason: "it's by hand", Actor: "ann", Error: []byte(`"cancelled"`)}
}

// ordered executes a control request for runs that must exist.
func (b *bed) ordered(verb store.Verb, runs ...uuid.UUID) *store.ControlRequest {
	b.Helper()
	o := b.newOrder(verb, runs...)
	for i, a := range b.order(o) {
		if !a.Found {
			b.Fatalf("Order: the run %s was not found", runs[i])
		}
	}
	return o
}

func (b *bed) wantAnswers(what string, got []store.ControlResult, want ...store.ControlResult) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: returned %+v, want %+v", what, got, want)
	}
}

// wantBits compares the status of a run, and its control bits.
func (b *bed) wantBits(what string, run uuid.UUID, status store.Status, control store.ControlBits) {
	b.Helper()
	if got := b.row(run); got.Status != status || got.Control != control {
		b.Errorf("%s: %s is %s with %d, want %s with %d", what, short(got.Name), got.Status, got.Control, status, control)
	}
}

func orderPause(b *bed) {
	for name, begin := range map[string]func() store.Run{
		"running": func() store.Run { return b.started("running") },
		"pending": func() store.Run { return b.queued("pending", b.in(20*time.Minute)) },
		"waiting": func() store.Run {
			r := b.started("waiting")
			b.commitRun(b.park(r, b.in(20*time.Minute)))
			return r
		},
	} {
		before := b.row(begin().UUID)
		o := b.newOrder(store.VerbPause, before.UUID)
		want := store.ControlResult{Found: true, Status: before.Status, Changed: 1}
		if before.Status == store.Running {
			want.Changed, want.Requested = 0, 1
		}
		b.wantAnswers("pause of "+name, b.order(o), want)
		paused := before
		paused.Control, paused.Reason, paused.PausedBy, paused.PausedAt = store.PausedItself, o.Reason, o.Actor, o.Now
		if before.Status != store.Running {
			paused.Status, paused.WakeAt = store.Paused, time.Time{}
		}
		wantRun(b, name+", paused", b.row(before.UUID), paused)
		if got := b.claim(b.query(b.in(30 * time.Minute))); len(got.Runs) != 0 {
			b.Errorf("%s, paused: claimed %v", name, ids(got.Runs))
		}
		o = b.newOrder(store.VerbResume, before.UUID)
		want = store.ControlResult{Found: true, Status: paused.Status, Control: store.PausedItself, Changed: 1}
		b.wantAnswers("resume of "+name, b.order(o), want)
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

func orderCancel(b *bed) {
	pending, later, paused := b.queued("pending", b.now), b.queued("later", b.in(time.Hour)), b.queued("paused", b.now)
	b.ordered(store.VerbPause, paused.UUID)
	for _, id := range []uuid.UUID{pending.UUID, later.UUID, paused.UUID} {
		want := b.row(id)
		o := b.newOrder(store.VerbCancel, id)
		b.wantAnswers("cancel of "+want.Name, b.order(o), store.ControlResult{Found: true, Status: want.Status, Control: want.Control, Changed: 1})
		want.Status, want.Control, want.Error, want.WakeAt, want.EndedAt = store.Cancelled, store.CancelRequested, o.Error, time.Time{}, o.Now
		want.Reason, want.PausedBy, want.PausedAt = "", "", time.Time{}
		want.CancelReason, want.CancelledBy, want.CancelledAt = o.Reason, o.Actor, o.Now
		wantRun(b, want.Name+", cancelled", b.row(id), want)
	}
	if got := b.claim(b.query(b.in(1000 * time.Hour))); len(got.Runs) != 0 || !got.NextDue.IsZero() {
		b.Errorf("cancelled: claimed %v, next %s, want nothing, ever", ids(got.Runs), show(got.NextDue))
	}
}

// orderExecuted checks that a cancelled run is executed once more if it was executed before,
// whatever it has recorded, because it may have registered compensations and had effects.
func orderExecuted(b *bed) {
	for name, leave := range map[string]func(r store.Run) store.ControlBits{
		"no checkpoint": func(r store.Run) store.ControlBits { b.commitRun(b.park(r, b.in(1000*time.Hour))); return 0 },
		"a wait": func(r store.Run) store.ControlBits {
			s := b.began(r.UUID, epochAt(1), 1, "wait")
			s.Kind = store.KindReceive
			b.commitStep(s, false)
			b.commitRun(b.park(r, time.Time{}))
			return 0
		},
		"paused": func(r store.Run) store.ControlBits {
			b.commitRun(b.park(r, time.Time{}))
			b.ordered(store.VerbPause, r.UUID)
			return store.PausedItself
		},
	} {
		r := b.started("")
		control := leave(r)
		was := b.row(r.UUID)
		o := b.newOrder(store.VerbCancel, r.UUID)
		b.wantAnswers(name, b.order(o), store.ControlResult{Found: true, Status: was.Status, Control: control, Requested: 1})
		b.wantBits(name, r.UUID, store.Pending, store.CancelRequested)
		b.claimOne(b.query(o.Now), r.UUID)
	}
	running := b.started("")
	o := b.ordered(store.VerbCancel, running.UUID)
	b.wantAnswers("a running one", o.Results, store.ControlResult{Found: true, Status: store.Running, Requested: 1})
	running.Control, running.CancelReason, running.CancelledBy, running.CancelledAt = store.CancelRequested, o.Reason, o.Actor, o.Now
	wantRun(b, "a running one", b.row(running.UUID), running)
}

// chain commits a run, its child, a grandchild and so on, all of them running, and returns them.
func (b *bed) chain(depth int) []store.Run {
	b.Helper()
	all := []store.Run{b.started("")}
	for len(all) < depth {
		all = append(all, b.begotten(all[len(all)-1], fmt.Sprint("depth-", len(all))))
	}
	return all
}

func orderTree(b *bed) {
	tree := b.chain(6)
	var leaves []store.Run
	for _, r := range tree[:5] {
		leaves = append(leaves, b.left(r, "leaf"))
	}
	bystander := b.started("bystander")
	b.wantAnswers("the pause", b.order(b.newOrder(store.VerbPause, tree[0].UUID)), store.ControlResult{Found: true, Status: store.Running, Changed: 5, Requested: 6})
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
	b.ordered(store.VerbResume, tree[0].UUID)
	for _, r := range tree {
		b.wantBits("resumed", r.UUID, store.Running, 0)
	}
	for _, r := range leaves {
		b.wantBits("resumed", r.UUID, store.Pending, 0)
	}
	b.wantAnswers("the cancel", b.order(b.newOrder(store.VerbCancel, tree[1].UUID)), store.ControlResult{Found: true, Status: store.Running, Changed: 4, Requested: 5})
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

func orderApart(b *bed) {
	parent := b.started("parent")
	own, beneath, plain := b.begotten(parent, "own"), store.Run{}, b.left(parent, "plain")
	beneath = b.left(own, "beneath")
	b.commitRun(b.park(own, time.Time{}))
	b.commitRun(b.park(parent, time.Time{}))
	b.ordered(store.VerbPause, own.UUID)
	b.ordered(store.VerbPause, parent.UUID)
	b.wantBits("both paused", own.UUID, store.Paused, store.PausedMask)
	b.wantBits("both paused", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.ordered(store.VerbResume, parent.UUID)
	b.wantBits("parent resumed", parent.UUID, store.Pending, 0)
	b.wantBits("parent resumed", plain.UUID, store.Pending, 0)
	b.wantBits("parent resumed", own.UUID, store.Paused, store.PausedItself)
	b.wantBits("parent resumed", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.ordered(store.VerbPause, parent.UUID)
	b.ordered(store.VerbResume, own.UUID)
	b.wantBits("child resumed, below a paused parent", own.UUID, store.Paused, store.PausedByAncestor)
	b.wantBits("child resumed, below a paused parent", beneath.UUID, store.Paused, store.PausedByAncestor)
	b.ordered(store.VerbResume, parent.UUID)
	for _, id := range []uuid.UUID{parent.UUID, own.UUID, beneath.UUID, plain.UUID} {
		b.wantBits("all resumed", id, store.Pending, 0)
	}
}

func orderScopes(b *bed) {
	type want map[string]store.Status // statuses of the cancelled runs: Cancelled at once, or Running with a requested cancel
	for scope, expected := range map[store.CancelScope]want{
		store.WholeTree:       {"root": store.Running, "child": store.Running, "new": store.Cancelled, "detached": store.Cancelled, "grandchild": store.Cancelled},
		store.NotStarted:      {"root": store.Running, "new": store.Cancelled, "detached": store.Cancelled, "grandchild": store.Cancelled},
		store.RunItself:       {"root": store.Running},
		store.DescendantsOnly: {"child": store.Running, "new": store.Cancelled, "grandchild": store.Cancelled},
		store.WithoutDetached: {"root": store.Running, "child": store.Running, "new": store.Cancelled, "grandchild": store.Cancelled},
	} {
		root := b.started("")
		child := b.begotten(root, "child")
		detached := b.child(root, "detached")
		detached.Detached = true
		b.commitChild(detached, epochAt(1))
		all := map[string]store.Run{
			"root": root, "child": child, "new": b.left(root, "new"), "detached": detached, "grandchild": b.left(child, "grandchild"),
		}
		o := b.newOrder(store.VerbCancel, root.UUID)
		o.Scope = scope
		b.order(o)
		for name, r := range all {
			what := fmt.Sprintf("scope %d, %s", scope, name)
			if status, ok := expected[name]; ok {
				b.wantBits(what, r.UUID, status, store.CancelRequested)
			} else {
				b.wantBits(what, r.UUID, r.Status, 0)
			}
			// A run that continues although its parent ends is made detached, so that the parent's
			// end does not cancel it.
			spared := name == "detached" || scope == store.RunItself && name != "root" && name != "grandchild" || scope == store.NotStarted && name == "child"
			if got := b.row(r.UUID).Detached; got != spared {
				b.Errorf("%s: detached %v, want %v", what, got, spared)
			}
		}
	}
}

func orderEndedMiddle(b *bed) {
	root := b.started("root")
	middle := b.begotten(root, "middle")
	leaf := b.child(middle, "leaf")
	leaf.Detached = true
	b.commitChild(leaf, epochAt(1))
	b.commitRun(b.childEnd(middle))
	ended := b.row(middle.UUID)
	b.ordered(store.VerbPause, root.UUID)
	b.wantBits("paused", leaf.UUID, store.Paused, store.PausedByAncestor)
	b.ordered(store.VerbResume, root.UUID)
	b.wantBits("resumed", leaf.UUID, store.Pending, 0)
	b.ordered(store.VerbCancel, root.UUID)
	b.wantBits("cancelled", leaf.UUID, store.Cancelled, store.CancelRequested)
	wantRun(b, "what had ended", b.row(middle.UUID), ended)
}

func orderFirst(b *bed) {
	running, waiting := b.started("running"), b.started("waiting")
	b.commitRun(b.park(waiting, time.Time{}))
	for _, verb := range []store.Verb{store.VerbPause, store.VerbCancel} {
		b.ordered(verb, running.UUID, waiting.UUID)
		first := []store.Run{b.row(running.UUID), b.row(waiting.UUID)}
		second := b.newOrder(verb, running.UUID, waiting.UUID)
		second.Now, second.Reason, second.Actor, second.Error = b.in(time.Hour), "another", "bob", []byte(`"other"`)
		b.order(second)
		for _, want := range first {
			wantRun(b, fmt.Sprintf("verb %d twice, %s", verb, want.Name), b.row(want.UUID), want)
		}
	}
}

func orderReplay(b *bed) {
	for _, verb := range []store.Verb{store.VerbPause, store.VerbResume, store.VerbCancel} {
		tree := b.chain(3)
		leaf := b.left(tree[2], "leaf")
		b.commitRun(b.park(tree[1], time.Time{}))
		if verb == store.VerbResume {
			b.ordered(store.VerbPause, tree[0].UUID)
		}
		o := b.ordered(verb, tree[0].UUID)
		var before []store.Run
		for _, id := range []uuid.UUID{tree[0].UUID, tree[1].UUID, tree[2].UUID, leaf.UUID} {
			before = append(before, b.row(id))
		}
		o.Now = b.in(time.Hour)
		b.order(o)
		if o.Results[0].Changed != 0 || !o.Results[0].Found {
			b.Errorf("verb %d, replayed: returned %+v, want found, and nothing changed", verb, o.Results[0])
		}
		for _, r := range before {
			wantRun(b, fmt.Sprintf("verb %d, replayed, %s", verb, r.Name), b.row(r.UUID), r)
		}
	}
}

func orderUnknown(b *bed) {
	for _, verb := range []store.Verb{store.VerbPause, store.VerbResume, store.VerbCancel} {
		ended, live := b.started(""), b.started("")
		b.commitRun(b.finish(ended.UUID, epochAt(1)))
		before := b.row(ended.UUID)
		o := b.newOrder(verb, uuid.New(), ended.UUID, live.UUID, uuid.New())
		got := b.order(o)
		if got[0] != (store.ControlResult{}) || got[3] != (store.ControlResult{}) {
			b.Errorf("verb %d of no run: returned %+v and %+v, want neither found", verb, got[0], got[3])
		}
		if got[1] != (store.ControlResult{Found: true, Status: store.Completed}) {
			b.Errorf("verb %d of an ended run: returned %+v, want completed, and nothing else", verb, got[1])
		}
		wantRun(b, "the ended run", b.row(ended.UUID), before)
		b.wantBits(fmt.Sprintf("verb %d of the run between them", verb), live.UUID, store.Running, asked[verb])
	}
	b.order(b.newOrder(store.VerbCancel))
	if rows := b.get("nobody"); rows[0] != nil {
		b.Error("an order of nothing made a run")
	}
}

func orderWakes(b *bed) {
	waiting, running, busy := b.started("waiting"), b.started("running"), b.started("busy")
	one, two := b.left(waiting, "charge"), b.left(running, "charge")
	three := b.begotten(busy, "charge")
	b.commitRun(b.park(waiting, time.Time{}))
	b.commitRun(b.park(busy, time.Time{}))
	o := b.ordered(store.VerbCancel, one.UUID, two.UUID, three.UUID)
	b.claimOne(b.query(o.Now), waiting.UUID)
	park := b.park(running, b.in(90*time.Hour))
	b.commitRun(park)
	if got := b.row(running.UUID); !got.WakeAt.Equal(park.Now) {
		b.Errorf("the running parent parks until %s, want at once: its child was cancelled", show(got.WakeAt))
	}
	if got := b.row(busy.UUID); !got.WakeAt.IsZero() {
		b.Errorf("the parent of what still runs wakes at %s, want only when that has ended", show(got.WakeAt))
	}
}

func orderLarge(b *bed) {
	root := b.started("root")
	batch := &store.Batch{}
	for i := range 400 {
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: b.child(root, fmt.Sprint("item-", i)), ParentEpoch: epochAt(1)})
	}
	b.commit(batch)
	b.wantAnswers("the cancel", b.order(b.newOrder(store.VerbCancel, root.UUID)), store.ControlResult{Found: true, Status: store.Running, Changed: 400, Requested: 1})
	if got := b.claim(b.query(b.in(time.Minute))); len(got.Runs) != 0 {
		b.Errorf("claimed %d of the cancelled children", len(got.Runs))
	}
}

func orderMany(b *bed) {
	var all []uuid.UUID
	for range 100 {
		all = append(all, b.queued("", b.now).UUID)
	}
	for i, a := range b.order(b.newOrder(store.VerbPause, all...)) {
		if a != (store.ControlResult{Found: true, Status: store.Pending, Changed: 1}) {
			b.Errorf("run %d: returned %+v", i, a)
		}
	}
	b.ordered(store.VerbResume, all...)
	if got := b.claim(b.query(b.in(time.Minute))); len(got.Runs) != 100 {
		b.Errorf("resumed: claimed %d, want 100", len(got.Runs))
	}
}
