package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var deadlines = []test{
	{"a live run gets another, or none", deadlineSet},
	{"a waiting run is claimable by then", deadlineWaiting},
	{"not of a run that has ended, or is to be cancelled", deadlineRefused},
	{"not when the old one is over", deadlineOver},
	{"the owner hears of it, and does not park without it", deadlineNews},
}

func (b *bed) setDeadline(run uuid.UUID, at time.Time) *store.DeadlineChange {
	b.Helper()
	d := &store.DeadlineChange{Run: run, At: at, Now: b.now}
	if err := b.s.SetDeadline(b.ctx, d); err != nil {
		b.Fatalf("SetDeadline: %v", err)
	}
	return d
}

func deadlineSet(b *bed) {
	running, pending, paused := b.started("running"), b.queued("pending", b.in(time.Hour)), b.queued("paused", b.now)
	b.ordered(store.VerbPause, paused.UUID)
	for _, id := range []uuid.UUID{running.UUID, pending.UUID, paused.UUID} {
		for _, at := range []time.Time{b.in(time.Minute), b.in(2 * time.Minute), {}, b.in(time.Second)} {
			want := b.row(id)
			want.Deadline = at
			wantOutcome(b, want.Name, b.setDeadline(id, at).Outcome, store.Written)
			wantRun(b, want.Name, b.row(id), want)
		}
	}
}

func deadlineWaiting(b *bed) {
	timer, none := b.started("timer"), b.started("none")
	b.commitRun(b.park(timer, b.in(time.Hour)))
	b.commitRun(b.park(none, time.Time{}))
	for _, c := range []struct {
		run      store.Run
		at, wake time.Time
	}{
		{timer, b.in(2 * time.Hour), b.in(time.Hour)},
		{timer, b.in(time.Minute), b.in(time.Minute)},
		{none, time.Time{}, time.Time{}},
		{none, b.in(time.Minute), b.in(time.Minute)},
	} {
		wantOutcome(b, c.run.Name, b.setDeadline(c.run.UUID, c.at).Outcome, store.Written)
		if got := b.row(c.run.UUID); !got.WakeAt.Equal(c.wake) || !got.Deadline.Equal(c.at) {
			b.Errorf("%s: a deadline at %s: it wakes at %s, want %s", c.run.Name, show(c.at), show(got.WakeAt), show(c.wake))
		}
	}
	if got := b.claim(b.query(b.in(time.Minute))); len(got.Runs) != 2 {
		b.Errorf("at the deadlines: claimed %v, want both", ids(got.Runs))
	}
}

func deadlineRefused(b *bed) {
	cancelled := b.started("to be cancelled")
	b.ordered(store.VerbCancel, cancelled.UUID)
	refused := []store.Run{b.row(cancelled.UUID), {UUID: uuid.New()}}
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.started(status.String())
		b.commitRun(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		refused = append(refused, b.row(r.UUID))
	}
	for _, want := range refused {
		got := b.setDeadline(want.UUID, b.in(time.Minute))
		state := store.RunState{Found: want.Name != "", Status: want.Status, Epoch: want.Epoch, Control: want.Control}
		if got.Outcome != store.Fenced || got.RunState != state {
			b.Errorf("%s: %d, %+v, want fenced, %+v", want.Name, got.Outcome, got.RunState, state)
		}
		if state.Found {
			wantRun(b, want.Name, b.row(want.UUID), want)
		}
	}
}

// deadlineOver checks that a run whose deadline has passed gets no new deadline, because it may
// already be partly compensated. A run that was paused before its deadline has executed nothing
// since then, so it gets the new deadline.
func deadlineOver(b *bed) {
	r := b.started("over")
	wantOutcome(b, "the first", b.setDeadline(r.UUID, b.in(-time.Second)).Outcome, store.Written)
	wantOutcome(b, "after it", b.setDeadline(r.UUID, b.in(time.Minute)).Outcome, store.Fenced)
	for at, want := range map[time.Duration]store.Outcome{-2 * time.Second: store.Fenced, -time.Millisecond: store.Written} {
		p := b.queued("", b.now)
		b.setDeadline(p.UUID, b.in(at))
		o := b.newOrder(store.VerbPause, p.UUID)
		o.Now = b.in(-time.Second)
		b.order(o)
		wantOutcome(b, "paused a second ago, over since "+at.String(), b.setDeadline(p.UUID, b.in(time.Minute)).Outcome, want)
	}
}

func deadlineNews(b *bed) {
	r := b.started("r")
	lease := store.Lease{Run: r.UUID, Epoch: epochAt(1)}
	at := b.in(time.Hour)
	b.setDeadline(r.UUID, at)
	got, err := b.s.Notifications(b.ctx, b.worker, []store.Lease{lease})
	lease.Deadline = at
	if err != nil || !slices.EqualFunc(got.Deadlines, []store.Lease{lease}, sameLease) {
		b.Errorf("told %+v, %v, want %+v", got.Deadlines, err, lease)
	}
	if got, err := b.s.Notifications(b.ctx, b.worker, []store.Lease{lease}); err != nil || len(got.Deadlines) != 0 {
		b.Errorf("who knows it is told %+v, %v", got.Deadlines, err)
	}
	b.setDeadline(r.UUID, b.in(time.Minute))
	park := b.park(r, b.in(time.Hour)) // the owner does not know the new deadline
	park.Now = b.now
	b.commitRun(park)
	if got := b.row(r.UUID); !got.WakeAt.Equal(b.now) {
		b.Errorf("parked beside a new deadline, it wakes at %s, want now", show(got.WakeAt))
	}
}

func sameLease(l, r store.Lease) bool {
	return l.Run == r.Run && l.Epoch == r.Epoch && l.Deadline.Equal(r.Deadline)
}
