package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A flush of one, held for a second, then one of nine in which one row is bad.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away sync.Once
		f := &fake{gate: make(chan struct{}), commitResult: func(names []string) (err error) {
			<-time.After(time.Second) // of the bubble: nobody waits for it
			away.Do(func() { err = store.ErrUnavailable })
			if slices.Contains(names, "bad") {
				err = store.ErrBadData
			}
			return err
		}}
		j := New(f.commit, nil, 0)
		if got := j.Stats(); got != (Stats{}) {
			t.Errorf("at first: %+v", got)
		}
		var wg sync.WaitGroup
		wg.Go(func() { must(t, j.WriteStep(t.Context(), step("first"))) })
		synctest.Wait()
		for i := range 7 {
			wg.Go(func() { must(t, j.WriteStep(t.Context(), step(fmt.Sprint(i)))) })
		}
		wg.Go(func() {
			if err := j.WriteStep(context.Background(), step("bad")); !errors.Is(err, store.ErrBadData) {
				t.Errorf("the bad row got %v", err)
			}
		})
		synctest.Wait()
		if got := j.Stats(); got != (Stats{PendingEntries: 8}) {
			t.Errorf("while the first is held: %+v", got)
		}
		close(f.gate)
		wg.Wait()
		closeNow(t, j)

		// The eight are split 4+4, and those with the bad one 2+2 and 1+1: four refused.
		got := j.Stats()
		if got.Flushes != 4 || got.WrittenRows != 8 || got.FailedFlushes != 4 || got.FlushRetries != 1 || got.LargestFlushRows != 4 || got.PendingEntries != 0 {
			t.Errorf("at the end: %+v", got)
		}
		if got.WrittenBytes != 8*rowOverhead {
			t.Errorf("%d bytes, want %d", got.WrittenBytes, 8*rowOverhead)
		}
		// The first flush took two seconds and a pause, being tried twice, the other three one.
		if pause := got.TotalFlushTime - 5*time.Second; pause <= 0 || pause > 2*firstRetryDelay {
			t.Errorf("all flushes took %v, want 5s and a pause below %v", got.TotalFlushTime, 2*firstRetryDelay)
		}
		if got.AverageFlushTime <= time.Second || got.AverageFlushTime >= 2*time.Second {
			t.Errorf("a flush takes %v lately, want between 1s and 2s", got.AverageFlushTime)
		}
	})
}
