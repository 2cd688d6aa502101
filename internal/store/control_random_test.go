package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// life is a random tree to which random things happen. All of it follows from its seed.
type life struct {
	*testing.T
	*rand.Rand
	nodes tree
	log   []string // what happened, for messages
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{T: t, Rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range byte(2 + l.IntN(12)) {
		n := store.RunToControl{UUID: nodeID('a' + i), Status: store.Pending}
		if i > 0 {
			parent := &l.nodes[l.IntN(int(i))]
			n.Parent = uuid.NullUUID{UUID: parent.UUID, Valid: true}
			n.Detached = l.IntN(4) == 0
			parent.Epoch = store.Epoch{Count: 1} // it has started a child
		}
		l.nodes = append(l.nodes, n)
	}
	for i := range l.nodes {
		n := &l.nodes[i]
		states := []store.Status{store.Pending, store.Running, store.Waiting, store.Completed, store.Failed}
		if n.Status = states[l.IntN(len(states))]; n.Status != store.Pending {
			n.Epoch = store.Epoch{Count: 1}
		}
		l.note("%c<%c %s, claimed %d times", n.UUID[10], max(n.Parent.UUID[10], '-'), n.Status, n.Epoch.Count)
	}
	return l
}

func (l *life) note(format string, args ...any) { l.log = append(l.log, fmt.Sprintf(format, args...)) }

// fail ends the test with all that happened.
func (l *life) fail(format string, args ...any) {
	l.Helper()
	for _, line := range l.log {
		l.Log(line)
	}
	l.Fatalf(format, args...)
}

// order carries out one, and tries what holds of each.
func (l *life) order(o *store.ControlRequest) {
	l.Helper()
	before := slices.Clone(l.nodes)
	changes, wake := o.Plan(l.concerned(o.Runs))
	l.nodes = before.apply(changes)
	l.note("verb %d, scope %d of %s: %s, wakes %s", o.Verb, o.Scope, letters(o.Runs), describe(changes), letters(wake))
	if !slices.IsSortedFunc(changes, func(a, b store.ControlChange) int { return byShard(a.Before.UUID, b.Before.UUID) }) {
		l.fail("the changes are in no order")
	}
	for i, was := range before {
		now := l.nodes[i]
		name := string(was.UUID[10:11])
		changed := slices.IndexFunc(changes, func(c store.ControlChange) bool { return c.Before.UUID == was.UUID })
		switch {
		case changed >= 0 && changes[changed].Before != was:
			l.fail("%s: the change is of %+v, it was %+v", name, changes[changed].Before, was)
		case changed >= 0 && was.Status.IsTerminal():
			l.fail("%s has ended, and is changed", name)
		case was.Control&store.CancelRequested != 0 && now.Control&store.CancelRequested == 0:
			l.fail("%s was to be cancelled, and is not any more", name)
		case o.Verb != store.VerbTerminate && now.Status == store.Cancelled && was.Status != store.Cancelled && was.Epoch.Count > 0:
			l.fail("%s ended at once, although it was %s, and claimed %d times", name, was.Status, was.Epoch.Count)
		case (now.Status == store.Running) != (was.Status == store.Running) && (o.Verb != store.VerbTerminate || now.Status != store.Cancelled):
			l.fail("%s went from %s to %s: only its owner leaves, only a claim takes", name, was.Status, now.Status)
		case o.Verb != store.VerbCancel && o.Verb != store.VerbTerminate && now.Control&store.CancelRequested != was.Control&store.CancelRequested:
			l.fail("%s is to be cancelled by verb %d", name, o.Verb)
		}
		l.consistent(&now)
		ended := now.Status.IsTerminal() && !was.Status.IsTerminal()
		if parent := l.nodes.find(was.Parent.UUID); ended && parent != nil && !parent.Status.IsTerminal() && !slices.Contains(wake, parent.UUID) {
			l.fail("%s ended, and its parent is not woken", name)
		}
	}
	if again, wake := o.Plan(l.concerned(o.Runs)); len(again) != 0 || len(wake) != 0 {
		l.fail("once more it changes %s and wakes %s", describe(again), letters(wake))
	}
}

// concerned is what a store gives Plan: the runs, what is beneath them, and what is above.
func (l *life) concerned(runs []uuid.UUID) (nodes tree) {
	is := make(map[uuid.UUID]bool)
	for _, id := range runs {
		is[id] = true
	}
	for _, n := range l.nodes { // parents come first
		is[n.UUID] = is[n.UUID] || is[n.Parent.UUID]
	}
	for _, id := range runs {
		for n := l.nodes.find(id); n != nil; n = l.nodes.find(n.Parent.UUID) {
			is[n.UUID] = true
		}
	}
	for _, n := range l.nodes {
		if is[n.UUID] {
			nodes = append(nodes, n)
		}
	}
	l.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// consistent tries what holds of each run at any time: paused is who has a bit of it and is
// not executed.
func (l *life) consistent(n *store.RunToControl) {
	l.Helper()
	if n.Status.IsTerminal() || n.Status == store.Running {
		return
	}
	if (n.Status == store.Paused) != (n.Control&store.PausedMask != 0) {
		l.fail("%c is %s with the bits %q", n.UUID[10], n.Status, bits(n.Control))
	}
}

// above is whether a run that is paused itself, and neither ended nor ends, is above n.
func (l *life) above(n *store.RunToControl) bool {
	for up := l.nodes.find(n.Parent.UUID); up != nil; up = l.nodes.find(up.Parent.UUID) {
		if !up.Status.IsTerminal() && up.Control&store.PausedItself != 0 {
			return true
		}
	}
	return false
}

// somebody picks one to three runs.
func (l *life) somebody() (runs []uuid.UUID) {
	for range 1 + l.IntN(3) {
		runs = append(runs, l.nodes[l.IntN(len(l.nodes))].UUID)
	}
	return runs
}

// move is what workers do: one takes a run, or leaves one. Leaving in the middle of a
// pause, a run may also end, if paused is given.
func (l *life) move(paused bool) {
	n := &l.nodes[l.IntN(len(l.nodes))]
	was := n.Status
	switch {
	case n.Status == store.Pending, n.Status == store.Waiting:
		n.Status, n.Epoch = store.Running, n.Epoch.Next(l.Uint32())
	case n.Status != store.Running:
		return
	case n.Control&store.CancelRequested != 0:
		n.Status = store.Cancelled
	case n.Control&store.PausedMask == 0 || paused && l.IntN(2) == 0:
		n.Status = []store.Status{store.Waiting, store.Completed, store.Failed}[l.IntN(3)]
		if !n.Status.IsTerminal() && n.Control != 0 {
			n.Status = store.Paused
		}
	default:
		n.Status = store.Paused
	}
	l.note("%c goes from %s to %s", n.UUID[10], was, n.Status)
}

// verb is any, a termination seldom: little would be left.
func (l *life) verb() store.ControlVerb {
	if l.IntN(12) == 0 {
		return store.VerbTerminate
	}
	return store.ControlVerb(1 + l.IntN(3))
}

// A run is paused with an ancestor exactly as long as one is paused.
func TestPlanAnyTree(t *testing.T) {
	for seed := range uint64(1500) {
		l := newLife(t, seed)
		for range 12 {
			if l.IntN(2) == 0 {
				l.move(false)
				continue
			}
			o := &store.ControlRequest{Verb: l.verb(), Runs: l.somebody()}
			if o.Verb == store.VerbCancel && l.IntN(2) == 0 { // not always the whole tree: little would be left
				o.Scope = store.CancelNotStarted
			}
			l.order(o)
			for _, n := range l.nodes {
				live := !n.Status.IsTerminal() && n.Control&store.CancelRequested == 0
				if live && l.above(&n) != (n.Control&store.PausedByAncestor != 0) {
					l.fail("seed %d: %c has the bits %q, and above it is one paused: %v", seed, n.UUID[10], bits(n.Control), l.above(&n))
				}
			}
		}
	}
}

// Whatever was ordered and has happened, whoever is paused can be resumed: when all that
// are paused themselves have been, nobody is paused.
func TestPlanNobodyStaysPaused(t *testing.T) {
	for seed := range uint64(1500) {
		l := newLife(t, seed)
		for range 12 {
			if l.IntN(2) == 0 {
				l.move(true)
				continue
			}
			l.order(&store.ControlRequest{Verb: l.verb(), Scope: store.CancelScope(l.IntN(5)), Runs: l.somebody()})
		}
		for _, n := range l.nodes {
			l.order(&store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{n.UUID}})
		}
		for _, n := range l.nodes {
			if !n.Status.IsTerminal() && n.Control&store.PausedMask != 0 {
				l.fail("seed %d: every run was resumed, and %c is %s with the bits %q", seed, n.UUID[10], n.Status, bits(n.Control))
			}
		}
	}
}
