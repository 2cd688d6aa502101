package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var folds = []test{
	{"kept as it was written", foldKept},
	{"due by its time, and by the end of a run", foldDue},
	{"no change is lost, however many make one", foldRace},
	{"the run and the row are one transaction", foldAtomic},
	{"a plan sees the runs and the name it asks for", foldSeen},
	{"a run begins when it is released, and not before", foldReleased},
	{"a run that has ended or is cancelled is not released", foldGone},
	{"a run that ends before it is released leaves its queue", endUnreleased},
	{"a released run keeps a timeout that was set or removed while it waited", releaseTimeout},
	{"a released run gets the time by which it must begin", releaseStartBy},
}

var foldKey = store.StartKey{Workflow: "flow", Key: "k", Kind: store.StartKeySingleton}

// fold makes a change with the given plan, which must succeed.
func (b *fixture) fold(key store.StartKey, plan func(store.StartKeySnapshot) *store.StartKeyWrite) *store.StartKeyChangeRequest {
	b.Helper()
	c := &store.StartKeyChangeRequest{Key: key, Plan: plan}
	if err := b.store.UpdateStartKeyRow(b.ctx, c); err != nil {
		b.Fatalf("UpdateStartKeyRow: %v", err)
	}
	return c
}

// setFold writes a row.
func (b *fixture) setFold(row store.StartKeyRow) {
	b.Helper()
	if row.State == nil {
		row.State = []byte(`{}`)
	}
	b.fold(row.StartKey, func(store.StartKeySnapshot) *store.StartKeyWrite { return &store.StartKeyWrite{Row: row} })
}

// foldRow returns the row, or nil.
func (b *fixture) foldRow(key store.StartKey) (row *store.StartKeyRow) {
	b.Helper()
	b.fold(key, func(s store.StartKeySnapshot) *store.StartKeyWrite {
		row = s.Row
		return nil
	})
	return row
}

func foldKept(b *fixture) {
	if row := b.foldRow(foldKey); row != nil {
		b.Errorf("an unknown key has %+v", row)
	}
	rows := []store.StartKeyRow{
		{StartKey: foldKey, CheckAt: b.now, State: []byte(`{"a":[1]}`), WaitingInput: []byte(`"x"`), CheckAfterRun: owner(uuid.New()), WaitingRun: owner(uuid.New())},
		{StartKey: store.StartKey{Workflow: "flow", Key: "k", Kind: store.StartKeyDebounce}, CheckAt: b.afterStart(time.Hour), State: []byte(`{}`)},
		{StartKey: store.StartKey{Workflow: "other", Key: "k", Kind: store.StartKeySingleton}, CheckAt: b.afterStart(-time.Hour), State: []byte(`{}`)},
		{StartKey: store.StartKey{Workflow: "flow", Key: "b '%s' \U0001F680", Kind: store.StartKeyThrottle}, CheckAt: b.afterStart(1), State: []byte(`{}`), WaitingInput: []byte(`0`)},
	}
	rows[3].CheckAt = b.afterStart(time.Microsecond)
	for _, row := range rows {
		b.setFold(store.StartKeyRow{StartKey: row.StartKey, CheckAt: b.afterStart(time.Minute), State: []byte(`{"first":1}`)})
		b.setFold(row)
	}
	for _, row := range rows {
		if got := b.foldRow(row.StartKey); got == nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", row) {
			b.Errorf("got %+v, want %+v", got, row)
		}
	}
	waits := rows[0]
	if got, err := b.store.StartKeyOfWaitingRun(b.ctx, waits.WaitingRun.UUID); err != nil || got == nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", waits) {
		b.Errorf("what a run waits for is %+v, %v, want %+v", got, err, waits)
	}
	if got, err := b.store.StartKeyOfWaitingRun(b.ctx, waits.CheckAfterRun.UUID); err != nil || got != nil {
		b.Errorf("a run that does not wait has %+v, %v", got, err)
	}
	b.fold(foldKey, func(store.StartKeySnapshot) *store.StartKeyWrite { return &store.StartKeyWrite{Delete: true} })
	if row := b.foldRow(foldKey); row != nil {
		b.Errorf("a deleted row is %+v", row)
	}
	if row := b.foldRow(rows[1].StartKey); row == nil {
		b.Error("the row of the same key with another kind is gone")
	}
	skips := &store.StartKeyChangeRequest{Key: foldKey, SkipLocked: true, Plan: func(store.StartKeySnapshot) *store.StartKeyWrite { panic("there is nothing to plan") }}
	if err := b.store.UpdateStartKeyRow(b.ctx, skips); err != nil || skips.AppliedWrite != nil {
		b.Errorf("a look at a row that is gone: %+v, %v", skips, err)
	}
}

