package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var events = []test{
	{"none", eventNone},
	{"each type, in order", eventTypes},
	{"once, however often it is written", eventOnce},
	{"what an order does", eventOrders},
	{"a cursor resumes", eventCursor},
	{"a text that is no cursor", eventBadCursor},
	{"the newest first", eventsBackwards},
	{"nothing of a commit that failed", eventFailed},
	{"of commits at the same time", func(b *fixture) { raceEvents(b, b.store) }},
}

func (b *fixture) events(after string, limit int) []store.Event {
	b.Helper()
	got, err := b.store.Events(b.ctx, after, limit)
	if err != nil {
		b.Fatalf("Events after %q: %v", after, err)
	}
	if len(got) > limit {
		b.Fatalf("Events returned %d, at most %d were asked for", len(got), limit)
	}
	return got
}

// tail reads events until the end of the last run, which Events may return a moment after its
// commit.
func (b *fixture) tail(last uuid.UUID, limit int) (all []store.Event) {
	b.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for after := ""; ; {
		page := b.events(after, limit)
		all = append(all, page...)
		if slices.ContainsFunc(page, func(e store.Event) bool { return e.Run == last }) {
			return all
		}
		if len(page) > 0 {
			after = page[len(page)-1].Cursor
			continue
		}
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			b.Fatalf("the end of the last run never came, after %d events", len(all))
		}
	}
}

// wantEvents ends one more run, reads all events before that end, and compares them with want. Each
// string of want is a run's name, a space and the type.
func (b *fixture) wantEvents(want ...string) {
	b.Helper()
	last := b.commitRunningRun("the last run")
	b.commitOwnershipEnd(b.newCompletion(last.UUID, epochAt(1)))
	var got []string
	for _, e := range b.tail(last.UUID, 3) {
		if e.Cursor == "" || e.At.IsZero() || e.Workflow != "flow" {
			b.Errorf("event %+v: want a cursor, a time and a workflow", e)
		}
		if e.Run != last.UUID {
			got = append(got, fmt.Sprint(e.Name, " ", eventWords[e.Type]))
		}
	}
	if !slices.Equal(got, want) {
		b.Errorf("events:\n got %q\nwant %q", got, want)
	}
}

var eventWords = map[store.EventType]string{
	store.EventPaused: "paused", store.EventCompleted: "completed", store.EventFailed: "failed", store.EventCancelled: "cancelled", store.EventExpired: "expired", store.EventLeaseLost: "lease lost",
	store.EventMovedToQueue: "moved", store.EventPriorityChanged: "priority changed", store.EventRepaired: "repaired", store.EventContinued: "continued", store.EventVersionChanged: "version changed", store.EventDeleted: "deleted",
	store.EventResumed: "resumed", store.EventSignalled: "signalled", store.EventTagged: "tagged", store.EventTimeoutSet: "timeout set", store.EventTriggered: "triggered", store.EventBackfilled: "backfilled",
	store.EventQueueDeleted: "queue deleted", store.EventLimitDeleted: "limit deleted", store.EventScheduleDeleted: "schedule deleted",
}

func eventNone(b *fixture) {
	if got := b.events("", 10); len(got) != 0 {
		b.Errorf("an empty database has %d events", len(got))
	}
	r := b.commitRunningRun("r")
	b.commitStep(b.completed(r.UUID, epochAt(1), "charge"), false)
	b.commitNewSignal(r.UUID, "paid", 0)
	b.commitOwnershipEnd(b.park(r, b.now))
	b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
	b.controlExistingRuns(store.VerbPause, r.UUID) // the run has not paused yet, so there is no event
	b.controlExistingRuns(store.VerbResume, r.UUID)
	b.controlExistingRuns(store.VerbCancel, r.UUID)
	b.wantEvents("r resumed")
}

func eventTypes(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("end " + status.String())
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
	}
	paused := b.commitRunningRun("park")
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.commitOwnershipEnd(b.park(paused, time.Time{}))
	lost := b.commitPendingRun("claim", b.now)
	q := b.query(b.now)
	b.claimOne(q, lost.UUID)
	b.claimOne(b.query(q.LeaseUntil), lost.UUID)
	aside := b.commitRunningRun("aside")
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: aside.UUID, Epoch: epochAt(1), Status: store.Paused, HoldReason: "broken"})
	b.wantEvents("end completed completed", "end failed failed", "end cancelled cancelled", "end expired expired", "park paused", "claim lease lost", "aside paused")
}

func eventOnce(b *fixture) {
	r := b.commitRunningRun("r")
	end := b.newCompletion(r.UUID, epochAt(1))
	for range 3 {
		b.commitOwnershipEnd(end)
	}
	other := end
	other.Output = []byte(`"other"`)
	wantOutcome(b, "another end", b.commitOwnershipEnd(other).Outcome, store.Fenced)
	p := b.commitPendingRun("p", b.now)
	for range 3 {
		b.controlExistingRuns(store.VerbPause, p.UUID)
	}
	c := b.commitPendingRun("c", b.now)
	for range 3 {
		b.controlExistingRuns(store.VerbCancel, c.UUID)
	}
	b.wantEvents("r completed", "p paused", "c cancelled")
}

