package faults

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// repairPoints is more than the points of a repair.
const repairPoints = 80

// repairTrips is a store whose calls that belong to a repair have points: before and after each one, and inside them on SQLite, which
// checks the context between the parts of a transaction.
type repairTrips struct {
	durable.Store
	*fatalPoint
}

// within makes one call of the store, in which there may be further points.
func (s *repairTrips) within(ctx context.Context, call func(context.Context) error) error {
	if s.kind == "sqlite" {
		s.trip()
		ctx = passContext{ctx, s.trip}
	}
	err := call(ctx)
	s.trip()
	return err
}

func (s *repairTrips) ExtendRepairPause(ctx context.Context, run uuid.UUID, until time.Time) error {
	return s.within(ctx, func(ctx context.Context) error { return s.Store.ExtendRepairPause(ctx, run, until) })
}

func (s *repairTrips) FenceRun(ctx context.Context, f *store.FenceRequest) error {
	return s.within(ctx, func(ctx context.Context) error { return s.Store.FenceRun(ctx, f) })
}

func (s *repairTrips) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	return s.within(ctx, func(ctx context.Context) error { return s.Store.ApplyRepair(ctx, r) })
}

func (s *repairTrips) ForkRun(ctx context.Context, f *store.ForkRequest) error {
	return s.within(ctx, func(ctx context.Context) error { return s.Store.ForkRun(ctx, f) })
}

func (s *repairTrips) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	return s.within(ctx, func(ctx context.Context) error { return s.Store.ControlRuns(ctx, o) })
}

// makeRepair makes the repair with the given name. It names its actor.
func makeRepair(ctx context.Context, e *durable.Engine, name, id string) error {
	actor := durable.Actor("ann")
	var err error
	switch name {
	case "retry":
		_, err = e.Retry(ctx, id, actor)
	case "override", "override at once":
		opts := []durable.ControlOption{actor}
		if name == "override at once" {
			opts = append(opts, durable.InterruptSteps())
		}
		_, err = e.Override(ctx, id, "a", 7, opts...)
	case "skip":
		_, err = e.Skip(ctx, id, "b", 3, actor)
	case "rerun":
		_, err = e.Rerun(ctx, id, "b", actor)
	case "fork":
		_, err = e.Fork(ctx, id, actor, durable.From("b"), durable.OverrideStep("a", 7))
	case "fork of another ID":
		_, err = e.Fork(ctx, id, actor, durable.From("b"), durable.NewID(id+"-copy"))
	default:
		err = fmt.Errorf("there is no repair %q", name)
	}
	return err
}

func init() {
	// repair makes repair Point of run ID, and dies at its point N. It says so if there is no such point, and dies then.
	scenarios["repair"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalPoint{point: j.N, kind: s.Name(), last: repairPoints}
		opened, done, err := traced(ctx, j, s, f)
		if err != nil {
			return err
		}
		defer done()
		e, err := durable.New(&repairTrips{opened, f}, durable.Config{Lease: j.Lease})
		if err != nil {
			return err
		}
		if _, err := e.Get(ctx, j.ID); err != nil { // opens a connection
			return err
		}
		leave := f.enter()
		err = makeRepair(ctx, e, j.Point, j.ID)
		leave()
		if err != nil {
			return err
		}
		say("repaired", f.trips.Load())
		die()
		return nil
	}
}

// repairCase is a repair, and what a run must have done after it was made exactly once. The run takes the value 1 from step a and the
// value 2 from step b, which fails unless it may succeed. If it is live, it then waits for a signal. Step c returns a*10 + b.
type repairCase struct {
	name    string
	live    bool
	fails   bool // b fails before the repair
	want    int
	a, b, c int // how often each step is called in all
}

var repairCases = []repairCase{
	{name: "retry", fails: true, want: 12, a: 1, b: 2, c: 1},
	{name: "override", live: true, want: 72, a: 1, b: 2, c: 1},
	{name: "override at once", live: true, want: 72, a: 1, b: 2, c: 1},
	{name: "skip", fails: true, want: 13, a: 1, b: 1, c: 1},
	{name: "rerun", want: 12, a: 1, b: 2, c: 1},
	{name: "fork", want: 72, a: 1, b: 2, c: 2},
	{name: "fork of another ID", want: 12, a: 1, b: 1, c: 1},
}

