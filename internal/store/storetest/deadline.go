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
	{"the timeout of a run is what a start or the last change said", deadlineTimeout},
	{"not of a run that has ended, or is to be cancelled", deadlineRefused},
	{"not when the old one is over", deadlineOver},
	{"the owner hears of it, and does not park without it", deadlineNews},
}

func (b *fixture) setDeadline(run uuid.UUID, at time.Time) *store.DeadlineChangeRequest {
	b.Helper()
	d := &store.DeadlineChangeRequest{Run: run, NewDeadline: at, Now: b.now}
	if err := b.store.SetDeadline(b.ctx, d); err != nil {
		b.Fatalf("SetDeadline: %v", err)
	}
	return d
}

func deadlineSet(b *fixture) {
	running, pending, paused := b.commitRunningRun("running"), b.commitPendingRun("pending", b.afterStart(time.Hour)), b.commitPendingRun("paused", b.now)
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	for _, id := range []uuid.UUID{running.UUID, pending.UUID, paused.UUID} {
		for _, at := range []time.Time{b.afterStart(time.Minute), b.afterStart(2 * time.Minute), {}, b.afterStart(time.Second)} {
			want := b.row(id)
			want.Deadline = at
			wantOutcome(b, want.Name, b.setDeadline(id, at).Outcome, store.Written)
			wantRun(b, want.Name, b.row(id), want)
		}
	}
}

func deadlineTimeout(b *fixture) {
	start := func(w *store.StartWrite, d time.Duration) *store.StartWrite {
		w.Timeout = d
		if d > 0 {
			w.Run.Deadline = w.Run.WakeAt.Add(d)
		}
		return w
	}
	parent := b.commitRunningRun("parent")
	child := b.child(parent, "kid")
	timed, untimed := make(map[uuid.UUID]time.Duration), []uuid.UUID{parent.UUID}
	for i, batch := range [][]*store.StartWrite{ // the statements of starts: of one, of several, with generated names, with tags, with parents and with places
		{{Run: b.newPendingRun("one", b.afterStart(time.Hour))}},
		{{Run: b.newPendingRun("two", b.now)}, {Run: b.newPendingRun("three", b.now)}},
		{{Run: b.newRunningRun("")}},
		{{Run: b.newRunningRun("")}, {Run: b.newRunningRun("")}},
		{{Run: b.newPendingRun("tagged", b.now), Tags: []store.Tag{{Key: "a.b", Value: "c"}}}},
		{{Run: child, ParentEpoch: parent.Epoch}},
		{b.newQueuedStart("four", "mail", ""), b.newQueuedStart("five", "mail", "")},
	} {
		for at, w := range batch {
			if d := time.Duration(i+1) * time.Minute; at == 0 {
				start(w, d)
				timed[w.Run.UUID] = d
			} else {
				untimed = append(untimed, w.Run.UUID)
			}
		}
		b.commit(&store.Batch{Starts: batch})
	}
	wantTimeout := func(run uuid.UUID, want time.Duration) {
		b.Helper()
		if got := b.outline(run, b.now).Timeout; got != want {
			b.Errorf("the timeout of %s is %v, want %v", run, got, want)
		}
	}
	for _, run := range untimed {
		wantTimeout(run, 0)
	}
	for run, d := range timed {
		wantTimeout(run, d)
	}
	for _, d := range []time.Duration{time.Minute, 0} {
		change := &store.DeadlineChangeRequest{Run: parent.UUID, NewDeadline: b.afterStart(d), Timeout: d, Now: b.now}
		if err := b.store.SetDeadline(b.ctx, change); err != nil || change.Outcome != store.Written {
			b.Fatalf("SetDeadline: %+v, %v", change, err)
		}
		wantTimeout(parent.UUID, d)
	}
}

