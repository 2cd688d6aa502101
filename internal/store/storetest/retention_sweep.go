package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var sweeps = []test{
	{"roots that ended before a time are found, in parts, each once", sweepFindsRoots},
	{"runs that were created too late are not read", sweepCreatedBy},
	{"a child is a root when its parent is gone, and not before", sweepOrphans},
	{"of the children of a superseded generation, the detached ones are roots", sweepArchivedChildren},
	{"old generations are found, except the newest of each run", sweepGenerations},
	{"the oldest events are deleted, and those that are left stay readable", sweepEvents},
	{"events are deleted up to the first young one", sweepYoungEvents},
}

// endedTrees returns the roots that ended before the time, reading few runs with each query.
func (b *fixture) endedTrees(createdBy, before time.Time, limit int) (roots []store.EndedRoot) {
	b.Helper()
	for shard := range int16(store.ShardCount) {
		q := store.EndedTreesQuery{Shard: shard, CreatedBefore: createdBy, EndedBefore: before, Limit: limit}
		for {
			page, err := b.store.EndedTrees(b.ctx, q)
			if err != nil {
				b.Fatalf("EndedTrees: %v", err)
			}
			roots = append(roots, page.Roots...)
			if q.After = page.Next; q.After == (uuid.UUID{}) {
				break
			}
		}
	}
	return roots
}

// wantEnded compares the roots that ended before an hour from now.
func (b *fixture) wantEnded(what string, want ...store.Run) {
	b.Helper()
	for _, limit := range []int{1, 3, 100} {
		var got, ids []uuid.UUID
		for _, r := range b.endedTrees(b.afterStart(24*time.Hour), b.afterStart(time.Hour), limit) {
			got = append(got, r.UUID)
		}
		for _, r := range want {
			ids = append(ids, r.UUID)
		}
		slices.SortFunc(got, store.CompareUUIDsByShard)
		slices.SortFunc(ids, store.CompareUUIDsByShard)
		if !slices.Equal(got, ids) {
			b.Errorf("%s, %d at a time: %v, want %v", what, limit, got, ids)
		}
	}
}

func sweepFindsRoots(b *fixture) {
	var ended []store.Run
	for i := range 9 {
		r := b.commitRunningRun("")
		b.completeRun(b.childOf(r, "kid"))
		switch {
		case i%3 == 0:
			b.completeRun(r)
			ended = append(ended, r)
		case i%3 == 1: // it ends late
			end := b.newCompletion(r.UUID, epochAt(1))
			end.EndedAt = b.afterStart(time.Hour)
			wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
		}
	}
	b.wantEnded("the roots", ended...)
	one := b.endedTrees(b.afterStart(24*time.Hour), b.afterStart(time.Hour), 100)[0]
	row := b.row(one.UUID)
	if one.Workflow != row.Workflow || one.Status != row.Status || one.Epoch != row.Epoch || !one.EndedAt.Equal(row.EndedAt) {
		b.Errorf("a root is %+v, want %+v", one, row)
	}
}

func sweepCreatedBy(b *fixture) {
	old := b.newRunningRun("")
	old.UUID, old.Name = store.NewRootIdentityAt("old", b.afterStart(-time.Hour))
	b.commitStart(old)
	b.completeRun(old)
	b.completeRun(b.commitRunningRun("young"))
	if got := b.endedTrees(b.afterStart(-time.Minute), b.afterStart(time.Hour), 100); len(got) != 1 || got[0].UUID != old.UUID {
		b.Errorf("before a time: %+v", got)
	}
	if got := b.endedTrees(b.afterStart(-2*time.Hour), b.afterStart(time.Hour), 100); len(got) != 0 {
		b.Errorf("before an earlier time: %+v", got)
	}
}

func sweepOrphans(b *fixture) {
	root := b.commitRunningRun("")
	kid := b.detachedOf(root, "kid")
	b.completeRun(root)
	b.wantEnded("while the child is live", root)
	wantOutcome(b, "the deletion", b.deleteTrees(b.deletionOf(root)), store.Written)
	b.wantEnded("without the parent, while the child is live")
	b.completeRun(kid)
	b.wantEnded("without the parent", kid)
}

func sweepArchivedChildren(b *fixture) {
	root := b.commitRunningRun("")
	detached, attached := b.detachedOf(root, "detached"), b.childOf(root, "attached")
	b.completeRun(detached)
	b.completeRun(attached)
	b.failRun(root)
	b.wantEnded("the children of a run", root)
	p := b.repairOf(b.row(root.UUID), 1)
	p.Runs[0].DetachedChildren = []uuid.UUID{detached.UUID, attached.UUID}
	b.wantRepaired(p)
	b.wantEnded("the children of a superseded generation", detached)
}

