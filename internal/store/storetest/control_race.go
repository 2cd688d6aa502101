package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var controlRaces = []test{
	{"a cancel against starts of children", func(b *fixture) { raceOrphans(b, b.store) }},
	{"a cancel against the end", func(b *fixture) { raceCancelFinish(b, b.store) }},
	{"a cancel against a claim", func(b *fixture) { raceCancelClaim(b, b.store) }},
	{"a pause against a park and a resume", func(b *fixture) { racePausePark(b, b.store) }},
	{"orders of overlapping trees", func(b *fixture) { raceOverlap(b, b.store) }},
}

// pairNews checks that a worker gets a hint when another handle controls or wakes one of its runs.
func pairNews(b *fixture, s store.Store) {
	other := b.through(s)
	a := b.startListening(b.worker)
	b.awaitListening(a, other)
	for what, ask := range map[string]func(r store.Run){
		"a pause":       func(r store.Run) { other.controlExistingRuns(store.VerbPause, r.UUID) },
		"a cancel":      func(r store.Run) { other.controlExistingRuns(store.VerbCancel, r.UUID) },
		"a signal":      func(r store.Run) { other.commitNewSignal(r.UUID, "paid", 0) },
		"a child's end": func(r store.Run) { other.commitOwnershipEnd(other.childEnd(other.commitRunningChild(r, "charge"))) },
	} {
		r := b.commitRunningRun("")
		select {
		case <-a.ownedRunChangeHints:
		default:
		}
		ask(r)
		select {
		case <-a.ownedRunChangeHints:
		case <-b.ctx.Done():
			b.Fatalf("no hint of %s", what)
		}
		for got := b.ownedRunChanges(b.worker, r.UUID); len(got.ControlRequests)+len(got.Woken) == 0; got = b.ownedRunChanges(b.worker, r.UUID) {
			select { // the hint may be for an earlier change
			case <-a.ownedRunChangeHints:
			case <-b.ctx.Done():
				b.Fatalf("no news of %s", what)
			}
		}
	}
	waiting := b.commitRunningRun("") // a parked run that another handle wakes is claimable
	b.commitOwnershipEnd(b.park(waiting, time.Time{}))
	b.dropBufferedHint(a)
	other.commitNewSignal(waiting.UUID, "paid", 0)
	b.wantHint(a, "a run that a signal woke")
	paused := b.commitPendingRun("", b.afterStart(1000*time.Hour))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.dropBufferedHint(a)
	other.controlExistingRuns(store.VerbResume, paused.UUID)
	b.wantHint(a, "a run that was resumed")
}

// raceOrphans cancels a tree while children are started at every depth of it through another
// handle. When the cancel has returned, every run of the tree is cancelled, or its cancel is
// requested.
func raceOrphans(b *fixture, s store.Store) {
	other := b.through(s)
	for round := range testsize.Of(15, 4) {
		chain := b.chain(5)
		b.together(len(chain)+1, func(i int) error {
			if i == len(chain) {
				return b.store.ControlRuns(b.ctx, b.newControlRequest(store.VerbCancel, chain[0].UUID))
			}
			parent := chain[i]
			for k := range 40 {
				child := b.newRunningRun("")
				child.UUID, child.Parent, child.Name = store.NewChildUUID(parent.UUID), owner(parent.UUID), fmt.Sprint("started-", k)
				if k%2 == 0 {
					child.Status, child.Epoch, child.Owner, child.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, b.afterStart(1000*time.Hour)
				}
				w := &store.StartWrite{Run: child, ParentEpoch: epochAt(1)}
				if err := other.deliver(&store.Batch{Starts: []*store.StartWrite{w}}); err != nil {
					return err
				}
				if w.Outcome == store.Fenced {
					return nil
				}
				if k%2 == 1 && k < 20 {
					parent = child // the next child is one level deeper
				}
			}
			return nil
		})
		for _, r := range b.tree(chain[0].UUID) {
			if r.Status != store.Cancelled && r.Control&store.CancelRequested == 0 {
				b.Errorf("round %d: %s, a child of %s, is %s, and nobody will end it", round, r.Name, show(r.Parent), r.Status)
			}
		}
	}
}

// raceCancelFinish cancels a run while it completes. Whichever is first decides how the run ends,
// and the results of both calls say so.
func raceCancelFinish(b *fixture, s store.Store) {
	other := b.through(s)
	for round := range testsize.Of(100, 25) {
		r := b.commitRunningRun("")
		end, o := b.newCompletion(r.UUID, epochAt(1)), b.newControlRequest(store.VerbCancel, r.UUID)
		b.together(2, func(i int) error {
			if i == 0 {
				return b.store.ControlRuns(b.ctx, o)
			}
			return other.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}})
		})
		got, result := b.row(r.UUID), o.Results[0]
		switch end.Outcome {
		case store.Written:
			if got.Status != store.Completed || got.Control&store.CancelRequested != 0 || result.Status != store.Completed || result.RequestedCount+result.ChangedCount != 0 {
				b.Errorf("round %d: it completed: the row is %s with %d, the cancel returned %+v", round, got.Status, got.Control, result)
			}
		case store.Fenced:
			if got.Status != store.Running || got.Control != store.CancelRequested || result.RequestedCount != 1 || end.RunState.Control != store.CancelRequested {
				b.Errorf("round %d: it was cancelled: the row is %s with %d, the cancel returned %+v, the end %+v", round, got.Status, got.Control, result, end.RunState)
			}
			stop := store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, EndedAt: b.now}
			wantOutcome(b, "the cancelled end", b.commitOwnershipEnd(stop).Outcome, store.Written)
			wantOutcome(b, "the end once more", b.commitOwnershipEnd(end).Outcome, store.Fenced)
		default:
			b.Errorf("round %d: the end returned %s", round, outcomeWords[end.Outcome])
		}
		b.controlRuns(o)
		if after := b.row(r.UUID); after.Status == store.Completed != (end.Outcome == store.Written) || !after.Status.IsTerminal() {
			b.Errorf("round %d: after a second cancel it is %s", round, after.Status)
		}
	}
}