// mended returns the workflow of the cases. Its input says whether a run waits for a signal.
func mended(l ledger, fails *atomic.Bool) *durable.Workflow[bool, int] {
	return durable.Define("mended", func(c *durable.Ctx, waits bool) (int, error) {
		step := func(name string, v int, err func() error) (int, error) {
			return c.Step(name, func(ctx context.Context) (int, error) {
				l.did(ctx, c.ID(), name)
				return v, err()
			}, durable.Retry(durable.NoRetry))
		}
		none := func() error { return nil }
		a, err := step("a", 1, none)
		if err != nil {
			return 0, err
		}
		b, err := step("b", 2, func() error {
			if fails.Load() {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if waits {
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
		}
		return step("c", a*10+b, none)
	})
}

// repairLease is the lease of the processes that make repairs, and so the time after which a worker resumes a run whose repair was
// not made.
const repairLease = 300 * time.Millisecond

// Row 54: processes are killed at each point of a repair: at each round trip, and before, between and after the parts of its
// transactions. The repair was made as a whole or not at all. If it was not made, it can be made again, at once or after a live run
// has been resumed, which needs no hand. The run is never lost, and a step whose outcome is kept is not called again.
func TestRow54_DeathInARepair(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		for _, k := range repairCases {
			t.Run(k.name, func(t *testing.T) { k.dieAtEachPoint(t, db) })
		}
	})
}

// pointsOn returns the first of the points that a test tries, and how far they are apart. In the small form, every second point is
// tried on one store, and the points between them on the other.
func pointsOn(db database) (first, step int64) {
	if testsize.IsFull() {
		return 0, 1
	}
	if db.Kind == "postgres" {
		return 1, 2
	}
	return 0, 2
}

func (k *repairCase) dieAtEachPoint(t *testing.T, db database) {
	l := newLedger(t)
	fails := new(atomic.Bool)
	w := mended(l, fails)
	s := db.openIn(t)
	e := engineOn(t, s, durable.Config{Poll: 20 * time.Millisecond, ParkAfter: time.Millisecond}, w)
	defer runEngine(t, e)()
	// It only resumes runs whose repairs have not ended: it searches for them three times per lease.
	defer runEngine(t, engineOn(t, s, durable.Config{Lease: repairLease, Queues: []string{"another"}}, w))()
	deaths, whole := 0, 0
	first, step := pointsOn(db)
	for point := first; point < repairPoints; point += step {
		id := fmt.Sprintf("%s-%s-%d", k.name[:4], k.name[len(k.name)-4:], point)
		fails.Store(k.fails)
		run := start(t, e, w, k.live, durable.ID(id))
		await(t, "the run to end or to wait", func() bool {
			i := info(t, e, id)
			return i.Status == durable.StatusWaiting || !i.EndedAt.IsZero()
		})
		fails.Store(false)
		p := spawn(t, job{Scenario: "repair", DB: db, ID: id, Point: k.name, N: point, Lease: repairLease})
		_, told := p.next("repaired")
		p.mustBeKilled(syscall.SIGKILL)
		target := id
		if k.name == "fork of another ID" {
			target += "-copy"
		}
		if made := k.made(t, e, id, target); made {
			whole++
		} else if told {
			t.Fatalf("point %d: the repair was reported, and was not made", point)
		} else {
			if point/step%2 == 0 {
				k.awaitResumed(t, e, id, point)
			}
			must(t, fmt.Sprintf("point %d: the repair, again", point), makeRepair(bounded(t), e, k.name, id))
		}
		if !told {
			deaths++
		}
		k.check(t, e, l, run, target, point)
		if told {
			break
		}
	}
	if deaths < 3 || whole == 0 || whole > deaths {
		t.Errorf("%d processes died in the repair, and %d repairs were made by those that died", deaths, whole)
	}
	t.Logf("deaths=%d made_by_the_dead=%d", deaths, whole)
}

// made reports whether the repair was made.
func (k *repairCase) made(t *testing.T, e *durable.Engine, id, target string) bool {
	t.Helper()
	if id != target {
		_, err := e.Get(bounded(t), target)
		if err != nil && !errors.Is(err, durable.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	all, err := e.Generations(bounded(t), id)
	must(t, "generations", err)
	return len(all) > 1
}

// awaitResumed waits until the run is not paused for the repair of the dead process any more.
func (k *repairCase) awaitResumed(t *testing.T, e *durable.Engine, id string, point int64) {
	t.Helper()
	i := info(t, e, id)
	if i.Status == durable.StatusPaused && i.PausedBy != "ann" {
		t.Errorf("point %d: paused by %q: %s", point, i.PausedBy, i.Reason)
	}
	await(t, fmt.Sprintf("point %d: a live run to wait again", point), func() bool {
		i := info(t, e, id)
		return i.Status == durable.StatusWaiting || !i.EndedAt.IsZero()
	})
}

// check lets the run end, and checks what was executed.
func (k *repairCase) check(t *testing.T, e *durable.Engine, l ledger, run *durable.Run[int], target string, point int64) {
	t.Helper()
	if k.live {
		must(t, "signal", e.Signal(bounded(t), target, "go", 1))
	}
	await(t, fmt.Sprintf("point %d: the end of %s", point, target), func() bool { return info(t, e, target).Status == durable.StatusCompleted })
	w := mended(l, new(atomic.Bool))
	if v, err := result(t, e, w, target); err != nil || v != k.want {
		t.Errorf("point %d: %d, %v, want %d", point, v, err, k.want)
	}
	for step, want := range map[string]int{"a": k.a, "b": k.b, "c": k.c} {
		if got := len(l.of(t, run.ID(), step)); got != want {
			t.Errorf("point %d: step %s was called %d times, want %d", point, step, got, want)
		}
	}
	if target != run.ID() {
		if n := len(l.of(t, target, "a")); n != 0 {
			t.Errorf("point %d: the copy called step a %d times", point, n)
		}
		return
	}
	all, err := e.Generations(bounded(t), target)
	must(t, "generations", err)
	if len(all) != 2 || all[1].Actor != "ann" {
		t.Errorf("point %d: the generations are %+v, want one by ann", point, all)
	}
}