func sweepGenerations(b *fixture) {
	first, second := b.failedRun("first"), b.failedRun("first")
	for _, r := range []store.Run{first, second} {
		for n := range int32(3) {
			p := b.repairOf(b.row(r.UUID), n+1, "first")
			p.Now = b.afterStart(time.Duration(n+1) * time.Hour)
			b.wantRepaired(p)
			if r.UUID == second.UUID {
				break // it has only the newest one
			}
			c := b.claimOne(b.query(b.afterStart(time.Hour)), r.UUID)
			b.commitOwnershipEnd(b.newCompletion(r.UUID, c.Run.Epoch))
		}
	}
	find := func(before time.Time, limit int) (numbers []int32) {
		for shard := range int16(store.ShardCount) {
			q := store.OldGenerationsQuery{Shard: shard, SupersededBefore: before, Limit: limit}
			for {
				page, err := b.store.OldGenerations(b.ctx, q)
				if err != nil {
					b.Fatalf("OldGenerations: %v", err)
				}
				for _, g := range page.Generations {
					if numbers = append(numbers, g.Number); g.Run != first.UUID || g.ArchiveID != store.GenerationUUID(first.UUID, g.Number) || g.Workflow != first.Workflow {
						b.Errorf("a generation is %+v", g)
					}
				}
				if q.AfterRun, q.AfterNumber = page.NextRun, page.NextNumber; q.AfterRun == (uuid.UUID{}) {
					break
				}
			}
		}
		return numbers
	}
	for _, limit := range []int{1, 2, 100} {
		if got := find(b.afterStart(10*time.Hour), limit); !slices.Equal(got, []int32{1, 2}) {
			b.Errorf("%d at a time: %v", limit, got)
		}
		if got := find(b.afterStart(2*time.Hour), limit); !slices.Equal(got, []int32{1}) {
			b.Errorf("%d at a time, before the second: %v", limit, got)
		}
	}
}

// endAt commits runs that end at the given times, one after the other, and returns their events.
func (b *fixture) endAt(times ...time.Time) []store.Event {
	b.Helper()
	for _, at := range times {
		r := b.commitRunningRun("")
		end := b.newCompletion(r.UUID, epochAt(1))
		end.EndedAt, end.Now = at, at
		wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
	}
	all := b.events("", 1000)
	for len(all) < len(times) && b.ctx.Err() == nil { // open transactions of others delay events
		all = b.events("", 1000)
	}
	return all
}

// deletesEvents deletes events until there is nothing more to delete, and returns how many.
func (b *fixture) deletesEvents(before time.Time) (all int) {
	b.Helper()
	for {
		n, err := b.store.DeleteEvents(b.ctx, before)
		if err != nil {
			b.Fatalf("DeleteEvents: %v", err)
		}
		if all += n; n == 0 {
			return all
		}
	}
}

func sweepEvents(b *fixture) {
	if n := b.deletesEvents(b.afterStart(24 * time.Hour)); n != 0 {
		b.Errorf("%d events of an empty outbox were deleted", n)
	}
	var times []time.Time
	for i := range 300 { // more than a transaction deletes
		times = append(times, b.afterStart(time.Duration(i)*time.Second))
	}
	all := b.endAt(times...)
	if n := b.deletesEvents(b.afterStart(250 * time.Second)); n != 250 {
		b.Fatalf("%d events were deleted", n)
	}
	left := b.events("", 1000)
	if len(left) != 50 || left[0].Cursor != all[250].Cursor {
		b.Fatalf("%d events are left", len(left))
	}
	for _, i := range []int{0, 100, 249} {
		if got := b.events(all[i].Cursor, 1000); len(got) != 50 {
			b.Errorf("after the deleted event %d there are %d", i, len(got))
		}
	}
	if got := b.events(all[280].Cursor, 1000); len(got) != 19 {
		b.Errorf("after an event that is left there are %d", len(got))
	}
	if n := b.deletesEvents(b.afterStart(24 * time.Hour)); n != 50 {
		b.Errorf("%d events were deleted at last", n)
	}
	if got := b.events(all[299].Cursor, 10); len(got) != 0 {
		b.Errorf("after the last event: %+v", got)
	}
	if got := b.endAt(b.afterStart(time.Hour)); len(got) != 1 {
		b.Errorf("after all were deleted: %+v", got)
	} else if next := b.events(all[299].Cursor, 10); len(next) != 1 || next[0].Cursor != got[0].Cursor {
		b.Errorf("after the last one that was deleted: %+v", next)
	}
}

func sweepYoungEvents(b *fixture) {
	all := b.endAt(b.afterStart(time.Second), b.afterStart(time.Hour), b.afterStart(2*time.Second))
	if n := b.deletesEvents(b.afterStart(time.Minute)); n != 1 {
		b.Errorf("%d events were deleted", n)
	}
	if left := b.events("", 10); len(left) != 2 || left[0].Cursor != all[1].Cursor {
		b.Errorf("what is left: %+v", left)
	}
}
