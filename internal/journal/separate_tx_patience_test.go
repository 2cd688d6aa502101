package journal

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// In an outage, each write in a transaction of its own fails about patience after its call, however many there are.
func TestWritersInAnOutageDoNotWaitForThePatienceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		j := New(func(context.Context, *store.Batch) error { return store.ErrUnavailable }, nil, patience)
		began := time.Now()
		var mu sync.Mutex
		var last time.Duration
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				w := j.NewSeparateTxWriter()
				defer w.Close()
				run := uuid.New()
				_ = w.WriteSignal(context.Background(), &store.SignalWrite{Run: run, ID: uuid.New(), Name: "s"})
				mu.Lock()
				last = max(last, time.Since(began))
				mu.Unlock()
			})
		}
		all.Wait()
		if last > 2*patience {
			t.Errorf("the last of 40 writers got its error after %v, with a patience of %v", last, patience)
		}
		_ = j.Close(context.Background())
	})
}

// A caller whose write is first locked, and then finds the database away, waits for one patience in all.
func TestTheWritesOfOneWriterShareOnePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 10 * time.Second
		began := time.Now()
		j := New(func(context.Context, *store.Batch) error {
			if time.Since(began) < patience*3/4 {
				return store.ErrLocked
			}
			return store.ErrUnavailable
		}, nil, patience)
		w := j.NewSeparateTxWriter()
		defer w.Close()
		for {
			err := w.WriteSignal(context.Background(), &store.SignalWrite{Run: uuid.New(), ID: uuid.New(), Name: "s"})
			if !errors.Is(err, store.ErrLocked) {
				break
			}
			time.Sleep(patience / 20)
		}
		if took := time.Since(began); took > patience*5/4 {
			t.Errorf("the caller got its error after %v, with a patience of %v", took, patience)
		}
		_ = j.Close(context.Background())
	})
}
