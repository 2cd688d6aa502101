package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var trees = []test{
	{"parents before their children, then by ID", treeOrder},
	{"a part of a tree", treePart},
	{"no run", treeNone},
	{"how many are in each status", treeCounts},
}

func (b *fixture) tree(run uuid.UUID) []*store.Run {
	b.Helper()
	got, err := b.store.RunTree(b.ctx, run, true)
	if err != nil {
		b.Fatalf("Tree: %v", err)
	}
	return got
}

// wantTree compares the rows, and checks their order.
func (b *fixture) wantTree(what string, got []*store.Run, want ...store.Run) {
	b.Helper()
	at := make(map[uuid.UUID]int)
	last := make(map[uuid.NullUUID]uuid.UUID) // the last child of each parent
	for i, r := range got {
		at[r.UUID] = i
		if parent, ok := at[r.Parent.UUID]; i > 0 && (!ok || parent >= i) {
			b.Errorf("%s: row %d, %s, comes before its parent", what, i, quoteName(r.Name))
		}
		if before, ok := last[r.Parent]; ok && bytes.Compare(before[:], r.UUID[:]) >= 0 {
			b.Errorf("%s: row %d, %s, comes after a sibling with a higher ID", what, i, quoteName(r.Name))
		}
		last[r.Parent] = r.UUID
	}
	for _, r := range want {
		i, ok := at[r.UUID]
		if !ok {
			b.Errorf("%s: %s is missing", what, quoteName(r.Name))
			continue
		}
		row := b.row(r.UUID)
		row.Input, row.Output = nil, nil
		wantRun(b, what, *got[i], row)
	}
	if len(got) != len(want) {
		b.Errorf("%s: got %d rows, want %d", what, len(got), len(want))
	}
}

// grown commits a tree of three generations. It returns the root, the root's children, and all
// runs.
func (b *fixture) grown() (root store.Run, middle, all []store.Run) {
	b.Helper()
	root = b.commitRunningRun("root")
	all = append(all, root)
	for i := range 4 {
		child := b.commitRunningChild(root, fmt.Sprint("child-", i))
		middle, all = append(middle, child), append(all, child)
	}
	for i := range 12 { // the parents alternate, so that the order of the tree differs from the order of creation
		all = append(all, b.commitPendingChild(middle[3-i%4], fmt.Sprint("grandchild-", i)))
	}
	return root, middle, all
}

func treeOrder(b *fixture) {
	root, middle, all := b.grown()
	b.commitRunningRun("stranger")
	b.controlExistingRuns(store.VerbCancel, middle[0].UUID)
	b.commitOwnershipEnd(b.childEnd(middle[1]))
	b.wantTree("the tree", b.tree(root.UUID), all...)
	deep := b.chain(6)
	b.wantTree("a deep one", b.tree(deep[0].UUID), deep...)
}

func treePart(b *fixture) {
	_, middle, all := b.grown()
	want := slices.DeleteFunc(slices.Clone(all), func(r store.Run) bool { return r.UUID != middle[2].UUID && r.Parent.UUID != middle[2].UUID })
	b.wantTree("a part", b.tree(middle[2].UUID), want...)
	b.wantTree("a leaf", b.tree(all[len(all)-1].UUID), all[len(all)-1])
}

func treeNone(b *fixture) {
	b.grown()
	if got := b.tree(uuid.New()); len(got) != 0 {
		b.Errorf("no run: got %d rows", len(got))
	}
	if got := b.counts(uuid.New()); len(got) != 0 {
		b.Errorf("no run: counted %v", got)
	}
}

func (b *fixture) counts(run uuid.UUID) map[store.Status]int {
	b.Helper()
	got, err := b.store.RunTreeCounts(b.ctx, run, b.now)
	if err != nil {
		b.Fatalf("Counts: %v", err)
	}
	return got.RunsByStatus
}

func treeCounts(b *fixture) {
	root, middle, all := b.grown()
	b.commitRunningRun("stranger")
	b.commitOwnershipEnd(b.childEnd(middle[1]))
	b.commitOwnershipEnd(b.park(middle[2], time.Time{}))
	b.controlExistingRuns(store.VerbPause, all[5].UUID)
	for _, c := range []struct {
		run  uuid.UUID
		want map[store.Status]int
	}{
		{root.UUID, map[store.Status]int{store.Running: 3, store.Completed: 1, store.Waiting: 1, store.Paused: 1, store.Pending: 11}},
		{middle[2].UUID, map[store.Status]int{store.Waiting: 1, store.Pending: 3}},
		{all[5].UUID, map[store.Status]int{store.Paused: 1}},
	} {
		if got := b.counts(c.run); !maps.Equal(got, c.want) {
			b.Errorf("counted %v, want %v", got, c.want)
		}
	}
}
