package storetest

import "github.com/seed8ec063be/durable/internal/store"

func raceDeleteRepair(b *fixture, other store.Store) {
	for round := range repairRounds {
		r := b.failedRun("first")
		d, p := b.deletionOf(r), b.repairOf(r, 1, "first")
		concurrently(func() { b.deleteTrees(d) }, func() { b.through(other).repair(p) })
		deleted, repaired := d.Trees[0].Outcome == store.Written, p.Outcome == store.Written
		if deleted == repaired || b.exists(r.UUID) != repaired {
			b.Fatalf("round %d: the deletion has the outcome %d, the repair %d", round, d.Trees[0].Outcome, p.Outcome)
		}
		if deleted {
			b.wantGone("the run", r.UUID)
			b.wantNames("its generation", b.history(store.GenerationUUID(r.UUID, 1)))
			continue
		}
		b.wantNames("the repaired run", b.history(r.UUID), "first")
	}
}

func raceDeletions(b *fixture, other store.Store) {
	for round := range repairRounds {
		root := b.commitRunningRun("")
		b.completeRun(b.childOf(root, "kid"))
		b.completeRun(root)
		one, two := b.deletionOf(root), b.deletionOf(root)
		concurrently(func() { b.deleteTrees(one) }, func() { b.through(other).deleteTrees(two) })
		if one.Trees[0].DeletedRunCount+two.Trees[0].DeletedRunCount != 2 {
			b.Fatalf("round %d: %+v and %+v", round, one.Trees[0], two.Trees[0])
		}
	}
}

func raceDeleteDetached(b *fixture, other store.Store) {
	for round := range repairRounds {
		root := b.commitRunningRun("")
		kid := b.detachedOf(root, "kid")
		b.completeRun(root)
		d := b.deletionOf(root)
		concurrently(func() { wantOutcome(b, "the deletion", b.deleteTrees(d), store.Written) }, func() { b.through(other).completeRun(kid) })
		if gone := d.Trees[0].DeletedRunCount == 2; b.exists(kid.UUID) == gone {
			b.Fatalf("round %d: %+v", round, d.Trees[0])
		}
	}
}
