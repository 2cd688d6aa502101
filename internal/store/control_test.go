package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// tree is a few runs of one tree, called by letters.
type tree []store.RunToControl

// nodeID is the ID of the run called by a letter; IDs are in the order of the letters.
func nodeID(letter byte) uuid.UUID { return uuid.UUID{6: 0x70, 8: 0x80, 10: letter} }

// plant reads a tree: one run a word, "b<a:waiting,itself,ran" is b, whose parent is a.
// A run is pending and new unless it says otherwise.
func plant(t *testing.T, text string) tree {
	t.Helper()
	var nodes tree
	for _, word := range strings.Fields(text) {
		head, traits, _ := strings.Cut(word, ":")
		n := store.RunToControl{UUID: nodeID(head[0]), Status: store.Pending}
		if name, parent, ok := strings.Cut(head, "<"); ok {
			n.UUID, n.Parent = nodeID(name[0]), uuid.NullUUID{UUID: nodeID(parent[0]), Valid: true}
		}
		for _, trait := range strings.Split(traits, ",") {
			if !grow(&n, trait) {
				t.Fatalf("%q in %q is nothing a run can be", trait, word)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func grow(n *store.RunToControl, trait string) bool {
	switch trait {
	case "", "pending":
	case "running":
		n.Status, n.Epoch, n.Owner = store.Running, store.Epoch{Count: 1}, uuid.NullUUID{UUID: uuid.UUID{15: 1}, Valid: true}
	case "waiting":
		n.Status, n.Epoch = store.Waiting, store.Epoch{Count: 1}
	case "paused":
		n.Status = store.Paused
	case "completed":
		n.Status, n.Epoch = store.Completed, store.Epoch{Count: 1}
	case "failed":
		n.Status, n.Epoch = store.Failed, store.Epoch{Count: 1}
	case "cancelled":
		n.Status = store.Cancelled
	case "itself":
		n.Control |= store.PausedItself
	case "above":
		n.Control |= store.PausedByAncestor
	case "asked":
		n.Control |= store.CancelRequested
	case "ran":
		n.Epoch = store.Epoch{Count: 1}
	case "detached":
		n.Detached = true
	default:
		return false
	}
	return true
}

// apply is what a store does with the changes.
func (nodes tree) apply(changes []store.ControlChange) tree {
	after := slices.Clone(nodes)
	for i := range after {
		for _, c := range changes {
			if c.Before.UUID == after[i].UUID {
				after[i].Status, after[i].Control, after[i].Detached = c.Status, c.Control, c.Detached
				if c.EndsRun() {
					after[i].Owner = uuid.NullUUID{}
				}
			}
		}
	}
	return after
}

func (nodes tree) find(id uuid.UUID) *store.RunToControl {
	for i := range nodes {
		if nodes[i].UUID == id {
			return &nodes[i]
		}
	}
	return nil
}

// bits are the words for what was asked.
func bits(control store.ControlBits) string {
	var words []string
	for bit, word := range map[store.ControlBits]string{store.PausedItself: "itself", store.PausedByAncestor: "above", store.CancelRequested: "asked"} {
		if control&bit != 0 {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

// describe writes the changes as the tables below do: "b:paused,itself" where b becomes that.
func describe(changes []store.ControlChange) string {
	words := make([]string, len(changes))
	for i, c := range changes {
		words[i] = fmt.Sprintf("%c:%s", c.Before.UUID[10], c.Status)
		if control := bits(c.Control); control != "" {
			words[i] += "," + control
		}
		if c.Detached && !c.Before.Detached {
			words[i] += ",detached"
		}
	}
	return strings.Join(words, " ")
}

func letters(ids []uuid.UUID) string {
	var text []byte
	for _, id := range ids {
		text = append(text, id[10])
	}
	return string(text)
}

// order makes an order of the runs called by letters.
func order(verb store.ControlVerb, scope store.CancelScope, runs string) *store.ControlRequest {
	o := &store.ControlRequest{Verb: verb, Scope: scope}
	for i := range len(runs) {
		o.Runs = append(o.Runs, nodeID(runs[i]))
	}
	return o
}

// A plan is one order, and all that it must lead to.
type plan struct {
	name  string
	tree  string
	verb  store.ControlVerb
	scope store.CancelScope
	runs  string
	want  string // as describe writes it
	wake  string
}

const (
	pause     = store.VerbPause
	resume    = store.VerbResume
	cancel    = store.VerbCancel
	terminate = store.VerbTerminate
)

var plans = []plan{
	{"a pause covers the tree", "a b<a c<b:waiting d:pending", pause, 0, "a", "a:paused,itself b:paused,above c:paused,above", ""},
	{"a run that is executed is asked", "a:running b<a:running", pause, 0, "a", "a:running,itself b:running,above", ""},
	{"a pause in the middle", "a:running b<a c<b d<a", pause, 0, "b", "b:paused,itself c:paused,above", ""},
	{"a pause of what is paused with its parent", "a:paused,itself b<a:paused,above c<b:paused,above", pause, 0, "b", "b:paused,above,itself", ""},
	{"a pause above what is paused itself", "a b<a:paused,itself c<b:paused,above d<a", pause, 0, "a", "a:paused,itself b:paused,above,itself d:paused,above", ""},
	{"a pause below an ended run", "a b<a:completed c<b", pause, 0, "a", "a:paused,itself c:paused,above", ""},
	{"a pause below a failed run", "a b<a:failed c<b:failed d<c", pause, 0, "a", "a:paused,itself d:paused,above", ""},
	{"a pause below a run that was cancelled", "a b<a:cancelled,asked c<b:detached", pause, 0, "a", "a:paused,itself c:paused,above", ""},
	{"a pause of an ended run", "a:completed b<a:running", pause, 0, "a", "", ""},
	{"a pause of what is to be cancelled", "a:running,asked b<a:running", pause, 0, "a", "", ""},
	{"a pause above what is to be cancelled", "a b<a:pending,asked,ran c<b:running", pause, 0, "a", "a:paused,itself c:running,above", ""},
	{"a pause is not repeated", "a:paused,itself b<a:running,above", pause, 0, "a", "", ""},
	{"a pause of a replayed tree with a newcomer", "a:paused,itself b<a", pause, 0, "a", "b:paused,above", ""},

	{"a resume covers the tree", "a:paused,itself b<a:paused,above c<b:paused,above", resume, 0, "a", "a:pending b:pending c:pending", ""},
	{"a resume of what has not left yet", "a:running,itself b<a:running,above", resume, 0, "a", "a:running b:running", ""},
	{
		"a resume leaves what was paused itself, and all beneath",
		"a:paused,itself b<a:paused,above,itself c<b:paused,above d<a:paused,above", resume, 0, "a", "a:pending b:paused,itself d:pending", "",
	},
	{"a resume below what is paused", "a:paused,itself b<a:paused,above,itself c<b:paused,above", resume, 0, "b", "b:paused,above", ""},
	{"a resume of what is paused with its parent only", "a:paused,itself b<a:paused,above", resume, 0, "b", "", ""},
	{"a resume below an ended run", "a:paused,itself b<a:completed c<b:paused,above", resume, 0, "a", "a:pending c:pending", ""},
	{"a resume of what runs", "a:running b<a:waiting", resume, 0, "a", "", ""},
	{"a resume of a run that ended while it was asked to pause", "a:completed,itself b<a:paused,above c<a:paused,itself,above", resume, 0, "a", "b:pending c:paused,itself", ""},
	{"a resume of an ended run below a paused one", "a:paused,itself b<a:completed,itself c<b:paused,above", resume, 0, "b", "", ""},
	{"a resume of an ended run", "a:cancelled,asked", resume, 0, "a", "", ""},
	{"a resume of what is to be cancelled", "a:pending,asked,ran", resume, 0, "a", "", ""},
	{"a resume of a cancelled run that crashes", "a:paused,itself,asked,ran", resume, 0, "a", "a:pending,asked", ""},

	{"a cancel covers the tree", "a b<a c<b:waiting d<b:detached", cancel, 0, "a", "a:cancelled,asked b:cancelled,asked c:pending,asked d:cancelled,asked", ""},
	{"a cancel asks what is executed, and what was", "a:running b<a:waiting c<b", cancel, 0, "a", "a:running,asked b:pending,asked c:cancelled,asked", "b"},
	{"a cancel of what is paused", "a:paused,itself b<a:paused,above,ran c<b:running,above", cancel, 0, "a", "a:cancelled,asked b:pending,asked c:running,asked", ""},
	{"a cancel goes on beneath ended runs", "a:running b<a:completed c<b:waiting", cancel, 0, "a", "a:running,asked c:pending,asked", ""},
	{"a cancel beneath an ended root", "a:completed b<a:waiting c<a", cancel, 0, "a", "b:pending,asked c:cancelled,asked", ""},
	{"a cancel is not repeated", "a:running,asked b<a:pending,asked,ran", cancel, 0, "a", "", ""},
	{"a cancel wakes the parent of what it ends", "a:waiting b<a c<b", cancel, 0, "b", "b:cancelled,asked c:cancelled,asked", "a"},
	{"a cancel of several wakes a parent once", "a:waiting b<a c<a d<a:running", cancel, 0, "bcd", "b:cancelled,asked c:cancelled,asked d:running,asked", "a"},
	{"a cancel wakes no ended parent", "a:failed b<a", cancel, 0, "b", "b:cancelled,asked", ""},
	{"a cancel wakes nobody before the end", "a:waiting b<a:running c<a:waiting", cancel, 0, "bc", "b:running,asked c:pending,asked", ""},

	{"not started: only what was never executed", "a:waiting b<a c<a:waiting d<a:paused,above,itself e<c f<a:running", cancel, store.CancelNotStarted, "a", "a:pending,asked b:cancelled,asked c:waiting,detached d:cancelled,asked e:cancelled,asked f:running,detached", "ac"},
	{"not started: a root that was executed is to end, and what was paused with it goes on", "a:paused,itself,ran b<a:paused,above c<a:paused,above,ran d<c:paused,above", cancel, store.CancelNotStarted, "a", "a:pending,asked b:cancelled,asked c:pending,detached d:cancelled,asked", "ac"},
	{"not started: the root itself", "a", cancel, store.CancelNotStarted, "a", "a:cancelled,asked", ""},
	{"itself: what is beneath goes on", "a:running b<a c<a:running", cancel, store.CancelRunItself, "a", "a:running,asked b:pending,detached c:running,detached", ""},
	{"itself: in the middle", "a:waiting b<a c<b:running", cancel, store.CancelRunItself, "b", "b:cancelled,asked c:running,detached", "a"},
	{"itself: then the tree", "a:running,asked b<a:running,detached c<a:detached", cancel, 0, "a", "b:running,asked c:cancelled,asked", "a"},
	{"itself: what is cancelled already goes with it", "a:running,asked b<a:running,asked", cancel, store.CancelRunItself, "a", "", ""},
	{"children: all but the run and its detached ones", "a:running b<a c<b:running d<a:detached e<d:running f<a:running", cancel, store.CancelDescendants, "a", "b:cancelled,asked c:running,asked f:running,asked", "a"},
	{"children: of an ended run", "a:completed b<a:waiting c<a:detached", cancel, store.CancelDescendants, "a", "b:pending,asked", ""},
	{"attached: the run and all but detached ones", "a:running b<a c<b:running d<b:detached e<d:running f<a:running", cancel, store.CancelWithoutDetached, "b", "b:cancelled,asked c:running,asked", "a"},
	{"attached: several, one of them detached", "a:running b<a c<a:detached d<c e<a:waiting", cancel, store.CancelWithoutDetached, "bce", "b:cancelled,asked e:pending,asked", "a"},
	{"attached: beneath an ended run", "a:running b<a:completed c<b:waiting d<b:detached", cancel, store.CancelWithoutDetached, "b", "c:pending,asked", ""},
	{"children: of a run without", "a:running", cancel, store.CancelDescendants, "a", "", ""},

	{
		"terminate: in any state", "a:running b<a:waiting c<a:paused,itself,ran d<a:pending,asked,ran e<a:completed f<e:running,detached g<a", terminate, 0, "a",
		"a:cancelled,asked b:cancelled,asked c:cancelled,asked d:cancelled,asked f:cancelled,asked g:cancelled,asked", "",
	},
	{"terminate: the parent goes on", "a:running b<a:running", terminate, 0, "b", "b:cancelled,asked", "a"},

	{"a run named twice", "a b<a", pause, 0, "aa", "a:paused,itself b:paused,above", ""},
	{"an ancestor, then what is beneath it", "a b<a c<b", pause, 0, "ab", "a:paused,itself b:paused,above,itself c:paused,above", ""},
	{"a run, then its ancestor", "a b<a c<b", pause, 0, "ba", "a:paused,itself b:paused,above,itself c:paused,above", ""},
	{"a resume of both", "a:paused,itself b<a:paused,above,itself c<b:paused,above", resume, 0, "ab", "a:pending b:pending c:pending", ""},
	{"a resume of both, from below", "a:paused,itself b<a:paused,above,itself c<b:paused,above", resume, 0, "ba", "a:pending b:pending c:pending", ""},
	{"a cancel of both", "a b<a:waiting", cancel, 0, "ba", "a:cancelled,asked b:pending,asked", ""},
	{"a run that is not there", "a b<a", cancel, 0, "xbx", "b:cancelled,asked", "a"},
	{"nothing at all", "a", cancel, 0, "", "", ""},
}

func TestPlan(t *testing.T) {
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			nodes := plant(t, p.tree)
			o := order(p.verb, p.scope, p.runs)
			slices.Reverse(nodes) // the order of the nodes does not matter
			changes, wake := o.Plan(nodes)
			if got := describe(changes); got != p.want {
				t.Errorf("of %s:\n got %s\nwant %s", p.tree, got, p.want)
			}
			if got := letters(wake); got != p.wake {
				t.Errorf("of %s: wakes %q, want %q", p.tree, got, p.wake)
			}
			again, wake := o.Plan(nodes.apply(changes))
			if len(again) != 0 || len(wake) != 0 {
				t.Errorf("of %s, once more: got %s, wakes %q, want nothing", p.tree, describe(again), letters(wake))
			}
		})
	}
}

// What a change does to the rest of the row.
func TestPlanNotes(t *testing.T) {
	for _, c := range []struct {
		name, tree string
		verb       store.ControlVerb
		runs       string
		want       map[byte]store.ControlChange // Wake and AuditColumnsUpdate alone
	}{
		{"a pause", "a:waiting b<a:running c<a", pause, "a", map[byte]store.ControlChange{
			'a': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsSetPause}, 'b': {WakeAt: store.WakeAtKeep, AuditColumns: store.AuditColumnsSetPause}, 'c': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsSetPause},
		}},
		{"its own reason goes before an ancestor's", "a b<a:paused,itself", pause, "a", map[byte]store.ControlChange{
			'a': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsSetPause}, 'b': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsKeep},
		}},
		{"and after it", "a:paused,itself b<a:paused,above", pause, "b", map[byte]store.ControlChange{'b': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsSetPause}}},
		{"a resume", "a:paused,itself b<a:running,above c<a:paused,above,itself", resume, "a", map[byte]store.ControlChange{
			'a': {WakeAt: store.WakeAtNow, AuditColumns: store.AuditColumnsClearPause}, 'b': {WakeAt: store.WakeAtKeep, AuditColumns: store.AuditColumnsClearPause}, 'c': {WakeAt: store.WakeAtKeep, AuditColumns: store.AuditColumnsKeep},
		}},
		{"a cancel", "a:running b<a:waiting c<a:paused,above", cancel, "a", map[byte]store.ControlChange{
			'a': {WakeAt: store.WakeAtKeep, AuditColumns: store.AuditColumnsSetCancel}, 'b': {WakeAt: store.WakeAtNow, AuditColumns: store.AuditColumnsSetCancel}, 'c': {WakeAt: store.WakeAtNull, AuditColumns: store.AuditColumnsSetCancel},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, _ := order(c.verb, 0, c.runs).Plan(plant(t, c.tree))
			if len(changes) != len(c.want) {
				t.Errorf("got %s, want %d changes", describe(changes), len(c.want))
			}
			for _, got := range changes {
				letter := got.Before.UUID[10]
				wake := got.WakeAt
				if got.Before.Status == store.Paused && got.Status == store.Paused {
					wake = c.want[letter].WakeAt // it has none: to keep it is the same
				}
				if want := c.want[letter]; wake != want.WakeAt || got.AuditColumns != want.AuditColumns {
					t.Errorf("%c: got wake %d, note %d, want %d and %d", letter, got.WakeAt, got.AuditColumns, want.WakeAt, want.AuditColumns)
				}
				if got.EndsRun() != (got.Status == store.Cancelled) {
					t.Errorf("%c: it is %s, and Ends is %v", letter, got.Status, got.EndsRun())
				}
			}
		})
	}
}

