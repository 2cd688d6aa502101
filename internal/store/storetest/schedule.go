package storetest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var schedules = []test{
	{"kept as it was written", scheduleKept},
	{"due by its time, and by the end of its last run", scheduleDue},
	{"fires once, however many fire it", scheduleRace},
	{"a taken ID fails, and others start", scheduleTaken},
	{"runs, fires and the row are one transaction", scheduleAtomic},
	{"what fired is known when it is folded", scheduleFolded},
	{"deleted with its fires", scheduleDeleted},
}

// changeSchedule changes a schedule, which must succeed.
func (b *fixture) changeSchedule(u *store.ScheduleChangeRequest) *store.ScheduleChangeRequest {
	b.Helper()
	if err := b.store.ChangeSchedule(b.ctx, u); err != nil {
		b.Fatalf("ChangeSchedule: %v", err)
	}
	return u
}

// setSchedule writes a row with fires.
func (b *fixture) setSchedule(row store.Schedule, fires ...store.ScheduleFire) *store.ScheduleChangeRequest {
	b.Helper()
	return b.changeSchedule(&store.ScheduleChangeRequest{Name: row.Name, Plan: func(store.ScheduleSnapshot) *store.ScheduleWrite {
		return &store.ScheduleWrite{Row: row, Fires: fires, LastRunFireIndex: len(fires) - 1}
	}})
}

// fire returns a fire that starts a run with the given ID.
func (b *fixture) fire(schedule, run string, at time.Time) store.ScheduleFire {
	return store.ScheduleFire{
		Schedule: schedule, At: at, FiredAt: b.now, Kind: store.FireScheduled, Outcome: store.FireStarted, RunToStart: &store.StartWrite{Run: b.newPendingRun(run, b.now)},
	}
}

func (b *fixture) schedule(name string) *store.Schedule {
	b.Helper()
	row, err := b.store.ScheduleByName(b.ctx, name)
	if err != nil {
		b.Fatalf("ScheduleByName: %v", err)
	}
	return row
}

func (b *fixture) dueSchedules(now time.Time) ([]string, time.Time) {
	b.Helper()
	due, next, err := b.store.DueSchedules(b.ctx, now, 10)
	if err != nil {
		b.Fatalf("DueSchedules: %v", err)
	}
	slices.Sort(due)
	return due, next
}

func (b *fixture) describeFires(schedule string) (all []string) {
	b.Helper()
	fires, err := b.store.LatestScheduleFires(b.ctx, schedule, time.Time{}, 10)
	if err != nil {
		b.Fatalf("Fires: %v", err)
	}
	for _, f := range fires {
		all = append(all, fmt.Sprint(f.At.Sub(b.now), " ", f.Kind, " ", f.Outcome, " ", f.RunStatus))
	}
	return all
}

func scheduleKept(b *fixture) {
	if row := b.schedule("none"); row != nil {
		b.Errorf("an unknown schedule is %+v", row)
	}
	want := []store.Schedule{
		{Name: "a", State: []byte(`{}`)},
		{Name: "b '%s' \U0001F680", State: []byte(`{"a":[1]}`), NextAt: b.afterStart(time.Hour), WaitingAt: b.now, LastRun: owner(uuid.New()), Paused: true, CancelsLastRun: true},
	}
	for _, row := range want {
		b.setSchedule(store.Schedule{Name: row.Name, State: []byte(`{"first":1}`)})
		if u := b.setSchedule(row); !u.Found || u.AppliedWrite == nil {
			b.Errorf("%q: %+v", row.Name, u)
		}
		if got := b.schedule(row.Name); got == nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", row) {
			b.Errorf("got %+v, want %+v", got, row)
		}
	}
	list, err := b.store.Schedules(b.ctx, "", 10)
	if err != nil || fmt.Sprintf("%+v", list) != fmt.Sprintf("%+v", want) {
		b.Errorf("listed %+v, %v", list, err)
	}
	if list, err = b.store.Schedules(b.ctx, "a", 10); err != nil || len(list) != 1 {
		b.Errorf("after a: %+v, %v", list, err)
	}
	u := b.changeSchedule(&store.ScheduleChangeRequest{Name: "none", SkipLocked: true, Plan: func(store.ScheduleSnapshot) *store.ScheduleWrite { panic("there is nothing to plan") }})
	if u.Found || u.AppliedWrite != nil {
		b.Errorf("a due schedule that is gone: %+v", u)
	}
}