func deadlineWaiting(b *fixture) {
	timer, none := b.commitRunningRun("timer"), b.commitRunningRun("none")
	b.commitOwnershipEnd(b.park(timer, b.afterStart(time.Hour)))
	b.commitOwnershipEnd(b.park(none, time.Time{}))
	for _, c := range []struct {
		run      store.Run
		at, wake time.Time
	}{
		{timer, b.afterStart(2 * time.Hour), b.afterStart(time.Hour)},
		{timer, b.afterStart(time.Minute), b.afterStart(time.Minute)},
		{none, time.Time{}, time.Time{}},
		{none, b.afterStart(time.Minute), b.afterStart(time.Minute)},
	} {
		wantOutcome(b, c.run.Name, b.setDeadline(c.run.UUID, c.at).Outcome, store.Written)
		if got := b.row(c.run.UUID); !got.WakeAt.Equal(c.wake) || !got.Deadline.Equal(c.at) {
			b.Errorf("%s: a deadline at %s: it wakes at %s, want %s", c.run.Name, show(c.at), show(got.WakeAt), show(c.wake))
		}
	}
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 2 {
		b.Errorf("at the deadlines: claimed %v, want both", describeClaims(got.Runs))
	}
}

func deadlineRefused(b *fixture) {
	cancelled := b.commitRunningRun("to be cancelled")
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	refused := []store.Run{b.row(cancelled.UUID), {UUID: uuid.New()}}
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun(status.String())
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		refused = append(refused, b.row(r.UUID))
	}
	for _, want := range refused {
		got := b.setDeadline(want.UUID, b.afterStart(time.Minute))
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
func deadlineOver(b *fixture) {
	r := b.commitRunningRun("over")
	wantOutcome(b, "the first", b.setDeadline(r.UUID, b.afterStart(-time.Second)).Outcome, store.Written)
	wantOutcome(b, "after it", b.setDeadline(r.UUID, b.afterStart(time.Minute)).Outcome, store.Fenced)
	for at, want := range map[time.Duration]store.WriteOutcome{-2 * time.Second: store.Fenced, -time.Millisecond: store.Written} {
		p := b.commitPendingRun("", b.now)
		b.setDeadline(p.UUID, b.afterStart(at))
		o := b.newControlRequest(store.VerbPause, p.UUID)
		o.Now = b.afterStart(-time.Second)
		b.controlRuns(o)
		wantOutcome(b, "paused a second ago, over since "+at.String(), b.setDeadline(p.UUID, b.afterStart(time.Minute)).Outcome, want)
	}
}

func deadlineNews(b *fixture) {
	r := b.commitRunningRun("r")
	lease := store.Lease{Run: r.UUID, Epoch: epochAt(1)}
	at := b.afterStart(time.Hour)
	b.setDeadline(r.UUID, at)
	got, err := b.store.OwnedRunChanges(b.ctx, b.worker, []store.Lease{lease})
	lease.RunDeadline = at
	if err != nil || !slices.EqualFunc(got.ChangedDeadlines, []store.Lease{lease}, sameLease) {
		b.Errorf("told %+v, %v, want %+v", got.ChangedDeadlines, err, lease)
	}
	if got, err := b.store.OwnedRunChanges(b.ctx, b.worker, []store.Lease{lease}); err != nil || len(got.ChangedDeadlines) != 0 {
		b.Errorf("who knows it is told %+v, %v", got.ChangedDeadlines, err)
	}
	b.setDeadline(r.UUID, b.afterStart(time.Minute))
	park := b.park(r, b.afterStart(time.Hour)) // the owner does not know the new deadline
	park.Now = b.now
	b.commitOwnershipEnd(park)
	if got := b.row(r.UUID); !got.WakeAt.Equal(b.now) {
		b.Errorf("parked beside a new deadline, it wakes at %s, want now", show(got.WakeAt))
	}
}

func sameLease(l, r store.Lease) bool {
	return l.Run == r.Run && l.Epoch == r.Epoch && l.RunDeadline.Equal(r.RunDeadline)
}
