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

func (b *bed) wantNews(what string, got store.Notifications, asked []store.PendingControl, woken ...uuid.UUID) {
	b.Helper()
	order := func(l, r store.PendingControl) int { return slices.Compare(l.Run[:], r.Run[:]) }
	slices.SortFunc(got.Requests, order)
	slices.SortFunc(asked, order)
	if !slices.Equal(got.Requests, asked) {
		b.Errorf("%s: asked %+v, want %+v", what, got.Requests, asked)
	}
	wantUUIDs(b, what+": woken", got.Woken, woken)
}

func newsNone(b *bed) {
	r := b.started("")
	b.wantNews("a run", b.news(b.worker, r.UUID), nil)
	b.wantNews("no run", b.news(b.worker), nil)
	b.wantNews("a missing run", b.news(b.worker, uuid.New()), nil)
}

func newsAsked(b *bed) {
	paused, cancelled, parent, quiet := b.started(""), b.started(""), b.started(""), b.started("")
	child := b.begotten(parent, "charge")
	held := []uuid.UUID{paused.UUID, cancelled.UUID, parent.UUID, child.UUID, quiet.UUID}
	b.ordered(store.VerbPause, paused.UUID, parent.UUID)
	b.ordered(store.VerbCancel, cancelled.UUID)
	want := []store.PendingControl{
		{Run: paused.UUID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: cancelled.UUID, Epoch: epochAt(1), Control: store.CancelRequested},
		{Run: parent.UUID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: child.UUID, Epoch: epochAt(1), Control: store.PausedByAncestor},
	}
	for _, when := range []string{"first", "again"} {
		b.wantNews(when, b.news(b.worker, held...), slices.Clone(want))
	}
	b.ordered(store.VerbCancel, paused.UUID)
	want[0].Control = store.CancelRequested
	b.wantNews("asked for more", b.news(b.worker, held...), slices.Clone(want))
	b.commitRun(b.park(parent, time.Time{}))
	b.commitRun(b.finish(child.UUID, epochAt(1)))
	b.wantNews("two have left", b.news(b.worker, held...), slices.Clone(want[:2]))
}

func newsResumed(b *bed) {
	r := b.started("")
	b.ordered(store.VerbPause, r.UUID)
	b.ordered(store.VerbResume, r.UUID)
	b.wantNews("resumed", b.news(b.worker, r.UUID), nil)
}

func newsWoken(b *bed) {
	signalled, parent, quiet := b.started(""), b.started(""), b.started("")
	child := b.begotten(parent, "charge")
	held := []uuid.UUID{signalled.UUID, parent.UUID, quiet.UUID}
	for _, when := range []string{"first", "second"} {
		b.sent(signalled.UUID, "paid", 0)
		b.sent(signalled.UUID, "paid", 0)
		woken := []uuid.UUID{signalled.UUID}
		if when == "first" {
			b.commitRun(b.childEnd(child))
			woken = append(woken, parent.UUID)
		}
		b.wantNews(when, b.news(b.worker, held...), nil, woken...)
		b.wantNews(when+", once more", b.news(b.worker, held...), nil)
	}
	b.ordered(store.VerbPause, signalled.UUID)
	b.sent(signalled.UUID, "paid", 0)
	both := []store.PendingControl{{Run: signalled.UUID, Epoch: epochAt(1), Control: store.PausedItself}}
	b.wantNews("both", b.news(b.worker, held...), both, signalled.UUID)
	b.wantNews("both, once more", b.news(b.worker, held...), both)
}

func newsParks(b *bed) {
	r := b.started("")
	b.sent(r.UUID, "paid", 0)
	b.news(b.worker, r.UUID)
	b.commitRun(b.park(r, b.in(time.Hour)))
	if got := b.row(r.UUID); !got.WakeAt.Equal(b.in(time.Hour)) {
		b.Errorf("parked after the news: wakes at %s, want as given", show(got.WakeAt))
	}
}

func newsOwn(b *bed) {
	stranger := uuid.New()
	theirs := b.owned(stranger, "theirs")
	b.sent(theirs.UUID, "paid", 0)
	b.ordered(store.VerbPause, theirs.UUID)
	b.wantNews("another's run", b.news(b.worker), nil)
	b.wantNews("another's run, thought to be held", b.news(b.worker, theirs.UUID), nil)
	b.wantNews("its owner's", b.news(stranger, theirs.UUID), []store.PendingControl{{Run: theirs.UUID, Epoch: epochAt(1), Control: store.PausedItself}}, theirs.UUID)

	lost := b.queued("lost", b.now)
	first := b.query(b.now)
	b.claimOne(first, lost.UUID)
	second := b.query(first.LeaseUntil)
	for _, c := range b.claim(second).Runs {
		if c.Run.UUID == lost.UUID && c.Run.Epoch != epochAt(2) {
			b.Fatalf("claimed again at epoch %s, want 2", c.Run.Epoch)
		}
	}
	b.ordered(store.VerbCancel, lost.UUID)
	b.sent(lost.UUID, "paid", 0)
	b.wantNews("a run that was lost", b.news(first.Worker, lost.UUID), nil)
	b.wantNews("its new owner's, as it once held it", b.news(second.Worker, lost.UUID), nil)
	got, err := b.s.Notifications(b.ctx, second.Worker, []store.Lease{{Run: lost.UUID, Epoch: epochAt(2)}})
	if err != nil {
		b.Fatalf("News: %v", err)
	}
	b.wantNews("its new owner's", got, []store.PendingControl{{Run: lost.UUID, Epoch: epochAt(2), Control: store.CancelRequested}}, lost.UUID)
}

func newsMany(b *bed) {
	batch := &store.Batch{}
	var held, woken, paused []uuid.UUID
	var asked []store.PendingControl
	for i := range 300 {
		r := b.running("")
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
		held = append(held, r.UUID)
		if i%3 == 0 {
			woken = append(woken, r.UUID)
			w := b.message(r.UUID, "paid", 0)
			batch.Signals = append(batch.Signals, &w)
		}
		if i%5 == 0 {
			paused = append(paused, r.UUID)
			asked = append(asked, store.PendingControl{Run: r.UUID, Epoch: epochAt(1), Control: store.PausedItself})
		}
	}
	b.commit(&store.Batch{Starts: batch.Starts})
	b.commit(&store.Batch{Signals: batch.Signals})
	b.ordered(store.VerbPause, paused...)
	b.wantNews("many", b.news(b.worker, held...), slices.Clone(asked), woken...)
	b.wantNews("many, once more", b.news(b.worker, held...), asked)
}
