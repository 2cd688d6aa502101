package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// databaseClock changes the clock of a database.
type databaseClock struct {
	sqlite atomic.Int64 // by how much the clock of an SQLite database is off
	set    func(time.Duration)
}

// clockOf returns a database and its clock. On PostgreSQL the function that tells the time is replaced, so it tells another time to
// every statement and every process.
func clockOf(t *testing.T, kind string) (database, *databaseClock) {
	t.Helper()
	c := &databaseClock{}
	if kind == "sqlite" {
		c.set = func(off time.Duration) { c.sqlite.Store(int64(off)) }
		return fresh(t, kind), c
	}
	url := ownServer(t).URL()
	admin := session(t, url)
	for _, text := range []string{
		"CREATE TABLE public.clock AS SELECT interval '0' AS off",
		"ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO machine_clock",
		"CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT pg_catalog.machine_clock() + c.off FROM public.clock AS c'",
	} {
		sql(t, admin, text)
	}
	c.set = func(off time.Duration) {
		sql(t, admin, "UPDATE public.clock SET off = make_interval(secs => $1)", off.Seconds())
	}
	return database{Kind: kind, Where: url, Schema: "s"}, c
}

// clockChange is a change of the clock of a database.
type clockChange struct {
	from, until time.Time // by the machine's clock: when it was changed, and when all processes knew that
}

// overlaps reports whether a process may have gone by the clock as it was before when it made the call.
func (c clockChange) overlaps(call callTime) bool {
	return call.ended.After(c.from) && call.began.Before(c.until.Add(reading))
}

// callTime is when a call of the store began and ended, by the machine's clock.
type callTime struct{ began, ended time.Time }

// clocked is a store whose database has this clock.
type clocked struct {
	*beginnings
	clock *databaseClock
	fired *sync.Map // shared by all processes: the callTime that decided each scheduled time, by that time in UTC
}

// ChangeSchedule implements store.ScheduleStore.
func (s *clocked) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	call := callTime{began: time.Now()}
	err := s.beginnings.ChangeSchedule(ctx, u)
	call.ended = time.Now()
	if u.AppliedWrite != nil {
		for _, f := range u.AppliedWrite.Fires {
			s.fired.Store(f.At.UTC(), call)
		}
	}
	return err
}

func (s *clocked) shift(at time.Time) time.Time { return at.Add(time.Duration(s.clock.sqlite.Load())) }

// Now implements store.Store.
func (s *clocked) Now(ctx context.Context) (time.Time, error) {
	at, err := s.beginnings.Now(ctx)
	return s.shift(at), err
}

// RenewLeases implements store.Store.
func (s *clocked) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	r, err := s.beginnings.RenewLeases(ctx, h)
	r.Now = s.shift(r.Now)
	return r, err
}

// Row 60: the clock of the database is set forward, and back, by more than a lease. Each scheduled time starts one run, and not before its
// time; no bound of a queue is exceeded, and no rate on the clock of the queue or of the limit, which stands still when the clock goes
// back; the last start of a key wins; and all runs end.
func TestRow60_TheClockOfTheDatabaseChanges(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			theClockChanges(t, kind)
		})
	}
}

