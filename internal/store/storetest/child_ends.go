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
	{"its ends against the parent's look", func(b *bed) { raceCount(b, b.s) }},
}

const items = "kids" // the name of the call whose children are counted

// counting commits and returns a running parent with the row of the call, and children of it.
func (b *bed) counting(children int, calls ...string) (parent store.Run, kids []store.Run) {
	b.Helper()
	parent = b.started("")
	for _, call := range append(calls, items) {
		row := b.completed(parent.UUID, parent.Epoch, call)
		row.Kind = store.KindMap
		wantOutcome(b, "the row of the call", b.commitStep(row, false).Outcome, store.Written)
		for i := range children {
			kids = append(kids, b.begotten(parent, fmt.Sprintf("%s\x1f%d", call, i)))
		}
	}
	return parent, kids
}

// countedEnd returns the write that completes a child, whose end the call counts.
func (b *bed) countedEnd(r store.Run, call string) store.OwnershipEnd {
	w := b.childEnd(r)
	w.CountedBy = call
	return w
}

// awaitEnds sets how many ends of the call wake the run, and returns how many are counted.
func (b *bed) awaitEnds(r store.Run, call string, ends int) int {
	b.Helper()
	w := &store.AwaitedChildEnds{Run: r.UUID, Epoch: r.Epoch, Name: call, Awaited: ends}
	if err := b.s.AwaitChildEnds(b.ctx, w); err != nil {
		b.Fatal(err)
	}
	wantOutcome(b, "the wait for ends", w.Outcome, store.Written)
	return w.Counted
}

func (b *bed) wantCounted(r store.Run, call string, want int) {
	b.Helper()
	if got := b.awaitEnds(r, call, 0); got != want {
		b.Errorf("%d ends are counted, want %d", got, want)
	}
}

// wantWake checks when a waiting run becomes claimable.
func (b *bed) wantWake(what string, run uuid.UUID, want time.Time) {
	b.Helper()
	if got := b.row(run); got.Status != store.Waiting || !got.WakeAt.Equal(want) {
		b.Errorf("%s: the parent is %s and wakes at %s, want waiting, and %s", what, got.Status, show(got.WakeAt), show(want))
	}
}

func countsWake(b *bed) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		parent, kids := b.counting(3)
		b.awaitEnds(parent, items, 3)
		b.commitRun(b.park(parent, time.Time{}))
		for i, want := range []time.Time{b.in(store.MaxChildEndAge), b.in(store.MaxChildEndAge), b.in(2 * time.Second)} {
			end := b.countedEnd(kids[i], items)
			end.Status, end.Now = status, b.in(time.Duration(i)*time.Second)
			wantOutcome(b, "the end", b.commitRun(end).Outcome, store.Written)
			b.wantWake(fmt.Sprintf("child %d is %s", i, status), parent.UUID, want)
		}
		b.claimOne(b.query(b.in(time.Minute)), parent.UUID)
		parent.Epoch = epochAt(2)
		b.wantCounted(parent, items, 3)
		b.commitRun(b.finish(parent.UUID, epochAt(2)))
	}
}

func countsMark(b *bed) {
	parent, kids := b.counting(2)
	b.awaitEnds(parent, items, 2)
	b.commitRun(b.countedEnd(kids[0], items))
	b.wantNews("after one of two ends", b.news(b.worker, parent.UUID), nil)
	b.commitRun(b.countedEnd(kids[1], items))
	b.wantNews("after both ends", b.news(b.worker, parent.UUID), nil, parent.UUID)
}

func countsLook(b *bed) {
	for _, wakeAt := range []time.Time{{}, b.in(time.Second), b.in(5 * time.Hour)} {
		parent, kids := b.counting(3)
		b.awaitEnds(parent, items, 3)
		b.commitRun(b.park(parent, wakeAt))
		want := b.in(10*time.Second + store.MaxChildEndAge)
		if !wakeAt.IsZero() && wakeAt.Before(want) {
			want = wakeAt
		}
		for i := range 2 {
			end := b.countedEnd(kids[i], items)
			end.Now = b.in(time.Duration(i+1) * 10 * time.Second)
			b.commitRun(end)
			b.wantWake(fmt.Sprintf("parked until %s, after end %d", show(wakeAt), i), parent.UUID, want)
		}
	}
}

func countsNone(b *bed) {
	for _, unset := range []bool{true, false} {
		parent, kids := b.counting(1)
		if !unset {
			b.awaitEnds(parent, items, 0)
		}
		b.commitRun(b.park(parent, time.Time{}))
		end := b.countedEnd(kids[0], items)
		b.commitRun(end)
		b.wantWake(fmt.Sprint("never set: ", unset), parent.UUID, end.Now.Add(store.MaxChildEndAge))
	}
}

