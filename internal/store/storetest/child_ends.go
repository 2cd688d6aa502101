package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var childEnds = []test{
	{"the end that reaches the awaited count wakes", countsWake},
	{"too few ends mark no running parent", countsMark},
	{"an end that is not awaited wakes a waiting parent within a minute", countsLook},
	{"no end wakes while no count is awaited", countsNone},
	{"each end wakes if the call has no row", countsNoRow},
	{"two calls of one run count for themselves", countsApart},
	{"ends of one batch are counted together", countsTogether},
	{"a fenced end is not counted", countsFenced},
	{"only the owner of a run awaits a count", countsGuarded},
	{"an end that nobody counts wakes at once", countsControl},
	{"its ends against the parent's look", func(b *fixture) { raceCount(b, b.store) }},
}

const countedCall = "kids" // the name of the call whose children are counted

// commitCountingParent commits and returns a running parent with the row of the call, and children of it.
func (b *fixture) commitCountingParent(children int, calls ...string) (parent store.Run, kids []store.Run) {
	b.Helper()
	parent = b.commitRunningRun("")
	for _, call := range append(calls, countedCall) {
		row := b.completed(parent.UUID, parent.Epoch, call)
		row.Kind = store.KindMap
		wantOutcome(b, "the row of the call", b.commitStep(row, false).Outcome, store.Written)
		for i := range children {
			kids = append(kids, b.commitRunningChild(parent, fmt.Sprintf("%s\x1f%d", call, i)))
		}
	}
	return parent, kids
}

// countedEnd returns the write that completes a child, whose end the call counts.
func (b *fixture) countedEnd(r store.Run, call string) store.OwnershipEnd {
	w := b.childEnd(r)
	w.CountingCall = call
	return w
}

// awaitEnds sets how many ends of the call wake the run, and returns how many are counted.
func (b *fixture) awaitEnds(r store.Run, call string, ends int) int {
	b.Helper()
	w := &store.SetAwaitedChildEndsRequest{Run: r.UUID, Epoch: r.Epoch, Name: call, EndsToAwait: ends}
	if err := b.store.SetAwaitedChildEnds(b.ctx, w); err != nil {
		b.Fatal(err)
	}
	wantOutcome(b, "the wait for ends", w.Outcome, store.Written)
	return w.CountedEnds
}

func (b *fixture) wantCounted(r store.Run, call string, want int) {
	b.Helper()
	if got := b.awaitEnds(r, call, 0); got != want {
		b.Errorf("%d ends are counted, want %d", got, want)
	}
}

// wantWake checks when a waiting run becomes claimable.
func (b *fixture) wantWake(what string, run uuid.UUID, want time.Time) {
	b.Helper()
	if got := b.row(run); got.Status != store.Waiting || !got.WakeAt.Equal(want) {
		b.Errorf("%s: the parent is %s and wakes at %s, want waiting, and %s", what, got.Status, show(got.WakeAt), show(want))
	}
}

func countsWake(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		parent, kids := b.commitCountingParent(3)
		b.awaitEnds(parent, countedCall, 3)
		b.commitOwnershipEnd(b.park(parent, time.Time{}))
		for i, want := range []time.Time{b.afterStart(store.MaxParentWakeDelay), b.afterStart(store.MaxParentWakeDelay), b.afterStart(2 * time.Second)} {
			end := b.countedEnd(kids[i], countedCall)
			end.Status, end.Now = status, b.afterStart(time.Duration(i)*time.Second)
			wantOutcome(b, "the end", b.commitOwnershipEnd(end).Outcome, store.Written)
			b.wantWake(fmt.Sprintf("child %d is %s", i, status), parent.UUID, want)
		}
		b.claimOne(b.query(b.afterStart(time.Minute)), parent.UUID)
		parent.Epoch = epochAt(2)
		b.wantCounted(parent, countedCall, 3)
		b.commitOwnershipEnd(b.newCompletion(parent.UUID, epochAt(2)))
	}
}

func countsMark(b *fixture) {
	parent, kids := b.commitCountingParent(2)
	b.awaitEnds(parent, countedCall, 2)
	b.commitOwnershipEnd(b.countedEnd(kids[0], countedCall))
	b.wantOwnedRunChanges("after one of two ends", b.ownedRunChanges(b.worker, parent.UUID), nil)
	b.commitOwnershipEnd(b.countedEnd(kids[1], countedCall))
	b.wantOwnedRunChanges("after both ends", b.ownedRunChanges(b.worker, parent.UUID), nil, parent.UUID)
}

func countsLook(b *fixture) {
	for _, wakeAt := range []time.Time{{}, b.afterStart(time.Second), b.afterStart(5 * time.Hour)} {
		parent, kids := b.commitCountingParent(3)
		b.awaitEnds(parent, countedCall, 3)
		b.commitOwnershipEnd(b.park(parent, wakeAt))
		want := b.afterStart(10*time.Second + store.MaxParentWakeDelay)
		if !wakeAt.IsZero() && wakeAt.Before(want) {
			want = wakeAt
		}
		for i := range 2 {
			end := b.countedEnd(kids[i], countedCall)
			end.Now = b.afterStart(time.Duration(i+1) * 10 * time.Second)
			b.commitOwnershipEnd(end)
			b.wantWake(fmt.Sprintf("parked until %s, after end %d", show(wakeAt), i), parent.UUID, want)
		}
	}
}

func countsNone(b *fixture) {
	for _, unset := range []bool{true, false} {
		parent, kids := b.commitCountingParent(1)
		if !unset {
			b.awaitEnds(parent, countedCall, 0)
		}
		b.commitOwnershipEnd(b.park(parent, time.Time{}))
		end := b.countedEnd(kids[0], countedCall)
		b.commitOwnershipEnd(end)
		b.wantWake(fmt.Sprint("never set: ", unset), parent.UUID, end.Now.Add(store.MaxParentWakeDelay))
	}
}

