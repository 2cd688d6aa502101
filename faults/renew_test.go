package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// renewTrips is a store whose first generation of a run that its worker makes has points.
type renewTrips struct {
	*repairTrips
	ended func()
}

func (s *renewTrips) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	leave := s.enter()
	err := s.repairTrips.ApplyRepair(ctx, r)
	leave()
	if err == nil {
		s.ended()
	}
	return err
}

// renewed returns the workflows of the test. A run makes two further generations of itself: it continues as new, or its step fails
// twice and the run retries itself.
func renewed(l ledger) map[string]*durable.Workflow[int, int] {
	retry := durable.RetryRun(durable.RetryPolicy{Attempts: 3, Initial: time.Millisecond})
	return map[string]*durable.Workflow[int, int]{
		"continue": durable.Define("continue", func(c *durable.Ctx, in int) (int, error) {
			name := fmt.Sprint("part ", in)
			err := c.Do(name, func(ctx context.Context) error {
				l.did(ctx, c.ID(), name)
				return nil
			})
			if err != nil || in == 2 {
				return in, err
			}
			return 0, c.ContinueAsNew(in + 1)
		}),
		"retry": durable.Define("retry", func(c *durable.Ctx, in int) (int, error) {
			for _, name := range []string{"part 0", "part 1"} {
				err := c.Do(name, func(ctx context.Context) error {
					l.did(ctx, c.ID(), name)
					text, err := os.ReadFile(string(l))
					if err != nil {
						return err
					}
					if calls := bytes.Count(text, fmt.Appendf(nil, `"Run":%q,"Step":"part 1"`, c.ID())); name == "part 1" && calls < 3 {
						return errors.New("not yet")
					}
					return nil
				})
				if err != nil {
					return 0, err
				}
			}
			return 2, nil
		}, retry),
	}
}

func init() {
	// renew executes the runs of Workflow, and dies at point N of the first generation that it makes, or after it.
	scenarios["renew"] = func(ctx context.Context, j *job, s durable.Store) error {
		f := &fatalPoint{point: j.N, kind: s.Name(), last: repairPoints}
		opened, done, err := traced(ctx, j, s, f)
		if err != nil {
			return err
		}
		defer done()
		trips := &renewTrips{&repairTrips{opened, f}, func() {
			say("made", f.trips.Load())
			die()
		}}
		e, err := durable.New(trips, durable.Config{Workflows: []durable.Definition{renewed(j.Ledger)[j.Workflow]}, Lease: 2 * time.Second, Poll: 20 * time.Millisecond})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
}

// Row 54, where the run's own worker makes the generation: it is killed at each point of ContinueAsNew, and of the retry of a run. The
// next generation was made as a whole, or is made by the process that takes the run over; no step that has ended is called again.
func TestRow54_DeathWhileARunRenewsItself(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		all := renewed(l)
		e := engineOn(t, db.openIn(t), durable.Config{Poll: 20 * time.Millisecond}, all["continue"], all["retry"])
		for name, calls := range map[string]map[string]int{"continue": {"part 0": 1, "part 1": 1, "part 2": 1}, "retry": {"part 0": 1, "part 1": 3}} {
			deaths, whole := 0, 0
			first, step := pointsOn(db)
			for point := first; point < repairPoints; point += step {
				id := fmt.Sprint(name, "-", point)
				start(t, e, all[name], 0, durable.ID(id))
				p := spawn(t, job{Scenario: "renew", DB: db, Ledger: l, Workflow: name, N: point})
				_, told := p.next("made")
				p.mustBeKilled(syscall.SIGKILL)
				generations, err := e.Generations(bounded(t), id)
				must(t, "generations", err)
				if len(generations) > 1 {
					whole++
				} else if told {
					t.Fatalf("point %d: the generation was acknowledged, and was not made", point)
				}
				stop := runEngine(t, e)
				if v, err := result(t, e, all[name], id); err != nil || v != 2 {
					t.Errorf("%s, point %d: %d, %v", name, point, v, err)
				}
				stop()
				for step, want := range calls {
					if got := len(l.of(t, id, step)); got != want {
						t.Errorf("%s, point %d: %s was called %d times, want %d", name, point, step, got, want)
					}
				}
				// The process that dies may have called part 1 again already, without a record: then one generation less is needed.
				if generations, err := e.Generations(bounded(t), id); err != nil || len(generations) != 3 && (name != "retry" || len(generations) != 2) {
					t.Errorf("%s, point %d: %d generations, %v", name, point, len(generations), err)
				}
				if told {
					break
				}
				deaths++
			}
			if deaths < 3 || whole == 0 || whole > deaths+1 {
				t.Errorf("%s: %d processes died at a point, and %d generations were made by the dead", name, deaths, whole)
			}
			t.Logf("%s: deaths=%d made_by_the_dead=%d", name, deaths, whole)
		}
	})
}