func countsNoRow(b *bed) {
	parent := b.started("")
	kids := []store.Run{b.begotten(parent, "none\x1f0"), b.begotten(parent, "none\x1f1")}
	b.commitRun(b.countedEnd(kids[0], "none"))
	b.wantNews("after one end", b.news(b.worker, parent.UUID), nil, parent.UUID)
	b.commitRun(b.park(parent, time.Time{}))
	end := b.countedEnd(kids[1], "none")
	b.commitRun(end)
	b.wantWake("after both ends", parent.UUID, end.Now)
}

func countsApart(b *bed) {
	parent, kids := b.counting(2, "others") // the first two are of the others
	b.awaitEnds(parent, items, 2)
	b.awaitEnds(parent, "others", 1)
	b.commitRun(b.countedEnd(kids[2], items))
	b.wantNews("after one of two", b.news(b.worker, parent.UUID), nil)
	b.commitRun(b.countedEnd(kids[0], "others"))
	b.wantNews("after one of one", b.news(b.worker, parent.UUID), nil, parent.UUID)
	b.wantCounted(parent, "others", 1)
	b.wantCounted(parent, items, 1)
}

func countsTogether(b *bed) {
	parent, kids := b.counting(4)
	b.awaitEnds(parent, items, 4)
	b.commitRun(b.park(parent, time.Time{}))
	var batch store.Batch
	for _, kid := range kids[:3] {
		end := b.countedEnd(kid, items)
		batch.OwnershipEnds = append(batch.OwnershipEnds, &end)
	}
	b.commit(&batch)
	end := b.countedEnd(kids[3], items)
	b.wantWake("after three ends", parent.UUID, batch.OwnershipEnds[0].Now.Add(store.MaxChildEndAge))
	b.commitRun(end)
	b.wantWake("after four ends", parent.UUID, end.Now)
	b.claimOne(b.query(b.in(time.Hour)), parent.UUID)
	parent.Epoch = epochAt(2)
	b.wantCounted(parent, items, 4)
}

func countsFenced(b *bed) {
	parent, kids := b.counting(2)
	b.awaitEnds(parent, items, 1)
	end := b.countedEnd(kids[0], items)
	end.Epoch = epochAt(3)
	wantOutcome(b, "the end at another epoch", b.commitRun(end).Outcome, store.Fenced)
	b.wantNews("after it", b.news(b.worker, parent.UUID), nil)
	b.wantCounted(parent, items, 0)
}

func countsGuarded(b *bed) {
	parent, kids := b.counting(1)
	b.awaitEnds(parent, items, 1)
	refuse := func(what string, epoch store.Epoch, call string) {
		b.Helper()
		w := &store.AwaitedChildEnds{Run: parent.UUID, Epoch: epoch, Name: call, Awaited: 5}
		if err := b.s.AwaitChildEnds(b.ctx, w); err != nil {
			b.Fatal(err)
		}
		wantOutcome(b, what, w.Outcome, store.Fenced)
	}
	refuse("another epoch", epochAt(2), items)
	refuse("a call without a row", parent.Epoch, "none")
	b.commitRun(b.park(parent, time.Time{}))
	refuse("a run that waits", parent.Epoch, items)
	end := b.countedEnd(kids[0], items)
	b.commitRun(end)
	b.wantWake("after the end", parent.UUID, end.Now)
}

func countsControl(b *bed) {
	parent := b.started("")
	row := b.completed(parent.UUID, parent.Epoch, items)
	row.Kind = store.KindMap
	b.commitStep(row, false)
	kid := b.left(parent, items+"\x1f0")
	b.left(parent, items+"\x1f1")
	b.awaitEnds(parent, items, 2)
	b.commitRun(b.park(parent, time.Time{}))
	o := b.ordered(store.VerbTerminate, kid.UUID)
	b.wantWake("a child was terminated", parent.UUID, o.Now)
}

// raceCount checks that a parent is woken once all its children have ended, in whatever order the ends and its looks are
// committed.
func raceCount(b *bed, s store.Store) {
	other := b.through(s)
	for range testsize.Of(60, 20) {
		parent, kids := b.counting(3)
		park, parked := b.park(parent, time.Time{}), false
		b.together(len(kids)+1, func(i int) error {
			if i < len(kids) {
				end := b.countedEnd(kids[i], items)
				return other.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}})
			}
			for !parked {
				counted, open := b.awaitEnds(parent, items, 0), 0
				statuses, err := b.s.Statuses(b.ctx, []uuid.UUID{kids[0].UUID, kids[1].UUID, kids[2].UUID})
				for _, status := range statuses {
					if !status.IsTerminal() {
						open++
					}
				}
				if err != nil || open == 0 {
					return err
				}
				parked = b.awaitEnds(parent, items, counted+open) < counted+open
			}
			return b.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&park}})
		})
		if got := b.row(parent.UUID); parked && (got.Status != store.Waiting || got.WakeAt.IsZero() || got.WakeAt.After(park.Now)) {
			b.Fatalf("all children have ended: the parent is %s and wakes at %s, want at once", got.Status, show(got.WakeAt))
		}
	}
}
