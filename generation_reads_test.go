package durable_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// continuedWhileRead makes a run continue as new once, between a read of the run and a read of its history.
type continuedWhileRead struct {
	durable.Store
	next func()
}

func (s *continuedWhileRead) continueOnce() {
	if next := s.next; next != nil {
		s.next = nil
		next()
	}
}

func (s *continuedWhileRead) History(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	s.continueOnce()
	return s.Store.History(ctx, run)
}

func (s *continuedWhileRead) Histories(ctx context.Context, runs []uuid.UUID) ([]store.Step, error) {
	s.continueOnce()
	return s.Store.Histories(ctx, runs)
}

func (s *continuedWhileRead) SupersededGenerations(ctx context.Context, run uuid.UUID, q store.GenerationsQuery) ([]store.SupersededGeneration, error) {
	s.continueOnce()
	return s.Store.SupersededGenerations(ctx, run, q)
}

// Fork, Export, Preflight and Generations never put the input of one generation beside the history of the next one, while the run
// continues as new.
func TestReadsOfARunThatContinuesAsNew(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, n int) (string, error) {
			which, err := c.Step("which", func(context.Context) (int, error) { return n, nil })
			if err != nil {
				return "", err
			}
			if which != n {
				return "", fmt.Errorf("input %d, and the step of the generation with input %d", n, which)
			}
			if _, err := c.Receive[int]("go"); err != nil {
				return "", err
			}
			return "", c.ContinueAsNew(n + 1)
		})
		worker := engineOn(t, s, w)
		running(t, worker)
		orFail(w.Start(ctx, worker, 1, durable.ID("run")))(t)
		generation := 0
		await := func() {
			t.Helper()
			generation++
			waitFor(t, func() bool {
				page := orFail(worker.LatestGenerations(ctx, "run", durable.Page{Limit: 1}))(t)
				h := historyOf(t, worker, "run")
				return page.Generations[0].Number == generation && len(h) == 2 && h[1].Name == "go"
			})
		}
		await()
		meddled := &continuedWhileRead{Store: s}
		reader := engineOn(t, meddled, w)
		meddle := func() {
			meddled.next = func() {
				signal(t, worker, "run", "go", 1)
				await()
			}
		}
		checkExport := func(what string, b []byte, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			if r := orFail(reader.ReplayExport(ctx, b))(t); r.Diverged || r.Err != "" {
				t.Errorf("%s: %+v", what, r)
			}
		}
		meddle()
		b, err := reader.Export(ctx, "run")
		checkExport("an export", b, err)
		meddle()
		orFail(reader.Fork(ctx, "run", durable.FromEnd(), durable.NewID("copy")))(t)
		b, err = reader.Export(ctx, "copy")
		checkExport("a fork", b, err)
		meddle()
		if p := orFail(reader.Preflight(ctx, durable.Filter{}))(t); p.Fit != 2 || len(p.Runs) != 2 {
			t.Errorf("a preflight: %+v", p)
		}
		meddle()
		for _, g := range orFail(reader.Generations(ctx, "run"))(t) {
			if string(g.Input) != fmt.Sprint(g.Number) {
				t.Errorf("generation %d has the input %s", g.Number, g.Input)
			}
		}
	})
}