func scheduleDue(b *fixture) {
	if due, next := b.dueSchedules(b.now); len(due) != 0 || !next.IsZero() {
		b.Errorf("an empty database: %q, %v", due, next)
	}
	b.setSchedule(store.Schedule{Name: "past", State: []byte(`{}`), NextAt: b.afterStart(-time.Hour)})
	b.setSchedule(store.Schedule{Name: "now", State: []byte(`{}`), NextAt: b.now})
	b.setSchedule(store.Schedule{Name: "later", State: []byte(`{}`), NextAt: b.afterStart(time.Minute)})
	b.setSchedule(store.Schedule{Name: "never", State: []byte(`{}`)})
	live, ended, cancelled := b.commitRunningRun("live"), b.commitRunningRun("ended"), b.commitRunningRun("cancelled")
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	for name, row := range map[string]store.Schedule{
		"waits":             {LastRun: owner(live.UUID)},
		"cancels":           {LastRun: owner(live.UUID), CancelsLastRun: true},
		"has cancelled":     {LastRun: owner(cancelled.UUID), CancelsLastRun: true},
		"waits no longer":   {LastRun: owner(ended.UUID)},
		"run is gone":       {LastRun: owner(uuid.New())},
		"paused, run ended": {LastRun: owner(ended.UUID), Paused: true},
	} {
		row.Name, row.State, row.WaitingAt = name, []byte(`{}`), b.afterStart(-time.Hour)
		b.setSchedule(row)
	}
	due, next := b.dueSchedules(b.now)
	if want := []string{"cancels", "now", "past", "run is gone", "waits no longer"}; !slices.Equal(due, want) || !next.Equal(b.afterStart(time.Minute)) {
		b.Errorf("due are %q, and next %v; want %q, in a minute", due, next.Sub(b.now), want)
	}
}

// scheduleRace lets several callers fire the same due time: the row tells the later ones that it is over.
func scheduleRace(b *fixture) {
	b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`), NextAt: b.now})
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		all.Go(func() {
			errs <- b.store.ChangeSchedule(b.ctx, &store.ScheduleChangeRequest{Name: "s", Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
				if s.Row.NextAt.After(b.now) {
					return nil
				}
				row := *s.Row
				row.NextAt = b.afterStart(time.Hour)
				return &store.ScheduleWrite{Row: row, Fires: []store.ScheduleFire{b.fire("s", "s@"+uuid.NewString(), b.now)}}
			}})
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			b.Error(err)
		}
	}
	if got := b.claim(b.query(b.now)); len(got.Runs) != 1 {
		b.Errorf("%d runs were started", len(got.Runs))
	}
	if got := b.describeFires("s"); len(got) != 1 {
		b.Errorf("the fires are %q", got)
	}
}

func scheduleTaken(b *fixture) {
	taken := b.commitRunningRun("s@1")
	first, last := b.fire("s", "s@1", b.afterStart(-time.Second)), b.fire("s", "s@2", b.now)
	first.RunToStart.Tags = []store.Tag{{Key: "a.b", Value: "c"}}
	last.RunToStart.Tags = first.RunToStart.Tags
	u := b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`)}, first, last)
	if f := u.AppliedWrite.Fires; f[0].Outcome != store.FireFailed || f[0].Run.UUID != taken.UUID || f[1].Outcome != store.FireStarted || f[1].Run.UUID != last.RunToStart.Run.UUID {
		b.Errorf("%+v", f)
	}
	if row := b.schedule("s"); row.LastRun.UUID != last.RunToStart.Run.UUID {
		b.Errorf("the last run is %v, want %v", row.LastRun, last.RunToStart.Run.UUID)
	}
	if got, want := b.describeFires("s"), []string{"0s scheduled started pending", "-1s scheduled failed running"}; !slices.Equal(got, want) {
		b.Errorf("the fires are %q, want %q", got, want)
	}
	// What started a run stays so; what did not may be fired again.
	again, retried := b.fire("s", "s@2", b.now), b.fire("s", "s@3", b.afterStart(-time.Second))
	b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`)}, retried, again)
	if got, want := b.describeFires("s"), []string{"0s scheduled started pending", "-1s scheduled started pending"}; !slices.Equal(got, want) {
		b.Errorf("fired again: %q, want %q", got, want)
	}
}

func scheduleAtomic(b *fixture) {
	b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`), NextAt: b.now})
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	err := b.store.ChangeSchedule(ctx, &store.ScheduleChangeRequest{Name: "s", Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		cancel() // as a process that dies
		row := *s.Row
		row.NextAt = b.afterStart(time.Hour)
		return &store.ScheduleWrite{Row: row, Fires: []store.ScheduleFire{b.fire("s", "s@1", b.now)}}
	}})
	if err == nil {
		b.Error("a change whose context has ended returned no error")
	}
	if due, _ := b.dueSchedules(b.now); !slices.Equal(due, []string{"s"}) || b.get("s@1")[0] != nil || len(b.describeFires("s")) != 0 {
		b.Errorf("half of a change was written: due %q, run %v, fires %q", due, b.get("s@1")[0], b.describeFires("s"))
	}
}

