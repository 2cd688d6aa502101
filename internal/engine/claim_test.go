package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// due is a store in which one ordinary run is always due, and no suspect. That run has been set
// aside, so that nothing is executed.
type due struct{ store.Store }

func (due) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// QueueRows implements store.Store: no queue has settings.
func (due) QueueRows(context.Context) ([]store.QueueRow, error) { return nil, nil }

// RecordWorkerVersion implements store.Store: there is no other version.
func (due) RecordWorkerVersion(context.Context, *store.WorkerVersionReport) (store.KnownVersions, error) {
	return store.KnownVersions{}, nil
}

func (due) Claim(_ context.Context, q store.ClaimQuery) (c store.ClaimResult, err error) {
	if q.Limit > 0 {
		c.Runs = []store.ClaimedRun{{Run: store.Run{Status: store.Paused}}}
	}
	return c, nil
}

// A worker with one slot takes a suspect first every second time, and does not leave the slot
// empty when there is none.
func TestTheOnlySlotIsUsed(t *testing.T) {
	t.Parallel()
	tel, err := telemetry.New(slog.New(slog.DiscardHandler), nil, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := New(due{}, Config{Lease: time.Minute, Concurrency: 1, Telemetry: tel})
	if err := e.clock.EnsureReading(t.Context(), e.store); err != nil {
		t.Fatal(err)
	}
	w := newWorker(e)
	defer w.endRunContexts(nil)
	w.slots.Open()
	for range 50 {
		free := w.slots.Reserve(1, 0, 0)
		if free.UnassignedSlots() != 1 {
			t.Fatalf("got %d slots", free.UnassignedSlots())
		}
		if got, err := w.claimRuns([]claimShare{{w: w, reservedSlots: free}}, 1); err != nil || got.runCount != 1 {
			t.Fatalf("the claim has taken %d runs: %v", got.runCount, err)
		}
	}
}
