package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A quiet worker continues the run that it has, and takes neither a run that another process starts, nor one that its own process
// starts, until it is resumed.
func TestAQuietWorkerTakesNothingNew(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		entered, release := make(chan struct{}), make(chan struct{})
		holds := durable.Define("holds", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("wait", func(ctx context.Context) (int, error) {
				close(entered)
				<-release
				return 1, nil
			})
		})
		quick := durable.Define("quick", double)
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{holds, quick}, Lease: 6 * time.Second})
		worker, client := engineWith(t, s, cfg), engineOn(t, s)
		stop := running(t, worker)
		held := orFail(holds.Start(ctx, client, 0))(t)
		<-entered
		id := orFail(client.Workers(ctx))(t)[0].ID

		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(client.QuietWorker(ctx, id, durable.Actor("ann"), durable.Reason("its disk is full")))
		must(client.QuietWorker(ctx, id, durable.Actor("bob"))) // it is quiet: nothing changes
		if w := orFail(client.Workers(ctx))(t)[0]; !w.Quiet || w.LastChange == nil || w.LastChange.By != "ann" || w.LastChange.Verb != durable.VerbQuiet {
			t.Errorf("the worker is %+v, changed by %+v", w, w.LastChange)
		}
		log.await(t, "its disk is full") // the worker has learned of it
		runs := []*durable.Run[int]{orFail(quick.Start(ctx, client, 1))(t), orFail(quick.Start(ctx, worker, 2))(t)}
		beats := worker.Stats().Heartbeats
		waitFor(t, func() bool { return worker.Stats().Heartbeats >= beats+2 })
		for _, run := range runs {
			if info := orFail(client.Get(ctx, run.ID()))(t); info.Status != durable.StatusPending || !info.NoWorker {
				t.Errorf("a run is %s, and NoWorker is %v, although its only worker is quiet", info.Status, info.NoWorker)
			}
		}
		close(release)
		if _, err := held.Result(ctx); err != nil {
			t.Errorf("the run that the worker had: %v", err)
		}

		must(client.ResumeWorker(ctx, id, durable.Actor("ann"), durable.Reason("its disk is larger")))
		for _, run := range runs {
			if _, err := run.Result(ctx); err != nil {
				t.Error(err)
			}
		}
		must(client.QuietWorker(ctx, id))
		stop()
		if err := client.ResumeWorker(ctx, id); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("resume of a worker that has stopped: %v", err)
		}
		if err := client.QuietWorker(ctx, "no UUID"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("quiet of a worker that does not exist: %v", err)
		}
		again := engineOn(t, s, quick)
		running(t, again) // another worker, which is not quiet
		if _, err := orFail(quick.Start(ctx, client, 3))(t).Result(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A run that continues as new while its worker is quiet, continues on another worker.
func TestTheNextGenerationLeavesAQuietWorker(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		quiet := make(chan struct{})
		again := durable.Define("again", func(c *durable.Ctx, n int) (int, error) {
			if n > 0 {
				return n, nil
			}
			if err := c.Do("wait", func(context.Context) error { <-quiet; return nil }); err != nil {
				return 0, err
			}
			return 0, c.ContinueAsNew(n + 1)
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{again}, Lease: 6 * time.Second})
		first, client := engineWith(t, s, cfg), engineOn(t, s)
		running(t, first)
		run := orFail(again.Start(ctx, client, 0))(t)
		await(t, "the step", func() bool { return orFail(client.Get(ctx, run.ID()))(t).Status == durable.StatusRunning })
		id := orFail(client.Workers(ctx))(t)[0].ID
		if err := client.QuietWorker(ctx, id, durable.Reason("maintenance")); err != nil {
			t.Fatal(err)
		}
		log.await(t, "maintenance")
		close(quiet)
		await(t, "the next generation", func() bool {
			info := orFail(client.Get(ctx, run.ID()))(t)
			return info.Status == durable.StatusPending && info.NoWorker
		})
		running(t, engineOn(t, s, again))
		if n, err := run.Result(ctx); n != 1 || err != nil {
			t.Errorf("the run returned %d, %v", n, err)
		}
	})
}
