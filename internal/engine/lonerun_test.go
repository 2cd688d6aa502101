package engine

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// newLoneRun returns the only run of a worker. Its function is not called: the test makes the calls of the
// function. The caller sets what matters to it in c.
func newLoneRun(t *testing.T, s store.Store, c store.ClaimedRun) *run {
	t.Helper()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := New(s, Config{
		Lease: time.Minute, Concurrency: 1, ParkAfter: time.Second, StartedMarkerDelay: time.Second, Telemetry: tel,
		Definitions: []*WorkflowDefinition{{Name: "w"}},
	})
	if err := e.clock.EnsureReading(t.Context(), e.store); err != nil {
		t.Fatal(err)
	}
	w := newWorker(e)
	w.slots.Open()
	e.lifetime = &workerLifetime{worker: w}
	c.Run.UUID, c.Run.Name, c.Run.Workflow, c.Run.Status = store.NewUUID(0), cmp.Or(c.Run.Name, "lone"), "w", store.Running
	c.Run.Epoch, c.Run.WakeAt = store.Epoch{Count: 1}, e.clock.Now().Add(time.Minute)
	r := newRun(w, &c)
	w.loadedRuns.add(r)
	t.Cleanup(func() {
		r.idleTracker.stop()
		r.deadline.stop()
		w.endRunContexts(nil)
		if err := e.journal.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// scope returns the scope of the run's function.
func (r *run) scope() *Scope { return &Scope{r: r, ctx: r.ctx, stepsCtx: r.stepsCtx} }

// parked waits for d, and returns what the run was suspended with, or nil.
func (r *run) parked(d time.Duration) *suspensionSpec {
	time.Sleep(d)
	synctest.Wait()
	return r.currentSuspension()
}