func scheduleFolded(b *fixture) {
	hour := b.now.Truncate(time.Hour).Add(-24 * time.Hour)
	at := func(i int) time.Time { return hour.Add(time.Duration(i) * time.Second) }
	const n = store.CompactFiresAtCount + 350
	for i := 0; i < n; i += 50 {
		var fires []store.ScheduleFire
		for j := i; j < i+50; j++ {
			f := store.ScheduleFire{Schedule: "s", At: at(j), FiredAt: at(j), Kind: store.FireScheduled, Outcome: store.FireStarted, Run: owner(uuid.New())}
			switch j {
			case 0:
				f.Outcome = store.FireWaiting
			case 1:
				f.Outcome = store.FireSkipped
			case 2:
				f.Kind = store.FireTriggered
			}
			fires = append(fires, f)
		}
		b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`)}, fires...)
		if row := b.schedule("s"); row.FireCount >= store.CompactFiresAtCount {
			b.Fatalf("%d fires are kept", row.FireCount)
		}
	}
	all, err := b.store.LatestScheduleFires(b.ctx, "s", time.Time{}, 2*n)
	if err != nil || len(all) < store.FiresKeptInFull || len(all) > store.CompactFiresAtCount {
		b.Errorf("%d of %d fires are kept, %v", len(all), n, err)
	}
	if page, err := b.store.LatestScheduleFires(b.ctx, "s", all[1].At, 2); err != nil || !reflect.DeepEqual(page, all[2:4]) {
		b.Errorf("the page after two fires is %+v, %v; want %+v", page, err, all[2:4])
	}
	var fired map[time.Time]bool
	times := []time.Time{at(0), at(1), at(2), at(3), at(200), at(n - 1), at(n), at(0).Add(-time.Second), at(7200)}
	b.changeSchedule(&store.ScheduleChangeRequest{Name: "s", TimesToDecide: func(*store.Schedule) []time.Time { return times }, Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		fired = s.FiredTimes
		return nil
	}})
	want := map[time.Time]bool{at(0): true, at(3): true, at(200): true, at(n - 1): true}
	for _, t := range times {
		if fired[t.UTC()] != want[t] {
			b.Errorf("second %v: fired is %v, want %v", t.Sub(hour), fired[t.UTC()], want[t])
		}
	}
}

func scheduleDeleted(b *fixture) {
	b.setSchedule(store.Schedule{Name: "s", State: []byte(`{}`), NextAt: b.now}, b.fire("s", "s@1", b.now))
	b.setSchedule(store.Schedule{Name: "other", State: []byte(`{}`)}, b.fire("other", "other@1", b.now))
	b.changeSchedule(&store.ScheduleChangeRequest{Name: "s", Plan: func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		return &store.ScheduleWrite{Row: *s.Row, Delete: true, LastRunFireIndex: -1}
	}})
	if due, _ := b.dueSchedules(b.now); len(due) != 0 || b.schedule("s") != nil || len(b.describeFires("s")) != 0 || len(b.describeFires("other")) != 1 {
		b.Errorf("after the deletion: due %q, %+v, fires %q and %q", due, b.schedule("s"), b.describeFires("s"), b.describeFires("other"))
	}
	if b.get("s@1")[0] == nil {
		b.Error("the run was deleted too")
	}
}
