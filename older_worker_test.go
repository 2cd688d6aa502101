package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// While a worker lives whose version of durable ignores limits, queues and schedules, they cannot be set. A worker that is silent for longer
// than its lease does not count.
func TestOlderWorkerPreventsSetting(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		e := engineOn(t, s, durable.Define("w", double))
		running(t, e) // a worker of this version lives as well
		hourly := durable.Schedule{Name: "hourly", Cron: "@hourly", Workflow: "w", Input: 1}
		calls := map[string]func() error{
			"SetLimit":      func() error { return e.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 1}) },
			"DeleteLimit":   func() error { return e.DeleteLimit(ctx, "stripe") },
			"SetSchedule":   func() error { return e.SetSchedule(ctx, hourly) },
			"SetQueue":      func() error { return e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}) },
			"ResetSchedule": func() error { return e.ResetSchedule(ctx, "hourly") },
		}
		old := store.Worker{ID: uuid.New(), Name: "host-7", StartedAt: time.Now(), State: store.WorkerRunning}
		beat := func(w store.Worker, until time.Time) {
			t.Helper()
			if _, err := s.RenewLeases(ctx, store.Heartbeat{Worker: w, LeaseUntil: until}); err != nil {
				t.Fatal(err)
			}
		}
		for what, schema := range map[string]int16{"before the version was recorded": 0, "of an older version": store.FirstSchemaWithQueues - 1} {
			old.SchemaVersion = schema
			for _, old.State = range []store.WorkerState{store.WorkerRunning, store.WorkerDraining} {
				beat(old, time.Now().Add(time.Hour))
				for name, call := range calls {
					if err := call(); !errors.Is(err, durable.ErrSchema) || !strings.Contains(err.Error(), "host-7") || !strings.Contains(err.Error(), "update durable") {
						t.Errorf("a worker %s lives: %s: %v", what, name, err)
					}
				}
			}
		}
		beat(old, time.Now().Add(-time.Second))
		if err := errors.Join(e.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 1}), e.DeleteLimit(ctx, "stripe"), e.SetSchedule(ctx, hourly), e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1})); err != nil {
			t.Errorf("the older worker is silent: %v", err)
		}
		beat(old, time.Now().Add(time.Hour))
		for name, err := range map[string]error{ // what stops something, or starts runs, is always possible
			"PauseSchedule": e.PauseSchedule(ctx, "hourly"), "ResumeSchedule": e.ResumeSchedule(ctx, "hourly"), "DeleteSchedule": e.DeleteSchedule(ctx, "hourly"),
			"PauseQueue": e.PauseQueue(ctx, "mail"), "ResumeQueue": e.ResumeQueue(ctx, "mail"), "DeleteQueue": e.DeleteQueue(ctx, "mail"),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// What code declares waits until the older worker is gone, with one line in the log. Steps with a limit are executed meanwhile, and
// the log tells that the older worker's are not bounded.
func TestDeclarationsWaitForOlderWorkers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		old := store.Heartbeat{Worker: store.Worker{ID: uuid.New(), Name: "host-7", StartedAt: time.Now(), State: store.WorkerRunning}, LeaseUntil: time.Now().Add(time.Hour)}
		if _, err := s.RenewLeases(ctx, old); err != nil {
			t.Fatal(err)
		}
		limit := durable.NewLimit("stripe", durable.Concurrent(1))
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("s", func(context.Context) (int, error) { return in, nil }, limit.Permit())
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}, Poll: 5 * time.Millisecond, QueueSettings: map[string]durable.QueueSettings{"mail": {MaxExecuting: 1}}, Schedules: []durable.Schedule{
			w.Schedule(1, durable.Schedule{Name: "hourly", Cron: "@hourly"}), w.Schedule(1, durable.Schedule{Name: "daily", Cron: "@daily"}),
		}})
		e := engineWith(t, s, cfg)
		running(t, e)
		const queues = "the queues that this code declares wait until"
		const waiting, unbound = "the schedules that this code declares wait until", "limits do not bound the steps of a worker"
		for range 2 {
			if _, err := w.Call(ctx, e, 2); err != nil {
				t.Fatal(err)
			}
		}
		log.await(t, waiting)
		log.await(t, unbound)
		log.await(t, queues)
		if all, err := e.Schedules(ctx); err != nil || len(all) != 0 {
			t.Errorf("%d schedules while an older worker lives, %v", len(all), err)
		}
		old.LeaseUntil = time.Now().Add(-time.Second)
		if _, err := s.RenewLeases(ctx, old); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			all, err := e.Schedules(ctx)
			return err == nil && len(all) == 2
		})
		waitFor(t, func() bool {
			all, err := e.Queues(ctx)
			return err == nil && len(all) == 1
		})
		if text := log.String(); strings.Count(text, waiting) != 1 || strings.Count(text, unbound) != 1 {
			t.Errorf("want one line each in:\n%s", text)
		}
	})
}

// While a worker lives whose version of durable ignores generations, no run begins its next generation by itself: it is held with the
// reason, without harm, and goes on when that worker is gone.
func TestGenerationsWaitForOlderWorkers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		old := store.Heartbeat{Worker: store.Worker{ID: uuid.New(), Name: "host-7", StartedAt: time.Now(), State: store.WorkerRunning, SchemaVersion: store.FirstSchemaWithRepairs - 1}, LeaseUntil: time.Now().Add(time.Hour)}
		if _, err := s.RenewLeases(ctx, old); err != nil {
			t.Fatal(err)
		}
		var l keyLedger
		var bank fixable
		counting := countingTo(&l, 2)
		retrying := durable.Define("retrying", func(c *durable.Ctx, _ string) (string, error) {
			return "paid", c.Do("pay", func(context.Context) error { return bank.err() }, durable.Retry(durable.NoRetry))
		}, durable.RetryRun(durable.RetryPolicy{Attempts: 3, Initial: time.Millisecond}))
		e := engineOn(t, s, counting, retrying)
		running(t, e)
		orFail(counting.Start(ctx, e, 1, durable.ID("counting")))(t)
		orFail(retrying.Start(ctx, e, "", durable.ID("retrying")))(t)
		for _, id := range []string{"counting", "retrying"} {
			waitFor(t, func() bool { return strings.Contains(orFail(e.Get(ctx, id))(t).Reason, "host-7") })
			if info := orFail(e.Get(ctx, id))(t); info.Status != durable.StatusPending {
				t.Errorf("%s is %s: %s", id, info.Status, info.Reason)
			}
			if all := orFail(e.Generations(ctx, id))(t); len(all) != 1 {
				t.Errorf("%s has the generations %+v", id, all)
			}
		}
		old.LeaseUntil = time.Now().Add(-time.Second)
		if _, err := s.RenewLeases(ctx, old); err != nil {
			t.Fatal(err)
		}
		bank.fixed.Store(true)
		for id, want := range map[string]string{"counting": "counted to 2", "retrying": "paid"} {
			must(t)(e.Pause(ctx, id)) // a resume makes the run due at once
			must(t)(e.Resume(ctx, id))
			awaitStatus(t, e, id, durable.StatusCompleted)
			if info := orFail(e.Get(ctx, id))(t); string(info.Output) != `"`+want+`"` {
				t.Errorf("%s ended with %s", id, info.Output)
			}
			if all := orFail(e.Generations(ctx, id))(t); len(all) != 2 {
				t.Errorf("%s has the generations %+v", id, all)
			}
		}
	})
}