func foldDue(b *fixture) {
	due := func() ([]string, time.Time) {
		keys, next, err := b.store.DueStartKeys(b.ctx, b.now, 10)
		if err != nil {
			b.Fatalf("DueStartKeys: %v", err)
		}
		var names []string
		for _, k := range keys {
			names = append(names, fmt.Sprint(k.Workflow, " ", k.Key, " ", k.Kind))
		}
		slices.Sort(names)
		return names, next
	}
	if keys, next := due(); len(keys) != 0 || !next.IsZero() {
		b.Errorf("an empty database: %q, %v", keys, next)
	}
	live, ended := b.commitRunningRun("live"), b.commitRunningRun("ended")
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	for name, row := range map[string]store.StartKeyRow{
		"past": {CheckAt: b.afterStart(-time.Hour)}, "now": {CheckAt: b.now}, "later": {CheckAt: b.afterStart(time.Minute)}, "much later": {CheckAt: b.afterStart(time.Hour)},
		"waits": {CheckAt: b.afterStart(time.Hour), CheckAfterRun: owner(live.UUID)}, "waits no longer": {CheckAt: b.afterStart(time.Hour), CheckAfterRun: owner(ended.UUID)},
		"run is gone": {CheckAt: b.afterStart(time.Hour), CheckAfterRun: owner(uuid.New())},
	} {
		row.StartKey = store.StartKey{Workflow: "flow", Key: name, Kind: store.StartKeyThrottle}
		b.setFold(row)
	}
	keys, next := due()
	if want := []string{"flow now throttle", "flow past throttle", "flow run is gone throttle", "flow waits no longer throttle"}; !slices.Equal(keys, want) || !next.Equal(b.afterStart(time.Minute)) {
		b.Errorf("due are %q, and next %v; want %q, in a minute", keys, next.Sub(b.now), want)
	}
}

// foldRace lets several callers change a row that does not exist yet, and start a run if they are the first.
func foldRace(b *fixture) {
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		all.Go(func() {
			var err error
			for range 100 { // a store returns ErrLocked soon, and the engine retries
				err = b.store.UpdateStartKeyRow(b.ctx, &store.StartKeyChangeRequest{Key: foldKey, Plan: func(s store.StartKeySnapshot) *store.StartKeyWrite {
					w := &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: foldKey, CheckAt: b.now, State: []byte(`{"n":"x"}`)}}
					if s.Row != nil {
						w.Row.State = slices.Insert(slices.Clone(s.Row.State), len(`{"n":"`), 'x')
						return w
					}
					w.RunToCreate = &store.StartWrite{Run: b.newPendingRun(fmt.Sprint("run ", i), b.now)}
					return w
				}})
				if !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
					break
				}
			}
			errs <- err
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			b.Error(err)
		}
	}
	if row := b.foldRow(foldKey); row == nil || string(row.State) != `{"n":"xxxxxxxx"}` {
		b.Errorf("the row is %+v", row)
	}
	if got := b.claim(b.query(b.now)); len(got.Runs) != 1 {
		b.Errorf("%d runs were started", len(got.Runs))
	}
}