func theClockChanges(t *testing.T, kind string) {
	const (
		off   = 7 * time.Second
		count = 20 // in a second
		burst = 2
		runs  = 250
	)
	db, clock := clockOf(t, kind)
	limit := durable.NewLimit("calls", durable.Concurrent(2), durable.Rate(count, time.Second), durable.Burst(burst))
	echo := durable.Define("echo", func(c *durable.Ctx, n int) (int, error) { return n, nil })
	calls := durable.Define("calls", func(c *durable.Ctx, n int) (int, error) {
		return n, c.Do("call", func(context.Context) error { return nil }, limit.Permit())
	})
	over := make(chan struct{})
	long := durable.Define("long", func(c *durable.Ctx, n int) (int, error) {
		return n, c.Do("hold", func(ctx context.Context) error {
			select {
			case <-over:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	var engines []*durable.Engine
	var stores []*clocked
	var fired sync.Map
	for range 2 {
		s := &clocked{beginnings: &beginnings{Store: db.openIn(t), all: make(map[string][]time.Time)}, clock: clock, fired: &fired}
		stores = append(stores, s)
		engines = append(engines, engineOn(t, s, durable.Config{Lease: 3 * time.Second, Poll: 200 * time.Millisecond, ParkAfter: 50 * time.Millisecond, MaxCrashes: 1000}, echo, calls, long))
	}
	e, counts := engines[0], countsOf(t, db)
	must(t, "set the queue", e.SetQueue(bounded(t), "mail", durable.QueueSettings{MaxExecuting: 2, MaxInProgressPerKey: 1, Rate: durable.QueueRate{Count: count, Period: time.Second, Burst: burst}}))
	must(t, "set the schedule", e.SetSchedule(bounded(t), echo.Schedule(1, durable.Schedule{Name: "s", Every: time.Second, Overlap: durable.OverlapAllow})))
	var all []*durable.Run[int]
	for i := range runs {
		all = append(all, start(t, e, echo, i, durable.InQueue("mail"), durable.GroupKey(fmt.Sprint("k", i%10))), start(t, e, calls, i))
	}
	for i := range 3 {
		all = append(all, start(t, e, long, i))
	}
	for _, e := range engines {
		runEngine(t, e)
	}
	names := []string{"queue mail", "limit calls"}
	begun := func(name string) []time.Time {
		merged := append(stores[0].sorted(name), stores[1].sorted(name)...)
		slices.SortFunc(merged, time.Time.Compare)
		return merged
	}
	further := func() {
		for _, name := range names {
			before := len(begun(name))
			await(t, "further beginnings of "+name, func() bool { return len(begun(name)) >= before+10 })
		}
		counts.check(t, "while the clock stays as it is")
	}

	stop, starts := make(chan struct{}), make(chan error, 1)
	lastOf := make(map[string]*durable.Run[int]) // by option
	n := 0
	go func() { // starts that fold, of both processes in turn
		for err := error(nil); ; n++ {
			select {
			case <-stop:
				starts <- err
				return
			default:
			}
			realtime.Pass(100*time.Millisecond, "there are some starts in each state of the clock")
			for name, o := range map[string]durable.StartOption{
				"debounce": durable.Debounce("k", 150*time.Millisecond, 500*time.Millisecond), "singleton": durable.Singleton("k", durable.SingletonReplace),
			} {
				if run, failed := echo.Start(bounded(t), engines[n%2], n, o, durable.InQueue(name)); failed == nil {
					lastOf[name] = run
				} else {
					err = failed
				}
			}
		}
	}()
	further()
	var changes []clockChange
	for _, by := range []time.Duration{off, 0, -off, 0} {
		change := clockChange{from: time.Now()}
		clock.set(by)
		await(t, fmt.Sprint("all processes to know that the clock is ", by, " off"), func() bool {
			return !slices.ContainsFunc(engines, func(e *durable.Engine) bool {
				at, err := e.Now(bounded(t))
				return err != nil || (time.Until(at)-by).Abs() > reading
			})
		})
		change.until = time.Now()
		changes = append(changes, change)
		further()
	}
	close(over)
	close(stop)
	must(t, "start runs that fold", <-starts)
	for name, run := range lastOf {
		if got, err := run.Result(bounded(t)); got != n-1 || err != nil {
			t.Errorf("%s: the last of the starts was %d: got %d, %v", name, n-1, got, err)
		}
	}
	for _, run := range all {
		if _, err := run.Result(bounded(t)); err != nil {
			t.Errorf("%s: %v", run.ID(), err)
		}
	}
	counts.check(t, "in the end")
	for _, name := range names {
		var used time.Time // the rate is used up to this time
		times := begun(name)
		for _, at := range times {
			if used.Before(at) {
				used = at
			}
			if used = used.Add(time.Second / count); used.Sub(at) > burst*time.Second/count {
				t.Errorf("%s: too many began at %v: the rate is used up to %v", name, at, used)
			}
		}
		if len(times) < runs {
			t.Errorf("%s: %d began, want at least %d", name, len(times), runs)
		}
	}

	var fires []durable.ScheduleFire
	now := time.Now()
	await(t, "the schedule to go on", func() (goesOn bool) {
		var err error
		fires, err = e.ScheduleFires(bounded(t), "s", durable.Page{Limit: 1000})
		must(t, "read the fires", err)
		isNoted := func(f durable.ScheduleFire) bool { _, ok := fired.Load(f.At.UTC()); return ok } // soon after the call that fired
		return len(fires) > 0 && fires[0].At.After(now) && isNoted(fires[0])
	})
	for i, f := range fires {
		if i > 0 && fires[i-1].At.Sub(f.At) != time.Second || f.Outcome != durable.FireStarted {
			t.Errorf("after %v came %+v", f.At, fires[max(0, i-1)])
		}
		decided, ok := fired.Load(f.At.UTC())
		if !ok {
			t.Errorf("no call has fired %v", f.At)
			continue
		}
		call := decided.(callTime)
		r := info(t, e, f.ID)
		decidedAcross := slices.ContainsFunc(changes, func(c clockChange) bool { return c.overlaps(call) })
		if r.CreatedAt.Before(f.At.Add(-reading)) && !decidedAcross {
			t.Errorf("the run of %v was started at %v, in a call that took %v", f.At, r.CreatedAt, call.ended.Sub(call.began))
		}
	}
	lost := 0
	for _, run := range all {
		lost += info(t, e, run.ID()).Crashes
	}
	t.Logf("queued=%d permits=%d starts=%d fires=%d leases_lost=%d", len(begun(names[0])), len(begun(names[1])), 2*n, len(fires), lost)
}