// A result describes the run before the operation, wherever the operation names it.
func TestPlanSetsResults(t *testing.T) {
	type result = store.ControlResult
	for _, c := range []struct {
		name, tree string
		verb       store.ControlVerb
		runs       string
		want       []result
	}{
		{"a pause", "a:waiting b<a:running c<a", pause, "a", []result{{true, store.Waiting, 0, 2, 1}}},
		{"a resume", "a:paused,itself b<a:running,above c<a:paused,above,itself", resume, "a", []result{{true, store.Paused, store.PausedItself, 2, 0}}},
		{"a cancel", "a:running b<a:waiting c<a d<a", cancel, "a", []result{{true, store.Running, 0, 2, 2}}},
		{"a cancel of what is to be cancelled", "a:running,asked", cancel, "a", []result{{true, store.Running, store.CancelRequested, 0, 1}}},
		{"a cancel of an ended run", "a:completed", cancel, "a", []result{{true, store.Completed, 0, 0, 0}}},
		{"no run", "a", pause, "xa", []result{{}, {true, store.Pending, 0, 1, 0}}},
		{"a run named twice", "a:waiting", cancel, "aa", []result{{true, store.Waiting, 0, 0, 1}, {true, store.Waiting, 0, 0, 1}}},
		{"an ancestor, then what is beneath it", "a:waiting b<a", cancel, "ab", []result{{true, store.Waiting, 0, 1, 1}, {true, store.Pending, 0, 0, 0}}},
		{"a paused ancestor, then what is beneath it", "a:waiting b<a", pause, "ab", []result{{true, store.Waiting, 0, 2, 0}, {true, store.Pending, 0, 1, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := order(c.verb, 0, c.runs)
			o.Results = []result{{ChangedCount: 99}} // of an earlier try
			o.Plan(plant(t, c.tree))
			if !slices.Equal(o.Results, c.want) {
				t.Errorf("of %s:\n got %+v\nwant %+v", c.tree, o.Results, c.want)
			}
		})
	}
}

// Nobody is left paused for good by what happened to the run that it was paused with.
func TestPlanResumable(t *testing.T) {
	for _, c := range []struct {
		name, tree string
		orders     []*store.ControlRequest
	}{
		{"the run above has ended while it was asked to pause", "a:completed,itself b<a:paused,above", nil},
		{"the run between is to be cancelled alone", "a:paused,itself b<a:pending,asked,ran c<b:paused,above", nil},
		{"the run above is cancelled alone", "a:paused,itself b<a:paused,above", []*store.ControlRequest{order(cancel, store.CancelRunItself, "a")}},
		{"the run above is asked to end alone", "a:running,itself b<a:paused,above", []*store.ControlRequest{order(cancel, store.CancelRunItself, "a")}},
		{"both were paused", "a:waiting b<a c<b", []*store.ControlRequest{order(pause, 0, "b"), order(pause, 0, "a"), order(resume, 0, "b")}},
		{"it crashes while it is to be cancelled", "a:paused,itself,asked,ran b<a", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := plant(t, c.tree)
			for _, o := range c.orders {
				changes, _ := o.Plan(nodes)
				nodes = nodes.apply(changes)
			}
			for _, n := range nodes {
				changes, _ := order(resume, 0, string(n.UUID[10:11])).Plan(nodes)
				nodes = nodes.apply(changes)
			}
			for _, n := range nodes {
				if !n.Status.IsTerminal() && n.Control&store.PausedMask != 0 {
					t.Errorf("of %s, when each was resumed: %c is %s with the bits %q", c.tree, n.UUID[10], n.Status, bits(n.Control))
				}
			}
		})
	}
}