func foldAtomic(b *fixture) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	err := b.store.UpdateStartKeyRow(ctx, &store.StartKeyChangeRequest{Key: foldKey, Plan: func(store.StartKeySnapshot) *store.StartKeyWrite {
		cancel() // as a process that dies
		return &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: foldKey, CheckAt: b.now, State: []byte(`{}`)}, RunToCreate: &store.StartWrite{Run: b.newPendingRun("a", b.now)}}
	}})
	if err == nil {
		b.Error("a change whose context has ended returned no error")
	}
	if b.foldRow(foldKey) != nil || b.get("a")[0] != nil {
		b.Errorf("half of a change was written: row %v, run %v", b.foldRow(foldKey), b.get("a")[0])
	}
}

func foldSeen(b *fixture) {
	live, deadline := b.newPendingRun("live", b.now), b.afterStart(time.Hour)
	live.Deadline, live.Priority = deadline, 2
	b.commitStart(live)
	child := b.commitRunningRun("parent")
	b.setFold(store.StartKeyRow{StartKey: foldKey, CheckAt: b.now})
	gone := uuid.New()
	var got store.StartKeySnapshot
	for _, name := range []string{"", "live", "none", live.UUID.String()} {
		c := &store.StartKeyChangeRequest{
			Key: foldKey, Name: name, RunsToRead: func(*store.StartKeyRow) []uuid.UUID { return []uuid.UUID{live.UUID, gone, child.UUID} },
			Plan: func(s store.StartKeySnapshot) *store.StartKeyWrite {
				got = s
				return nil
			},
		}
		if err := b.store.UpdateStartKeyRow(b.ctx, c); err != nil {
			b.Fatal(err)
		}
		if named := got.RunWithName != nil; named != (name == "live") {
			b.Errorf("the run with the name %q is %+v", name, got.RunWithName)
		}
	}
	want := map[uuid.UUID]store.StartKeyRun{
		live.UUID:  {Name: "live", Status: store.Pending, Queue: "queue", Priority: 2},
		child.UUID: {Name: "parent", Status: store.Running, Queue: "queue", Epoch: epochAt(1)},
	}
	if fmt.Sprint(got.Runs) != fmt.Sprint(want) {
		b.Errorf("the runs are %+v, want %+v", got.Runs, want)
	}
}

// unreleased commits a run that waits under the key.
func (b *fixture) unreleased(name string) store.Run {
	b.Helper()
	r := b.newPendingRun(name, time.Time{})
	r.Unreleased = true
	b.fold(foldKey, func(store.StartKeySnapshot) *store.StartKeyWrite {
		return &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: foldKey, CheckAt: b.now, State: []byte(`{}`)}, RunToCreate: &store.StartWrite{Run: r, Tags: []store.Tag{{Key: "a.b", Value: "c"}}}}
	})
	return r
}

func (b *fixture) releaseFold(r store.Run, startBy time.Time, input []byte) error {
	return b.store.UpdateStartKeyRow(b.ctx, &store.StartKeyChangeRequest{Key: foldKey, Plan: func(s store.StartKeySnapshot) *store.StartKeyWrite {
		return &store.StartKeyWrite{Row: *s.Row, Release: &store.DelayedRunRelease{
			RunUUID: r.UUID, Queue: r.Queue, Priority: r.Priority, Lane: store.ClaimLaneOf(r.Queue, r.Workflow, r.Version, r.Priority).WithAdmission(r.Admission),
			WakeAt: b.afterStart(time.Minute), Deadline: b.afterStart(time.Hour), Timeout: time.Minute, StartBy: startBy, Input: input,
		}}
	}})
}

