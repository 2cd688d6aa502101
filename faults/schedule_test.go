package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
)

// ticking is the workflow of a schedule.
func ticking(l ledger) *durable.Workflow[int, string] {
	return durable.Define("ticking", func(c *durable.Ctx, in int) (string, error) {
		return durable.ScheduledAt(c).Format(time.RFC3339), c.Do("tick", func(ctx context.Context) error {
			l.did(ctx, c.ID(), "tick")
			return nil
		})
	})
}

// fatalFiring is a store whose process dies while it changes a schedule: before the change, at a statement of it, or after it.
type fatalFiring struct {
	durable.Store
	fatalPoint
}

func (f *fatalFiring) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	defer f.enter()()
	plan := u.Plan
	u.Plan = func(s store.ScheduleSnapshot) *store.ScheduleWrite {
		w := plan(s)
		if w != nil {
			f.decided()
		}
		return w
	}
	err := f.Store.ChangeSchedule(ctx, u)
	if err == nil && u.AppliedWrite != nil {
		f.committed()
		if f.point > 0 && f.kind == "postgres" {
			say("passed") // the point is beyond the last statement
		}
	}
	return err
}

// traced returns a store whose connections have the tracer. It returns s itself if that has no connections.
func traced(ctx context.Context, j *job, s durable.Store, tracer pgx.QueryTracer) (opened durable.Store, done func(), err error) {
	if s.Name() != "postgres" {
		return s, func() {}, nil
	}
	cfg, err := pgxpool.ParseConfig(j.DB.Where)
	if err != nil {
		return nil, nil, err
	}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	own, err := postgres.New(pool, postgres.Schema(j.DB.Schema))
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return own, func() {
		_ = own.Close()
		pool.Close()
	}, nil
}

func init() {
	// schedule executes the runs of a schedule, and dies while it fires it, at point N.
	scenarios["schedule"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalFiring{Store: s, fatalPoint: fatalPoint{point: j.N, kind: s.Name()}}
		opened, done, err := traced(ctx, j, s, &f.fatalPoint)
		if err != nil {
			return err
		}
		defer done()
		f.Store = opened
		e, err := durable.New(f, durable.Config{Workflows: []durable.Definition{ticking(j.Ledger)}, Lease: time.Second, Poll: 50 * time.Millisecond})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 46: two workers fire a schedule, and are killed before, between and after the statements of it. Each time starts exactly one
// run.
func TestRow46_DeathOfTheFiringProcess(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		client := engineOn(t, db.openIn(t), durable.Config{})
		began := time.Now()
		if err := client.SetSchedule(bounded(t), ticking(l).Schedule(1, durable.Schedule{Name: "s", Every: time.Second, Overlap: durable.OverlapAllow})); err != nil {
			t.Fatal(err)
		}
		set := time.Now()
		deaths := 0
		for point := int64(0); point <= lastPoint; point++ {
			two := []*process{
				spawn(t, job{Scenario: "schedule", DB: db, Ledger: l, N: point}),
				spawn(t, job{Scenario: "schedule", DB: db, Ledger: l, N: point}),
			}
			passed := false // a point may be beyond the last statement: then both live
			await(t, fmt.Sprint("the processes to get to point ", point), func() bool {
				for _, p := range two {
					passed = passed || slices.Contains(p.said(), "passed")
				}
				return passed || closed(two[0].ended) && closed(two[1].ended)
			})
			for _, p := range two {
				if closed(p.ended) {
					deaths++
				}
				p.signal(9)
				<-p.ended
			}
		}
		if deaths < 12 {
			t.Errorf("only %d processes died while they fired", deaths)
		}
		survivor := spawn(t, job{Scenario: "schedule", DB: db, Ledger: l, N: -1})
		survivor.expect("working")
		last := time.Now().Add(time.Second)
		var times []time.Time
		await(t, "the schedule to go on", func() bool {
			fires, err := client.ScheduleFires(bounded(t), "s", durable.Page{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			times = nil
			for _, f := range fires {
				if f.Outcome != "started" || f.ID == "" {
					t.Fatalf("%+v", f)
				}
				times = append(times, f.At)
			}
			return len(times) > 0 && times[0].After(last)
		})
		slices.SortFunc(times, time.Time.Compare)
		for i, at := range times {
			if i > 0 && at.Sub(times[i-1]) != time.Second {
				t.Errorf("%v follows %v", at, times[i-1])
			}
			id := fmt.Sprint("s@", at.Format(time.RFC3339))
			await(t, "the end of "+id, func() bool { return !info(t, client, id).EndedAt.IsZero() })
			if n := len(l.of(t, id, "tick")); n == 0 {
				t.Errorf("%s ended, and its step was never executed", id)
			}
		}
		if times[0].Before(began.Add(-reading)) || times[0].After(set.Add(time.Second+reading)) {
			t.Errorf("the first time is %v, set between %v and %v", times[0], began, set)
		}
		survivor.kill() // nothing is fired any more
		runs, err := client.List(bounded(t), durable.Filter{IDPrefix: "s@"}, durable.Page{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		fires, err := client.ScheduleFires(bounded(t), "s", durable.Page{Limit: 1000})
		if err != nil || len(runs.Runs) != len(fires) || len(fires) < len(times) {
			t.Errorf("%d runs for %d times, %v", len(runs.Runs), len(fires), err)
		}
		t.Logf("times=%d deaths=%d", len(times), deaths)
	})
}
