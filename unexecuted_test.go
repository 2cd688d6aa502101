package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// If no live worker executes a due run, Get and the error of Result report it at once. A worker logs it once for each workflow,
// until such a worker starts.
func TestRunsWithoutAWorkerAreTold(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		orphan := durable.Define("orphan", double)
		elsewhere := durable.Define("noted", double, durable.Queue("elsewhere"))
		parent := durable.Define("parent", func(c *durable.Ctx, in int) (int, error) { return c.Child("kid", orphan, in) })
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{parent, durable.Define("noted", double)}, Queues: []string{durable.DefaultQueue}, Lease: 300 * time.Millisecond})
		e := engineWith(t, s, cfg)
		running(t, e)

		run, err := orphan.Start(ctx, e, 1, durable.ID("orphan"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := parent.Start(ctx, e, 2); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := elsewhere.Start(ctx, engineOn(t, s), 3, durable.ID("queued")); err != nil {
			t.Fatal(err)
		}
		if _, err := orphan.Start(ctx, e, 4, durable.ID("later"), durable.Delay(time.Hour)); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]bool{"orphan": true, "queued": true, "later": false} {
			if info, err := e.Get(ctx, id); err != nil || info.NoWorker != want {
				t.Errorf("%s: NoWorker is %v, want %v (%v)", id, info.NoWorker, want, err)
			}
		}
		message := ""
		told := poll(within(t), func() bool { // a database that is slow does not return the state in time
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			_, err := run.Result(short)
			message = fmt.Sprint(err)
			return errors.Is(err, context.DeadlineExceeded) && strings.Contains(message, "which is pending, and which no live worker executes")
		})
		if !told {
			t.Errorf("Result: %s", message)
		}

		log.await(t, `"workflow":"orphan"`)
		log.await(t, `"workflow":"noted","queue":"elsewhere"`)
		beats := e.Stats().Heartbeats
		waitFor(t, func() bool { return e.Stats().Heartbeats >= beats+12 }) // the worker has checked again a few times
		const text = "runs of a workflow are due, and no live worker executes it in their queue: start one that lists it in Config.Workflows, and whose Config.Queues is empty or names the queue"
		if n := strings.Count(log.String(), text); n != 2 {
			t.Errorf("%d lines, want one for each workflow, in:\n%s", n, log)
		}

		helper := engineOn(t, s, orphan)
		running(t, helper)
		if got, err := run.Result(ctx); got != 2 || err != nil {
			t.Fatal(got, err)
		}
		workers, err := e.Workers(ctx)
		if err != nil || !slices.ContainsFunc(workers, func(w durable.WorkerInfo) bool { return slices.Equal(w.Workflows, []string{"noted", "parent"}) }) {
			t.Errorf("workers: %+v, %v", workers, err)
		}
	})
}

// A worker with more workflows than are listed may execute any workflow, so nothing is reported.
func TestAWorkerWithManyWorkflows(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var many []durable.Definition
		for i := range 501 {
			many = append(many, durable.Define("w"+strings.Repeat("x", i), double))
		}
		e := engineWith(t, s, durable.Config{Workflows: many})
		running(t, e)
		for {
			workers, err := e.Workers(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(workers) == 1 {
				if workers[0].Workflows != nil {
					t.Errorf("%d workflows are listed", len(workers[0].Workflows))
				}
				break
			}
		}
		if _, err := durable.Define("orphan", double).Start(ctx, e, 1, durable.ID("orphan")); err != nil {
			t.Fatal(err)
		}
		if info, err := e.Get(ctx, "orphan"); err != nil || info.NoWorker {
			t.Errorf("NoWorker is set: %v", err)
		}
	})
}
