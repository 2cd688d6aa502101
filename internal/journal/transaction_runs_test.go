package journal

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run's leave and what else is written of the run are never under way in two transactions.
func TestAReleaseIsNotFlushedBesideAStepOfItsRun(t *testing.T) {
	run, another := uuid.New(), uuid.New()
	step := func(of uuid.UUID) *Entry {
		return &Entry{step: &store.StepWrite{Step: store.Step{Run: of}}}
	}
	receive := func(of uuid.UUID) *Entry {
		return &Entry{receive: &store.ReceiveWrite{Step: store.Step{Run: of}}}
	}
	write := func(of uuid.UUID, status store.Status) *Entry {
		return &Entry{ownershipEnd: &store.OwnershipEnd{UUID: of, Status: status}}
	}
	for _, c := range []struct {
		what         string
		first, later *Entry
		waits        bool
	}{
		{"a leave for a step", step(run), write(run, store.Waiting), true},
		{"a leave for a receive", receive(run), write(run, store.Pending), true},
		{"a step for a leave", write(run, store.Paused), step(run), true},
		{"a receive for a leave", write(run, store.Pending), receive(run), true},
		{"a leave for another run's step", step(another), write(run, store.Pending), false},
		{"a step for another run's leave", write(another, store.Pending), step(run), false},
		{"a step for a step", step(run), step(run), false},
		{"an end for a step", step(run), write(run, store.Completed), false},
		{"a step for an end", write(run, store.Failed), step(run), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held, gate := &atomic.Bool{}, make(chan struct{})
				j := New(func(context.Context, *store.Batch) error {
					if held.CompareAndSwap(false, true) {
						<-gate
					}
					return nil
				}, nil, 0)
				var wg sync.WaitGroup
				add := func(e *Entry) {
					e.itemCount, e.result = 1, make(chan error, 1)
					wg.Go(func() { must(t, j.appendAndAwait(t.Context(), e)) })
					synctest.Wait()
				}
				add(c.first)
				add(c.later)
				for i := range secondWriterThreshold - 1 { // with the later one, enough to call the second writer
					add(&Entry{starts: []*store.StartWrite{{Run: store.Run{Name: fmt.Sprint(i)}}}})
				}
				want := 0
				if c.waits {
					want = 1
				}
				if got := j.PendingEntries(); got != want {
					t.Errorf("%d entries wait while the first is under way, want %d", got, want)
				}
				close(gate)
				wg.Wait()
				closeNow(t, j)
				if j.activeWriters != 0 || j.openTxRunsByWriter[0].inUse || j.openTxRunsByWriter[1].inUse {
					t.Errorf("%d writers are left, and the flights %+v", j.activeWriters, j.openTxRunsByWriter)
				}
			})
		})
	}
}