func countsNoRow(b *fixture) {
	parent := b.commitRunningRun("")
	kids := []store.Run{b.commitRunningChild(parent, "none\x1f0"), b.commitRunningChild(parent, "none\x1f1")}
	b.commitOwnershipEnd(b.countedEnd(kids[0], "none"))
	b.wantOwnedRunChanges("after one end", b.ownedRunChanges(b.worker, parent.UUID), nil, parent.UUID)
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	end := b.countedEnd(kids[1], "none")
	b.commitOwnershipEnd(end)
	b.wantWake("after both ends", parent.UUID, end.Now)
}

func countsApart(b *fixture) {
	parent, kids := b.commitCountingParent(2, "others") // the first two are of the others
	b.awaitEnds(parent, countedCall, 2)
	b.awaitEnds(parent, "others", 1)
	b.commitOwnershipEnd(b.countedEnd(kids[2], countedCall))
	b.wantOwnedRunChanges("after one of two", b.ownedRunChanges(b.worker, parent.UUID), nil)
	b.commitOwnershipEnd(b.countedEnd(kids[0], "others"))
	b.wantOwnedRunChanges("after one of one", b.ownedRunChanges(b.worker, parent.UUID), nil, parent.UUID)
	b.wantCounted(parent, "others", 1)
	b.wantCounted(parent, countedCall, 1)
}

func countsTogether(b *fixture) {
	parent, kids := b.commitCountingParent(4)
	b.awaitEnds(parent, countedCall, 4)
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	var batch store.Batch
	for _, kid := range kids[:3] {
		end := b.countedEnd(kid, countedCall)
		batch.OwnershipEnds = append(batch.OwnershipEnds, &end)
	}
	b.commit(&batch)
	end := b.countedEnd(kids[3], countedCall)
	b.wantWake("after three ends", parent.UUID, batch.OwnershipEnds[0].Now.Add(store.MaxParentWakeDelay))
	b.commitOwnershipEnd(end)
	b.wantWake("after four ends", parent.UUID, end.Now)
	b.claimOne(b.query(b.afterStart(time.Hour)), parent.UUID)
	parent.Epoch = epochAt(2)
	b.wantCounted(parent, countedCall, 4)
}

func countsFenced(b *fixture) {
	parent, kids := b.commitCountingParent(2)
	b.awaitEnds(parent, countedCall, 1)
	end := b.countedEnd(kids[0], countedCall)
	end.Epoch = epochAt(3)
	wantOutcome(b, "the end at another epoch", b.commitOwnershipEnd(end).Outcome, store.Fenced)
	b.wantOwnedRunChanges("after it", b.ownedRunChanges(b.worker, parent.UUID), nil)
	b.wantCounted(parent, countedCall, 0)
}

func countsGuarded(b *fixture) {
	parent, kids := b.commitCountingParent(1)
	b.awaitEnds(parent, countedCall, 1)
	refuse := func(what string, epoch store.Epoch, call string) {
		b.Helper()
		w := &store.SetAwaitedChildEndsRequest{Run: parent.UUID, Epoch: epoch, Name: call, EndsToAwait: 5}
		if err := b.store.SetAwaitedChildEnds(b.ctx, w); err != nil {
			b.Fatal(err)
		}
		wantOutcome(b, what, w.Outcome, store.Fenced)
	}
	refuse("another epoch", epochAt(2), countedCall)
	refuse("a call without a row", parent.Epoch, "none")
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	refuse("a run that waits", parent.Epoch, countedCall)
	end := b.countedEnd(kids[0], countedCall)
	b.commitOwnershipEnd(end)
	b.wantWake("after the end", parent.UUID, end.Now)
}

func countsControl(b *fixture) {
	parent := b.commitRunningRun("")
	row := b.completed(parent.UUID, parent.Epoch, countedCall)
	row.Kind = store.KindMap
	b.commitStep(row, false)
	kid := b.commitPendingChild(parent, countedCall+"\x1f0")
	b.commitPendingChild(parent, countedCall+"\x1f1")
	b.awaitEnds(parent, countedCall, 2)
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	o := b.controlExistingRuns(store.VerbTerminate, kid.UUID)
	b.wantWake("a child was terminated", parent.UUID, o.Now)
}

// raceCount checks that a parent is woken once all its children have ended, in whatever order the ends and its looks are
// committed.
func raceCount(b *fixture, s store.Store) {
	other := b.through(s)
	for range testsize.Of(60, 20) {
		parent, kids := b.commitCountingParent(3)
		park, parked := b.park(parent, time.Time{}), false
		b.together(len(kids)+1, func(i int) error {
			if i < len(kids) {
				end := b.countedEnd(kids[i], countedCall)
				return other.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}})
			}
			for !parked {
				counted, open := b.awaitEnds(parent, countedCall, 0), 0
				statuses, err := b.store.Statuses(b.ctx, []uuid.UUID{kids[0].UUID, kids[1].UUID, kids[2].UUID})
				for _, status := range statuses {
					if !status.IsTerminal() {
						open++
					}
				}
				if err != nil || open == 0 {
					return err
				}
				parked = b.awaitEnds(parent, countedCall, counted+open) < counted+open
			}
			return b.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&park}})
		})
		if got := b.row(parent.UUID); parked && (got.Status != store.Waiting || got.WakeAt.IsZero() || got.WakeAt.After(park.Now)) {
			b.Fatalf("all children have ended: the parent is %s and wakes at %s, want at once", got.Status, show(got.WakeAt))
		}
	}
}