func eventOrders(b *fixture) {
	root := b.commitRunningRun("root")
	child := b.commitPendingChild(root, "child")
	b.controlExistingRuns(store.VerbPause, root.UUID)
	b.controlExistingRuns(store.VerbResume, root.UUID)
	b.controlExistingRuns(store.VerbPause, root.UUID)
	b.controlExistingRuns(store.VerbPause, child.UUID) // the child is paused already, with its parent: the event has the author of its own pause
	b.controlExistingRuns(store.VerbResume, root.UUID) // the child stays paused
	b.controlExistingRuns(store.VerbPause, root.UUID)
	b.commitOwnershipEnd(b.park(root, time.Time{}))
	b.controlExistingRuns(store.VerbCancel, child.UUID)
	b.controlExistingRuns(store.VerbCancel, root.UUID) // the root was executed, so its cancel is only requested
	b.wantEvents("child paused", "root resumed", "child resumed", "child paused", "child paused", "root resumed", "root paused", "child cancelled")
}

func eventCursor(b *fixture) {
	var want []uuid.UUID
	for range 20 {
		batch := &store.Batch{}
		for range 5 {
			r := b.commitRunningRun("")
			end := b.newCompletion(r.UUID, epochAt(1))
			batch.OwnershipEnds = append(batch.OwnershipEnds, &end)
			want = append(want, r.UUID)
		}
		b.commit(batch)
	}
	last := b.commitRunningRun("")
	b.commitOwnershipEnd(b.newCompletion(last.UUID, epochAt(1)))
	all := b.tail(last.UUID, 100)
	var got []uuid.UUID
	for _, e := range all[:len(all)-1] {
		got = append(got, e.Run)
	}
	wantUUIDs(b, "ended", got, want)
	for i := range 20 { // the events of one commit have no order
		if len(got) == len(want) {
			wantUUIDs(b, fmt.Sprint("commit ", i), got[i*5:i*5+5], want[i*5:i*5+5])
		}
	}
	for i, e := range all {
		rest := b.events(e.Cursor, 1000)
		if len(rest) != len(all)-1-i {
			b.Fatalf("after event %d of %d: got %d, want %d", i, len(all), len(rest), len(all)-1-i)
		}
		if len(rest) > 0 && rest[0] != all[i+1] {
			b.Errorf("after event %d: got %+v, want %+v", i, rest[0], all[i+1])
		}
	}
}

func eventBadCursor(b *fixture) {
	r := b.commitRunningRun("")
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	good := b.tail(r.UUID, 10)[0].Cursor
	for _, text := range []string{"x", "-1", " ", "1.5", "9999999999999999999999", good + "x", " " + good, "'; DROP TABLE event;", "\x00", "\xff", "NULL"} {
		if got, err := b.store.Events(b.ctx, text, 10); !errors.Is(err, store.ErrBadData) {
			b.Errorf("events after %q: got %d events, %v, want ErrBadData", text, len(got), err)
		}
	}
	if got := b.events(good, 10); len(got) != 0 {
		b.Errorf("after the only one: got %d events", len(got))
	}
}

func eventFailed(b *fixture) {
	r := b.commitRunningRun("r")
	end := b.newCompletion(r.UUID, epochAt(1))
	bad := &store.StartWrite{Run: b.newRunningRun("\x00")}
	if err := b.store.Commit(b.ctx, &store.Batch{Starts: []*store.StartWrite{bad}, OwnershipEnds: []*store.OwnershipEnd{&end}}); err == nil {
		return // the database can hold such a name
	}
	b.wantEvents()
}

// raceEvents ends runs through both handles while a reader reads the events. The reader receives
// the end of each run exactly once.
func raceEvents(b *fixture, s store.Store) {
	const writers, each = 8, 15
	handles := []*fixture{b, b.through(s)}
	var runs [writers][]store.Run
	for i := range runs {
		for range each {
			runs[i] = append(runs[i], b.commitRunningRun(""))
		}
	}
	last := b.commitRunningRun("last")
	var ended atomic.Int32
	var told []store.Event
	b.together(writers+1, func(i int) error {
		if i == writers {
			told = handles[1].tail(last.UUID, 4)
			return nil
		}
		for _, r := range runs[i] {
			end := b.newCompletion(r.UUID, epochAt(1))
			if err := handles[i%2].deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}}); err != nil {
				return err
			}
		}
		if ended.Add(1) < writers {
			return nil
		}
		end := b.newCompletion(last.UUID, epochAt(1))
		return b.deliver(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{&end}})
	})
	var got, want []uuid.UUID
	for _, e := range told {
		got = append(got, e.Run)
	}
	for _, all := range runs {
		for _, r := range all {
			want = append(want, r.UUID)
		}
	}
	wantUUIDs(b, "told of", got, append(want, last.UUID))
}

// eventsBackwards reads all events from the newest on, in pages, and gets those of Events in the opposite order.
func eventsBackwards(b *fixture) {
	var last uuid.UUID
	for range 7 {
		r := b.commitRunningRun("")
		b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
		last = r.UUID
	}
	want := b.tail(last, 100)
	slices.Reverse(want)
	for _, limit := range []int{1, 3, 100} {
		var got []store.Event
		for before := ""; ; {
			page, err := b.store.EventsBefore(b.ctx, before, limit)
			if err != nil || len(page) > limit {
				b.Fatalf("EventsBefore %q: %d events, %v", before, len(page), err)
			}
			if len(page) == 0 {
				break
			}
			got, before = append(got, page...), page[len(page)-1].Cursor
		}
		if !slices.Equal(got, want) {
			b.Errorf("in pages of %d: %+v, want %+v", limit, got, want)
		}
	}
	if _, err := b.store.EventsBefore(b.ctx, "no cursor", 1); !errors.Is(err, store.ErrBadData) {
		b.Errorf("a text that is no cursor: %v", err)
	}
	if page, err := b.store.EventsBefore(b.ctx, "", 0); err != nil || len(page) > 0 {
		b.Errorf("no event: %v, %v", page, err)
	}
}
