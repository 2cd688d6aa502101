package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

func (s *damaged) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	for _, ref := range refs {
		if id, ok := ref.AsUUID(); ok && id == s.run && with&store.WithOutputAndError != 0 {
			return nil, fmt.Errorf("a test: %w", store.ErrRejected)
		}
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
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

// If the context of a Result ends while the run is paused or held, the error says who paused it, why, and what continues it.
func TestResultTellsWhyTheRunIsPausedOrHeld(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", double)
		waits := durable.Define("waits", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		held := durable.Define("held", func(c *durable.Ctx, in int) (int, error) {
			return c.Child("k", kid, in, durable.InQueue("later"), durable.GroupKey("x"))
		})
		e := engineOn(t, s, waits, held, kid)
		running(t, e)
		ended := func(run *durable.Run[int]) string {
			ctx, cancel := context.WithCancel(within(t))
			cancel()
			_, err := run.Result(ctx)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the cause of the end of the context", err)
			}
			return err.Error()
		}
		for id, c := range map[string]struct {
			opts []durable.ControlOption
			want string
		}{
			"alone":  {nil, `which is paused and continues after Engine.Resume: context canceled`},
			"by ann": {[]durable.ControlOption{durable.Reason("stock is counted"), durable.Actor("ann")}, `which is paused by "ann" (stock is counted) and continues after Engine.Resume: context canceled`},
		} {
			run := read(waits.Start(within(t), e, 1, durable.ID(id)))(t)
			read(e.Pause(within(t), id, c.opts...))(t)
			awaitStatus(t, e, id, durable.StatusPaused)
			if got := ended(run); !strings.Contains(got, c.want) {
				t.Errorf("%s: got %s, want %s", id, got, c.want)
			}
		}
		run := read(held.Start(within(t), e, 1, durable.ID("held")))(t)
		waitFor(t, func() bool { return read(e.Get(within(t), "held"))(t).Reason != "" })
		const want = `which is pending and held (start child "k": durable: invalid configuration: workflow "kid" is started with GroupKey("x") in queue "later", which has no settings`
		if got := ended(run); !strings.Contains(got, want) || !strings.Contains(got, ") and is tried again by itself: context canceled") {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// The error of a Result of a run whose code does not fit its history says so, and that a fitting worker continues it.
func TestResultTellsThatTheCodeDoesNotFit(t *testing.T) {
	x := new(shop)
	s := openStore(t)
	client, run := x.waiting(t, s)
	atVersion(t, s, "v2", x.define(asSleep))
	awaitStatus(t, client, "run", durable.StatusPaused)
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	_, err := run.Result(ctx)
	for _, want := range []string{`, which is held (the code`, `) until a worker whose code fits its history executes it: context canceled`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