// raceCancelClaim cancels a run while it is claimed. Either the run never starts, or its owner is
// notified.
func raceCancelClaim(b *fixture, s store.Store) {
	other := b.through(s)
	for round := range testsize.Of(60, 20) {
		r := b.commitPendingRun("", b.now)
		q, o := b.query(b.now), b.newControlRequest(store.VerbCancel, r.UUID)
		var claimed []store.ClaimedRun
		b.together(2, func(i int) error {
			if i == 0 {
				return b.store.ControlRuns(b.ctx, o)
			}
			got, err := other.store.Claim(b.ctx, q)
			claimed = got.Runs
			return err
		})
		got := b.row(r.UUID)
		if len(claimed) == 0 {
			if got.Status != store.Cancelled || o.Results[0].ChangedCount != 1 {
				b.Errorf("round %d: nobody claimed it, and it is %s; the cancel returned %+v", round, got.Status, o.Results[0])
			}
			continue
		}
		if got.Status != store.Running || got.Control != store.CancelRequested || o.Results[0].RequestedCount != 1 {
			b.Errorf("round %d: it was claimed, and is %s with %d; the cancel returned %+v", round, got.Status, got.Control, o.Results[0])
		}
		news := b.ownedRunChanges(q.Worker, r.UUID)
		b.wantOwnedRunChanges("its owner's", news, []store.PendingControl{{Run: r.UUID, Epoch: epochAt(1), Control: store.CancelRequested}})
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, EndedAt: b.now})
	}
}

// racePausePark pauses a run while it parks, and then resumes it. The run is paused in between, and
// claimable in the end.
func racePausePark(b *fixture, s store.Store) {
	other := b.through(s)
	for round := range testsize.Of(60, 20) {
		r := b.commitRunningRun("")
		park := b.park(r, time.Time{})
		b.together(2, func(i int) error {
			if i == 0 {
				return b.store.ControlRuns(b.ctx, b.newControlRequest(store.VerbPause, r.UUID))
			}
			return other.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&park}})
		})
		wantOutcome(b, "the park", park.Outcome, store.Written)
		b.wantBits(fmt.Sprint("paused, round ", round), r.UUID, store.Paused, store.PausedItself)
		b.controlExistingRuns(store.VerbResume, r.UUID)
		b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
		b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2)))
	}
}

// raceOverlap controls overlapping parts of one tree, from its top and from its bottom, while runs
// of the tree start and end. Nothing may fail, and a cancelled run stays cancelled.
func raceOverlap(b *fixture, s store.Store) {
	handles := []*fixture{b, b.through(s)}
	for range testsize.Of(4, 2) {
		chain := b.chain(6)
		b.together(8, func(i int) error {
			on := handles[i%2]
			for k := range 12 {
				r := chain[(i+k)%len(chain)]
				switch {
				case i < 3:
					verb := []store.ControlVerb{store.VerbPause, store.VerbResume}[k%2]
					if err := on.store.ControlRuns(b.ctx, on.newControlRequest(verb, chain[i].UUID, chain[5-i].UUID)); err != nil {
						return fmt.Errorf("verb %d: %w", verb, err)
					}
				case i == 3 && k == 6:
					if err := on.store.ControlRuns(b.ctx, on.newControlRequest(store.VerbCancel, chain[2].UUID)); err != nil {
						return fmt.Errorf("cancel: %w", err)
					}
				case i < 6:
					child := on.child(r, fmt.Sprint("child ", i, k))
					child.WakeAt = b.afterStart(1000 * time.Hour)
					if err := on.deliver(&store.Batch{Starts: []*store.StartWrite{{Run: child, ParentEpoch: epochAt(1)}}}); err != nil {
						return fmt.Errorf("start: %w", err)
					}
				default:
					w := on.message(r.UUID, "paid", k)
					rec := on.receive(chain[5-k%6], fmt.Sprint("wait ", i, k), "paid")
					if err := on.deliver(&store.Batch{Receives: []*store.ReceiveWrite{rec}, Signals: []*store.SignalWrite{&w}}); err != nil {
						return fmt.Errorf("signal: %w", err)
					}
				}
			}
			return nil
		})
		b.controlExistingRuns(store.VerbResume, chain[0].UUID, chain[1].UUID, chain[2].UUID, chain[3].UUID, chain[4].UUID, chain[5].UUID)
		doomed := map[uuid.UUID]bool{chain[2].UUID: true} // and its descendants
		for _, r := range b.tree(chain[0].UUID) {
			doomed[r.UUID] = doomed[r.UUID] || doomed[r.Parent.UUID]
			if doomed[r.UUID] != (r.Control&store.CancelRequested != 0) || r.Control&store.PausedMask != 0 {
				b.Errorf("%s is %s with %d, beneath the cancelled one: %v", quoteName(r.Name), r.Status, r.Control, doomed[r.UUID])
			}
		}
	}
}