// releaseTimeout sets and removes the timeout of runs that wait, between the plan of their release and its write where that is possible.
func releaseTimeout(b *fixture) {
	for _, set := range []time.Duration{0, 2 * time.Hour} {
		r := b.unreleased(fmt.Sprint("set to ", set))
		d := &store.DeadlineChangeRequest{Run: r.UUID, Now: b.now, Timeout: set}
		if set > 0 {
			d.NewDeadline = b.afterStart(set)
		}
		if err := b.store.SetDeadline(b.ctx, d); err != nil || d.Outcome != store.Written {
			b.Fatal(d.Outcome, err)
		}
		if err := b.releaseFold(r, time.Time{}, nil); err != nil {
			b.Fatal(err)
		}
		if got := b.row(r.UUID); !got.Deadline.Equal(d.NewDeadline) {
			b.Errorf("set to %v: the deadline is %v, want %v", set, got.Deadline, d.NewDeadline)
		}
		if got := b.outline(r.UUID, b.now).Timeout; got != set {
			b.Errorf("set to %v: the timeout is %v", set, got)
		}
	}
}

func foldReleased(b *fixture) {
	r, paused := b.unreleased("waits"), b.unreleased("is paused")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.controlExistingRuns(store.VerbResume, r.UUID)
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	if got := b.claim(b.query(b.afterStart(time.Hour))); len(got.Runs) != 0 {
		b.Errorf("a run that waits was claimed: %+v", got.Runs)
	}
	for run, input := range map[*store.Run][]byte{&r: nil, &paused: []byte(`"newer"`)} {
		if err := b.releaseFold(*run, time.Time{}, input); err != nil {
			b.Fatal(err)
		}
	}
	if got := b.claim(b.query(b.now)); len(got.Runs) != 0 {
		b.Errorf("a run that is due in a minute was claimed: %+v", got.Runs)
	}
	got := b.claim(b.query(b.afterStart(time.Minute)))
	if len(got.Runs) != 1 || got.Runs[0].Run.UUID != r.UUID || string(got.Runs[0].Run.Input) != "{}" || !got.Runs[0].Run.Deadline.Equal(b.afterStart(time.Hour)) {
		b.Errorf("claimed: %+v", got.Runs)
	}
	if got := b.outline(r.UUID, b.now).Timeout; got != time.Minute {
		b.Errorf("the timeout is %v", got)
	}
	b.controlExistingRuns(store.VerbResume, paused.UUID)
	got = b.claim(b.query(b.afterStart(time.Minute)))
	if len(got.Runs) != 1 || got.Runs[0].Run.UUID != paused.UUID || string(got.Runs[0].Run.Input) != `"newer"` {
		b.Errorf("claimed after the resume: %+v", got.Runs)
	}
}

func foldGone(b *fixture) {
	begun, cancelled := b.commitRunningRun("begun"), b.unreleased("cancelled")
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	for _, r := range []store.Run{begun, cancelled} {
		before := b.get(r.UUID.String())[0]
		ctx, cancel := context.WithTimeout(b.ctx, 300*time.Millisecond)
		plans := 0
		err := b.store.UpdateStartKeyRow(ctx, &store.StartKeyChangeRequest{Key: foldKey, Plan: func(s store.StartKeySnapshot) *store.StartKeyWrite {
			if plans++; plans > 1 {
				return nil // the plan sees by now why
			}
			row := *s.Row
			row.State = []byte(`{"released":1}`)
			return &store.StartKeyWrite{Row: row, Release: &store.DelayedRunRelease{RunUUID: r.UUID, Queue: r.Queue, Priority: r.Priority, Lane: store.ClaimLaneOf(r.Queue, r.Workflow, r.Version, r.Priority), WakeAt: b.now}}
		}})
		cancel()
		if err == nil && plans == 1 {
			b.Errorf("%s was released", r.Name)
		}
		if after := b.get(r.UUID.String())[0]; fmt.Sprintf("%+v", *after) != fmt.Sprintf("%+v", *before) {
			b.Errorf("%s was changed: %+v", r.Name, after)
		}
		if row := b.foldRow(foldKey); string(row.State) != `{}` {
			b.Errorf("half of a release was written: %s", row.State)
		}
	}
}