// The end of a parent reaches down to detached runs, and no further.
func TestPlanStopsAtDetachedRuns(t *testing.T) {
	ids := make([]uuid.UUID, 5)
	for i := range ids {
		ids[i] = store.NewUUID(7)
	}
	beneath := func(i, parent int, detached bool) store.RunToControl {
		return store.RunToControl{UUID: ids[i], Parent: uuid.NullUUID{UUID: ids[parent], Valid: true}, Status: store.Waiting, Epoch: store.Epoch{Count: 1}, Detached: detached}
	}
	o := &store.ControlRequest{Verb: store.VerbCancel, Scope: store.CancelDescendants, Runs: ids[:1]}
	changes, _ := o.Plan([]store.RunToControl{
		{UUID: ids[0], Status: store.Running, Epoch: store.Epoch{Count: 1}}, beneath(1, 0, false), beneath(2, 1, true), beneath(3, 2, false), beneath(4, 0, true),
	})
	if len(changes) != 1 || changes[0].Before.UUID != ids[1] {
		t.Errorf("got %v, want the child that is not detached alone", changes)
	}
}

// A request of an execution that has lost its run, or that has released it, changes nothing. The run of the fence can be an ancestor.
func TestControlRequestIsFenced(t *testing.T) {
	own := store.RunExecution{Run: nodeID('a'), Epoch: store.Epoch{Count: 1}}
	for text, fenced := range map[string]bool{"a:running b<a:waiting": false, "a:waiting b<a:waiting": true, "a:cancelled b<a:waiting": true, "b:waiting": false} {
		for _, run := range []byte("ab") {
			o := &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{nodeID(run)}, Fence: own, Fenced: !fenced}
			if changes, _ := o.Plan(plant(t, text)); o.Fenced != fenced || fenced && len(changes) > 0 {
				t.Errorf("cancel of %c in %q: fenced %t, %d changes", run, text, o.Fenced, len(changes))
			}
		}
	}
	o := &store.ControlRequest{Verb: store.VerbCancel, Runs: []uuid.UUID{own.Run}, Fence: store.RunExecution{Run: own.Run, Epoch: store.Epoch{Count: 2}}}
	if changes, _ := o.Plan(plant(t, "a:running")); !o.Fenced || len(changes) > 0 {
		t.Errorf("a request of another execution: %+v", o)
	}
}
