package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var queues = []test{
	{"the settings of an operator apply, then those of the newest version", queueSettings},
	{"a pause keeps its first reason", queuePause},
	{"a deleted queue is not listed and can come back", queueDelete},
	{"a start writes its place once", queueStart},
	{"a child has a place", queueChild},
	{"runs that no admission has seen count for the depth", queueDepth},
	{"the mark of a time to begin goes with its place", queueStartBy},
	{"a cancelled run that has to begin by a time leaves no place", queueStartByCancelled},
}

// queueRow returns the row of the queue, or nil.
func (b *fixture) queueRow(name string) *store.QueueRow {
	b.Helper()
	rows, err := b.store.QueueRows(b.ctx)
	if err != nil {
		b.Fatalf("QueueRows: %v", err)
	}
	for i := range rows {
		if rows[i].Name == name {
			return &rows[i]
		}
	}
	return nil
}

// queueInfo returns the queue, or nil.
func (b *fixture) queueInfo(name string) *store.Queue {
	b.Helper()
	all, err := b.store.Queues(b.ctx, b.now)
	if err != nil {
		b.Fatalf("Queues: %v", err)
	}
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func (b *fixture) changeQueue(c store.QueueChangeRequest) {
	b.Helper()
	c.Now = b.now
	if err := b.store.ChangeQueue(b.ctx, c); err != nil {
		b.Fatalf("ChangeQueue: %v", err)
	}
}

func (b *fixture) placeOf(run uuid.UUID) *store.QueuedRun {
	b.Helper()
	p, err := b.store.QueuePlaceOfRun(b.ctx, run)
	if err != nil {
		b.Fatalf("PlaceOf: %v", err)
	}
	return p
}

// newQueuedStart returns the start of a run in a queue with a row. It is not committed.
func (b *fixture) newQueuedStart(name, queue, key string) *store.StartWrite {
	r := b.newPendingRun(name, b.now)
	r.Queue, r.Admission = queue, store.AdmissionPending
	return &store.StartWrite{Run: r, Place: &store.QueuePlace{Run: r.UUID, Queue: queue, Key: key, Weight: 1, State: store.PlaceNotArrived, Root: true}}
}

func queueSettings(b *fixture) {
	want := func(what string, executing int, version string, set bool) {
		b.Helper()
		row, q := b.queueRow("mail"), b.queueInfo("mail")
		if row == nil || q == nil {
			b.Fatalf("%s: there is no queue", what)
		}
		if row.Settings != q.Settings || q.Settings.MaxExecuting != executing || q.DeclaredVersion != version || (q.OperatorSettings != nil) != set || row.Deleted {
			b.Errorf("%s: %+v, %+v, want %d at once, declared by %q, set by an operator: %v", what, *row, *q, executing, version, set)
		}
	}
	declare := func(version string, n int) {
		b.Helper()
		b.changeQueue(store.QueueChangeRequest{Name: "mail", Declare: true, Version: version, Settings: store.QueueSettings{MaxExecuting: n}})
	}
	declare("v1", 1)
	want("the first", 1, "v1", false)
	declare("v1", 2)
	want("the same version declares anew", 2, "v1", false)
	declare("v2", 3)
	declare("v1", 2)
	want("an older version again", 3, "v2", false)
	chosen := store.QueueSettings{
		MaxExecuting: 7, MaxExecutingPerWorker: 2, MaxInProgress: 9, MaxExecutingPerKey: 3, MaxInProgressPerKey: 4, Depth: 1000, Closed: true,
		Rate: store.Rate{Count: 5, Period: time.Minute, Burst: 2}, RatePerKey: store.Rate{Count: 1, Period: time.Second, Burst: 1},
	}
	b.changeQueue(store.QueueChangeRequest{Name: "mail", Settings: chosen, Actor: "ann", Reason: "slow provider"})
	declare("v3", 4)
	want("an operator's", 7, "v3", true)
	q := b.queueInfo("mail")
	if q.Settings != chosen || *q.OperatorSettings != chosen || q.SetBy != "ann" || q.SetReason != "slow provider" || !q.SetAt.Equal(b.now) ||
		q.DeclaredSettings == nil || q.DeclaredSettings.MaxExecuting != 4 || !q.DeclaredAt.Equal(b.now) {
		b.Errorf("%+v", q)
	}
	b.wantChange("set", q.LastChange, store.OperatorChange{Verb: store.OperatorSet, At: b.now, By: "ann", Reason: "slow provider"})
	for name, want := range map[string]bool{"mail": true, "none": false} {
		if found, err := b.store.ResetQueueSettings(b.ctx, store.DeleteOrResetRequest{Name: name, Now: b.afterStart(time.Minute), Actor: "bob", Reason: "over"}); err != nil || found != want {
			b.Errorf("ResetQueueSettings of %q: %v, %v, want %v", name, found, err, want)
		}
	}
	want("after a reset", 4, "v3", false)
	b.wantChange("reset", b.queueInfo("mail").LastChange, store.OperatorChange{Verb: store.OperatorReset, At: b.afterStart(time.Minute), By: "bob", Reason: "over"})
	b.changeQueue(store.QueueChangeRequest{Name: "undeclared"})
	if found, err := b.store.ResetQueueSettings(b.ctx, store.DeleteOrResetRequest{Name: "undeclared", Now: b.now}); err != nil || found {
		b.Errorf("ResetQueueSettings of a queue that no code declares: %v, %v", found, err)
	}
	wantOlderVersions(b, func(version, want string) {
		b.Helper()
		b.changeQueue(store.QueueChangeRequest{Name: "many", Declare: true, Version: version})
		if q := b.queueInfo("many"); q == nil || q.DeclaredVersion != want {
			b.Fatalf("version %s declares the queue: %+v, want that %s has declared it", version, q, want)
		}
	})
	b.wantChange("a refused reset", b.queueInfo("undeclared").LastChange, store.OperatorChange{Verb: store.OperatorSet, At: b.now})
}

// wantChange checks what is recorded of an operator.
func (b *fixture) wantChange(what string, got *store.OperatorChange, want store.OperatorChange) {
	b.Helper()
	if want.At = want.At.UTC(); got == nil || *got != want {
		b.Errorf("%s: the last change of an operator is %+v, want %+v", what, got, want)
	}
}

func queuePause(b *fixture) {
	pause := func(p store.QueuePauseRequest, want bool) {
		b.Helper()
		if found, err := b.store.PauseQueue(b.ctx, p); err != nil || found != want {
			b.Errorf("PauseQueue of %+v: %v, %v, want %v", p, found, err, want)
		}
	}
	pause(store.QueuePauseRequest{Name: "none", Now: b.now}, false)
	b.changeQueue(store.QueueChangeRequest{Name: "mail"})
	pause(store.QueuePauseRequest{Name: "mail", Now: b.now, Actor: "ann", Reason: "outage"}, true)
	pause(store.QueuePauseRequest{Name: "mail", Now: b.afterStart(time.Hour), Actor: "bob", Reason: "other"}, true)
	if q := b.queueInfo("mail"); !q.PausedAt.Equal(b.now) || q.PausedBy != "ann" || q.PauseReason != "outage" || !b.queueRow("mail").PausedAt.Equal(b.now) {
		b.Errorf("paused: %+v", q)
	}
	paused := store.OperatorChange{Verb: store.OperatorPause, At: b.now, By: "ann", Reason: "outage"}
	b.wantChange("paused twice", b.queueInfo("mail").LastChange, paused)
	resumed := store.OperatorChange{Verb: store.OperatorResume, At: b.afterStart(time.Hour), By: "bob", Reason: "over"}
	pause(store.QueuePauseRequest{Name: "mail", Resume: true, Now: resumed.At, Actor: "bob", Reason: "over"}, true)
	pause(store.QueuePauseRequest{Name: "mail", Resume: true, Now: b.afterStart(2 * time.Hour), Actor: "eve"}, true)
	b.wantChange("resumed twice", b.queueInfo("mail").LastChange, resumed)
	if q := b.queueInfo("mail"); !q.PausedAt.IsZero() || q.PausedBy != "" || q.PauseReason != "" {
		b.Errorf("resumed: %+v", q)
	}
}

func queueDelete(b *fixture) {
	b.changeQueue(store.QueueChangeRequest{Name: "mail", Settings: store.QueueSettings{MaxExecuting: 1}})
	for _, want := range []bool{true, false} {
		if found, err := b.store.DeleteQueue(b.ctx, store.DeleteOrResetRequest{Name: "mail", Now: b.now, Actor: "eve"}); err != nil || found != want {
			b.Errorf("DeleteQueue: %v, %v, want %v", found, err, want)
		}
	}
	if row := b.queueRow("mail"); b.queueInfo("mail") != nil || row != nil && !row.Deleted {
		b.Errorf("the deleted queue is there: %+v", row)
	}
	b.changeQueue(store.QueueChangeRequest{Name: "mail", Declare: true, Version: "v1", Settings: store.QueueSettings{MaxExecuting: 2}})
	if row := b.queueRow("mail"); row == nil || row.Deleted || row.Settings.MaxExecuting != 2 {
		b.Errorf("declared again: %+v", row)
	}
	b.wantChange("deleted, and declared again", b.queueInfo("mail").LastChange, store.OperatorChange{Verb: store.OperatorDelete, At: b.now, By: "eve"})
}

func queueStart(b *fixture) {
	b.changeQueue(store.QueueChangeRequest{Name: "mail"})
	first := b.newQueuedStart("order-42", "mail", "acme")
	first.Place.Weight, first.Place.Priority, first.Place.StartBy = 3, 2, b.afterStart(time.Hour)
	first.Run.Priority = 2
	first.Tags = []store.Tag{{Key: "shop.kind", Value: "gift"}}
	plain, other := &store.StartWrite{Run: b.newPendingRun("plain", b.now)}, b.newQueuedStart("order-43", "mail", "")
	b.commit(&store.Batch{Starts: []*store.StartWrite{plain, first, other}})
	for _, w := range []*store.StartWrite{first, plain, other} {
		wantOutcome(b, "start of "+w.Run.Name, w.Outcome, store.Written)
	}
	want := store.QueuedRun{QueuePlace: *first.Place, Admission: store.AdmissionPending}
	if p := b.placeOf(first.Run.UUID); p == nil || !samePlace(*p, want) {
		b.Errorf("the place is %+v, want %+v", p, want)
	}
	if p := b.placeOf(other.Run.UUID); p == nil || p.Key != "" || p.Admission != store.AdmissionPending {
		b.Errorf("the place without a key is %+v", p)
	}
	if p := b.placeOf(plain.Run.UUID); p != nil {
		b.Errorf("a run in a queue without a row has the place %+v", p)
	}
	again := b.newQueuedStart("order-42", "mail", "other")
	repeat := *first
	for _, w := range []*store.StartWrite{again, &repeat} {
		b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	}
	wantOutcome(b, "the same name", again.Outcome, store.AlreadyRecorded)
	wantOutcome(b, "the same start repeated", repeat.Outcome, store.Written)
	if p := b.placeOf(again.Run.UUID); p != nil {
		b.Errorf("the start that was not created has the place %+v", p)
	}
	if p := b.placeOf(first.Run.UUID); p == nil || !samePlace(*p, want) {
		b.Errorf("the place is %+v after the second start, want %+v", p, want)
	}
	for _, c := range b.claim(b.query(b.afterStart(time.Minute))).Runs {
		if c.Run.UUID != plain.Run.UUID {
			b.Errorf("a claim took run %s, which needs a place", c.Run.Name)
		}
	}
}

// samePlace compares two places; times are compared to the microsecond.
func samePlace(got, want store.QueuedRun) bool {
	for _, p := range []*store.QueuedRun{&got, &want} {
		p.StartBy, p.ArrivedAt = p.StartBy.UTC(), p.ArrivedAt.UTC()
	}
	return got == want
}

func queueChild(b *fixture) {
	parent := b.commitRunningRun("parent")
	kid := b.child(parent, "kid")
	kid.Queue, kid.Admission, kid.Status, kid.Epoch, kid.Owner, kid.StartedAt, kid.WakeAt = "mail", store.AdmissionPending, store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, b.now
	w := &store.StartWrite{Run: kid, ParentEpoch: epochAt(1), Place: &store.QueuePlace{Run: kid.UUID, Queue: "mail", Key: "acme", Weight: 1, State: store.PlaceNotArrived}}
	fenced := *w
	fenced.ParentEpoch = epochAt(7)
	b.commit(&store.Batch{Starts: []*store.StartWrite{&fenced}})
	wantOutcome(b, "a child of a former owner", fenced.Outcome, store.Fenced)
	if p := b.placeOf(kid.UUID); p != nil {
		b.Errorf("the refused child has the place %+v", p)
	}
	b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	wantOutcome(b, "the child", w.Outcome, store.Written)
	if p := b.placeOf(kid.UUID); p == nil || p.Key != "acme" || p.Admission != store.AdmissionPending {
		b.Errorf("the child has the place %+v", p)
	}
}

func queueDepth(b *fixture) {
	b.changeQueue(store.QueueChangeRequest{Name: "mail", Settings: store.QueueSettings{Depth: 10}})
	want := func(queue string, most, want int) {
		b.Helper()
		if n, err := b.store.QueueDepth(b.ctx, queue, most); err != nil || n != want {
			b.Errorf("Depth of %q, at most %d: %d, %v, want %d", queue, most, n, err, want)
		}
	}
	want("mail", 100, 0)
	for range 5 {
		b.commit(&store.Batch{Starts: []*store.StartWrite{b.newQueuedStart("", "mail", "acme"), b.newQueuedStart("", "other", "")}})
	}
	want("mail", 100, 5)
	want("mail", 3, 3)
	want("none", 100, 0)
}

func queueStartBy(b *fixture) {
	for name, admission := range map[string]store.AdmissionState{"free": store.AdmissionNotNeeded, "admitted": store.AdmissionGranted} {
		w := b.newQueuedStart(name, "queue", "")
		w.Run.Admission, w.Run.Control, w.Place.StartBy = admission, store.HasStartBy, b.afterStart(time.Hour)
		b.commit(&store.Batch{Starts: []*store.StartWrite{w}})
		got := b.claimOne(b.query(b.afterStart(time.Minute)), w.Run.UUID)
		if p := b.placeOf(w.Run.UUID); got.Run.Control != store.HasStartBy || p == nil || !p.StartBy.Equal(b.afterStart(time.Hour)) {
			b.Errorf("%s: claimed with control %d and the place %+v", name, got.Run.Control, p)
		}
		for epoch, want := range map[store.Epoch]bool{epochAt(7): false, got.Run.Epoch: true} {
			for range 2 { // repeated because the result was lost
				if kept, err := b.store.ClearStartByDeadline(b.ctx, w.Run.UUID, epoch); err != nil || kept != want {
					b.Errorf("%s: StartByKept at epoch %s: %v, %v, want %v", name, epoch, kept, err, want)
				}
			}
		}
		if p := b.placeOf(w.Run.UUID); b.row(w.Run.UUID).Control != 0 || (p == nil) != (admission == store.AdmissionNotNeeded) {
			b.Errorf("%s: control %d and the place %+v", name, b.row(w.Run.UUID).Control, p)
		}
	}
}

func queueStartByCancelled(b *fixture) {
	start := func(name string, admission store.AdmissionState) *store.StartWrite {
		w := b.newQueuedStart(name, "queue", "")
		w.Run.Admission, w.Run.Control, w.Place.StartBy = admission, store.HasStartBy, b.afterStart(time.Hour)
		return w
	}
	begun := start("begun", store.AdmissionNotNeeded) // its worker has died before it has removed the mark
	b.commit(&store.Batch{Starts: []*store.StartWrite{begun}})
	b.claimOne(b.query(b.now), begun.Run.UUID)
	free, ended, gated, unreleased := start("cancelled", store.AdmissionNotNeeded), start("terminated", store.AdmissionNotNeeded), start("in line", store.AdmissionPending), start("not released", store.AdmissionNotNeeded)
	unreleased.Run.Unreleased, unreleased.Run.WakeAt = true, time.Time{}
	b.commit(&store.Batch{Starts: []*store.StartWrite{free, ended, gated, unreleased}})
	b.controlExistingRuns(store.VerbPause, free.Run.UUID)
	if p := b.placeOf(free.Run.UUID); p == nil {
		b.Error("a paused run has lost the time by which it has to begin")
	}
	b.controlExistingRuns(store.VerbCancel, free.Run.UUID, gated.Run.UUID, begun.Run.UUID, unreleased.Run.UUID)
	b.controlExistingRuns(store.VerbTerminate, ended.Run.UUID)
	for _, w := range []*store.StartWrite{free, ended, begun, unreleased} {
		if p := b.placeOf(w.Run.UUID); p != nil {
			b.Errorf("%s: its place is left: %+v", w.Run.Name, p)
		}
	}
	if p := b.placeOf(gated.Run.UUID); p == nil {
		b.Error("the place of a run that an admission counts was deleted")
	}
}
