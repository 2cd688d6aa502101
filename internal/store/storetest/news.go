package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var tidings = []test{
	{"nothing is asked, and nobody was woken", newsNone},
	{"what is asked is told until the run leaves", newsAsked},
	{"what is asked no more is told no more", newsResumed},
	{"what woke a run is told once", newsWoken},
	{"who was told parks as it likes", newsParks},
	{"of the worker's own runs, at their epochs", newsOwn},
	{"many runs", newsMany},
}

// news returns the worker's notifications about runs that it holds at epoch 1.
func (b *bed) news(worker uuid.UUID, held ...uuid.UUID) store.Notifications {
	b.Helper()
	var leases []store.Lease
	for _, id := range held {
		leases = append(leases, store.Lease{Run: id, Epoch: epochAt(1)})
	}
	got, err := b.s.Notifications(b.ctx, worker, leases)
	if err != nil {
		b.Fatalf("News: %v", err)
	}
	return got
}

func (b *bed) wantNews(what string, got store.Notifications, asked []store.ControlRequest, woken ...uuid.UUID) {
	b.Helper()
	order := func(l, r store.ControlRequest) int { return slices.Compare(l.Run[:], r.Run[:]) }
	slices.SortFunc(got.Requests, order)
	slices.SortFunc(asked, order)
	if !slices.Equal(got.Requests, asked) {
		b.Errorf("%s: asked %+v, want %+v", what, got.Requests, asked)
	}
	wantIDs(b, what+": woken", got.Woken, woken)
}

func newsNone(b *bed) {
	r := b.started("")
	b.wantNews("a run", b.news(b.worker, r.ID), nil)
	b.wantNews("no run", b.news(b.worker), nil)
	b.wantNews("a missing run", b.news(b.worker, uuid.New()), nil)
}

func newsAsked(b *bed) {
	paused, cancelled, parent, quiet := b.started(""), b.started(""), b.started(""), b.started("")
	child := b.begotten(parent, "charge")
	held := []uuid.UUID{paused.ID, cancelled.ID, parent.ID, child.ID, quiet.ID}
	b.ordered(store.VerbPause, paused.ID, parent.ID)
	b.ordered(store.VerbCancel, cancelled.ID)
	want := []store.ControlRequest{
		{Run: paused.ID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: cancelled.ID, Epoch: epochAt(1), Control: store.CancelRequested},
		{Run: parent.ID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: child.ID, Epoch: epochAt(1), Control: store.PausedByAncestor},
	}
	for _, when := range []string{"first", "again"} {
		b.wantNews(when, b.news(b.worker, held...), slices.Clone(want))
	}
	b.ordered(store.VerbCancel, paused.ID)
	want[0].Control = store.CancelRequested
	b.wantNews("asked for more", b.news(b.worker, held...), slices.Clone(want))
	b.commitRun(b.park(parent, time.Time{}))
	b.commitRun(b.finish(child.ID, epochAt(1)))
	b.wantNews("two have left", b.news(b.worker, held...), slices.Clone(want[:2]))
}

func newsResumed(b *bed) {
	r := b.started("")
	b.ordered(store.VerbPause, r.ID)
	b.ordered(store.VerbResume, r.ID)
	b.wantNews("resumed", b.news(b.worker, r.ID), nil)
}

func newsWoken(b *bed) {
	signalled, parent, quiet := b.started(""), b.started(""), b.started("")
	child := b.begotten(parent, "charge")
	held := []uuid.UUID{signalled.ID, parent.ID, quiet.ID}
	for _, when := range []string{"first", "second"} {
		b.sent(signalled.ID, "paid", 0)
		b.sent(signalled.ID, "paid", 0)
		woken := []uuid.UUID{signalled.ID}
		if when == "first" {
			b.commitRun(b.childEnd(child))
			woken = append(woken, parent.ID)
		}
		b.wantNews(when, b.news(b.worker, held...), nil, woken...)
		b.wantNews(when+", once more", b.news(b.worker, held...), nil)
	}
	b.ordered(store.VerbPause, signalled.ID)
	b.sent(signalled.ID, "paid", 0)
	both := []store.ControlRequest{{Run: signalled.ID, Epoch: epochAt(1), Control: store.PausedItself}}
	b.wantNews("both", b.news(b.worker, held...), both, signalled.ID)
	b.wantNews("both, once more", b.news(b.worker, held...), both)
}

func newsParks(b *bed) {
	r := b.started("")
	b.sent(r.ID, "paid", 0)
	b.news(b.worker, r.ID)
	b.commitRun(b.park(r, b.in(time.Hour)))
	if got := b.row(r.ID); !got.WakeAt.Equal(b.in(time.Hour)) {
		b.Errorf("parked after the news: wakes at %s, want as given", show(got.WakeAt))
	}
}

func newsOwn(b *bed) {
	stranger := uuid.New()
	theirs := b.owned(stranger, "theirs")
	b.sent(theirs.ID, "paid", 0)
	b.ordered(store.VerbPause, theirs.ID)
	b.wantNews("another's run", b.news(b.worker), nil)
	b.wantNews("another's run, thought to be held", b.news(b.worker, theirs.ID), nil)
	b.wantNews("its owner's", b.news(stranger, theirs.ID), []store.ControlRequest{{Run: theirs.ID, Epoch: epochAt(1), Control: store.PausedItself}}, theirs.ID)

	lost := b.queued("lost", b.now)
	first := b.query(b.now)
	b.claimOne(first, lost.ID)
	second := b.query(first.LeaseUntil)
	for _, c := range b.claim(second).Runs {
		if c.Run.ID == lost.ID && c.Run.Epoch != epochAt(2) {
			b.Fatalf("claimed again at epoch %s, want 2", c.Run.Epoch)
		}
	}
	b.ordered(store.VerbCancel, lost.ID)
	b.sent(lost.ID, "paid", 0)
	b.wantNews("a run that was lost", b.news(first.Worker, lost.ID), nil)
	b.wantNews("its new owner's, as it once held it", b.news(second.Worker, lost.ID), nil)
	got, err := b.s.Notifications(b.ctx, second.Worker, []store.Lease{{Run: lost.ID, Epoch: epochAt(2)}})
	if err != nil {
		b.Fatalf("News: %v", err)
	}
	b.wantNews("its new owner's", got, []store.ControlRequest{{Run: lost.ID, Epoch: epochAt(2), Control: store.CancelRequested}}, lost.ID)
}

func newsMany(b *bed) {
	batch := &store.Batch{}
	var held, woken, paused []uuid.UUID
	var asked []store.ControlRequest
	for i := range 300 {
		r := b.running("")
		batch.Starts = append(batch.Starts, &store.Start{Run: r})
		held = append(held, r.ID)
		if i%3 == 0 {
			woken = append(woken, r.ID)
			w := b.message(r.ID, "paid", 0)
			batch.Signals = append(batch.Signals, &w)
		}
		if i%5 == 0 {
			paused = append(paused, r.ID)
			asked = append(asked, store.ControlRequest{Run: r.ID, Epoch: epochAt(1), Control: store.PausedItself})
		}
	}
	b.commit(&store.Batch{Starts: batch.Starts})
	b.commit(&store.Batch{Signals: batch.Signals})
	b.ordered(store.VerbPause, paused...)
	b.wantNews("many", b.news(b.worker, held...), slices.Clone(asked), woken...)
	b.wantNews("many, once more", b.news(b.worker, held...), asked)
}
