package store

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

// randomTree returns a tree of runs and generations: the root is first, and parents come before their children.
func randomTree(random *rand.Rand, now time.Time) []TreeNode {
	ended := func() time.Time { return now.Add(-time.Duration(random.IntN(100)) * time.Minute) }
	nodes := []TreeNode{{UUID: NewUUID(3), Status: Completed, EndedAt: ended(), Epoch: Epoch{Count: 1}}}
	if random.IntN(4) == 0 {
		nodes[0].Generation, nodes[0].Status = 1, Superseded
	}
	for range random.IntN(14) {
		above := nodes[random.IntN(len(nodes))]
		n := TreeNode{UUID: NewUUID(3), Parent: uuid.NullUUID{UUID: above.UUID, Valid: true}, Status: Failed, EndedAt: ended(), Epoch: Epoch{Count: 2}}
		switch {
		case random.IntN(4) == 0 && above.Generation == 0:
			n.Generation, n.Status = 1, Superseded
		case random.IntN(5) == 0:
			n.Status, n.EndedAt = Running, time.Time{}
		}
		n.Detached = n.Generation == 0 && random.IntN(3) == 0
		n.HoldsQueuePlace = n.Generation == 0 && random.IntN(12) == 0
		nodes = append(nodes, n)
	}
	return nodes
}

// TestDeletionsOfRandomTrees compares plans with what they must have, which is computed run by run.
func TestDeletionsOfRandomTrees(t *testing.T) {
	now := time.Now()
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		nodes := randomTree(random, now)
		d := &DeleteTreeRequest{Root: nodes[0].UUID, Epoch: nodes[0].Epoch, EndedBefore: now.Add(-time.Duration(random.IntN(60)) * time.Minute)}
		unlocked := map[uuid.UUID]bool{}
		for _, n := range nodes {
			unlocked[n.UUID] = random.IntN(15) == 0
		}
		at := make(map[uuid.UUID]int)
		for i, n := range nodes {
			at[n.UUID] = i
		}
		// ok: the node and all its attached descendants may go.
		ok := make([]bool, len(nodes))
		for i := len(nodes) - 1; i >= 0; i-- {
			n := nodes[i]
			ok[i] = n.Generation > 0 && (i > 0 || n.EndedAt.Before(d.EndedBefore)) || n.Generation == 0 && n.EndedAt.Before(d.EndedBefore) && (n.Status.IsTerminal() && !n.HoldsQueuePlace && !unlocked[n.UUID] &&
				n.EndedAt.Before(now.Add(-MinRetention)))
			for j := i + 1; j < len(nodes); j++ {
				if nodes[j].Parent.UUID == n.UUID && !nodes[j].Detached {
					ok[i] = ok[i] && ok[j]
				}
			}
		}
		// gone: what is above it goes, and its own tree, up to the next detached run, may go. A detached run does not go with a generation.
		gone := make([]bool, len(nodes))
		for i, n := range nodes {
			above := at[n.Parent.UUID]
			gone[i] = ok[i] && (i == 0 || gone[above] && (!n.Detached || nodes[above].Generation == 0 && nodes[0].Generation == 0))
		}
		plan := d.Plan(nodes, now, func(id uuid.UUID) bool { return !unlocked[id] })
		got := make(map[uuid.UUID]bool)
		for _, id := range plan.Runs {
			got[id] = true
		}
		for _, g := range plan.Generations {
			got[g.UUID] = true
		}
		if (d.Outcome == Written) != gone[0] || len(got) != len(plan.Runs)+len(plan.Generations) || d.DeletedRunCount != len(plan.Runs) {
			t.Fatalf("seed %d: outcome %d, %d runs, want %v", seed, d.Outcome, d.DeletedRunCount, gone[0])
		}
		for i, n := range nodes {
			if got[n.UUID] != gone[i] {
				t.Fatalf("seed %d: node %d: planned %v, want %v: %+v of %+v", seed, i, got[n.UUID], gone[i], n, nodes)
			}
			if got[n.UUID] && n.Generation == 0 && !n.Status.IsTerminal() {
				t.Fatalf("seed %d: a live run is deleted: %+v", seed, n)
			}
			if i > 0 && !got[n.UUID] && got[n.Parent.UUID] && !n.Detached {
				t.Fatalf("seed %d: half of a tree is deleted: %+v", seed, n)
			}
		}
		if d.Outcome != Written && d.Blocker.UUID == (uuid.UUID{}) {
			t.Fatalf("seed %d: nothing is said to prevent it", seed)
		}
	}
}
