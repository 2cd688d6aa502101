package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// away is a store that is not available for some queries for ended runs.
type away struct {
	durable.Store
	looks atomic.Int64 // the number of queries that still fail
}

func (s *away) Statuses(ctx context.Context, runs []uuid.UUID) ([]store.Status, error) {
	if s.looks.Add(-1) >= 0 {
		return nil, fmt.Errorf("a test: %w", store.ErrUnavailable)
	}
	return s.Store.Statuses(ctx, runs)
}

const unread = "could not read the results that callers wait for; trying again"

// Result waits while the database is not available, even if Patience is short, and the outage is logged once.
func TestResultWaitsForTheDatabase(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) { return in, nil })
		stop := running(t, engineOn(t, s, w))
		gone := &away{Store: s}
		gone.looks.Store(8)
		cfg, log := logged(durable.Config{Patience: time.Nanosecond})
		client := engineWith(t, gone, cfg)
		run := read(w.Start(within(t), engineOn(t, s), 7, durable.ID("r")))(t)
		if v, err := read(w.Handle(within(t), client, run.ID()))(t).Result(within(t)); err != nil || v != 7 {
			t.Errorf("got %d, %v", v, err)
		}
		if left := gone.looks.Load(); left >= 0 {
			t.Fatalf("the database was not away: %d looks are left", left)
		}
		has(t, log.only(t, unread), "WARN", nil)
		stop()
	})
}

// damaged is a store in which one run cannot be read with its output.
type damaged struct {
	durable.Store
	run uuid.UUID
}

func (s *damaged) Find(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	for _, ref := range refs {
		if id, ok := ref.AsUUID(); ok && id == s.run && with&store.WithOutputAndError != 0 {
			return nil, fmt.Errorf("a test: %w", store.ErrRejected)
		}
	}
	return s.Store.Find(ctx, refs, with)
}

// If a result cannot be read, those who wait for it get an error after Patience, and waits for other results are not affected.
func TestOneUnreadableResultHoldsUpNoOther(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 5
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) { return in, nil })
		running(t, engineOn(t, s, w))
		starter := engineOn(t, s)
		runs := make([]*durable.Run[int], n)
		for i := range n {
			runs[i] = read(w.Start(within(t), starter, i))(t)
			read(runs[i].Result(within(t)))(t)
		}
		const bad = 2
		client := engineWith(t, &damaged{s, uuid.MustParse(runs[bad].RunID())}, durable.Config{Patience: 100 * time.Millisecond})
		errs := make([]chan error, n)
		for i, run := range runs {
			handle := read(w.Handle(within(t), client, run.ID()))(t)
			errs[i] = make(chan error, 1)
			go func() {
				_, err := handle.Result(within(t))
				errs[i] <- err
			}()
		}
		for i := range runs {
			err := <-errs[i]
			if i == bad && !errors.Is(err, durable.ErrRejected) || i != bad && err != nil {
				t.Errorf("run %d: %v", i, err)
			}
		}
	})
}
