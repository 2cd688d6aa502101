package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// BenchmarkCommit flushes new steps, each of another run, from one writer. It measures the limit of the
// write path without a journal and an engine, in rows/s.
func BenchmarkCommit(b *testing.B) {
	ctx := b.Context()
	s := open(b, "cache_statement")
	for _, size := range []int{1, 16, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			now, err := s.Now(ctx)
			if err != nil {
				b.Fatal(err)
			}
			batch := new(store.Batch)
			for range size {
				run := running(uuid.New(), now)
				batch.Starts = append(batch.Starts, &store.StartWrite{Run: run})
				batch.Steps = append(batch.Steps, &store.StepWrite{Step: store.Step{
					Run: run.UUID, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epochAt(1),
					Output: []byte(`{"ok":true}`), StartedAt: now, EndedAt: now,
				}})
			}
			steps := batch.Steps
			batch.Steps = nil
			if err := s.Commit(ctx, batch); err != nil {
				b.Fatal(err)
			}
			batch.Starts, batch.Steps = nil, steps
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				name := fmt.Sprintf("step-%d", i)
				for _, w := range steps {
					w.Step.Name = name
				}
				if err := s.Commit(ctx, batch); err != nil {
					b.Fatal(err)
				}
				if steps[0].Outcome != store.Written {
					b.Fatal(steps[0].Outcome)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkClaim claims runs of one queue with many runs, in batches of 100.
func BenchmarkClaim(b *testing.B) {
	ctx := b.Context()
	s := open(b, "cache_statement")
	now, err := s.Now(ctx)
	if err != nil {
		b.Fatal(err)
	}
	const size = 100
	var mu sync.Mutex
	starts := 0
	add := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		batch := new(store.Batch)
		for range n {
			batch.Starts = append(batch.Starts, &store.StartWrite{Run: pending(now)})
			starts++
		}
		if err := s.Commit(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	q := store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: size, Now: now, LeaseUntil: now.Add(time.Minute), MaxCrashes: 5}
	for b.Loop() {
		b.StopTimer()
		add(size)
		b.StartTimer()
		c, err := s.Claim(context.Background(), q)
		if err != nil || len(c.Runs) != size {
			b.Fatal(err, len(c.Runs))
		}
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkClaimNothing claims from a database in which nothing is due, as polls do.
func BenchmarkClaimNothing(b *testing.B) {
	s := open(b, "cache_statement")
	at := now(b, s)
	later := pending(at.Add(time.Hour))
	if err := s.Commit(b.Context(), &store.Batch{Starts: []*store.StartWrite{{Run: later}}}); err != nil {
		b.Fatal(err)
	}
	q := store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 100, MaxSuspects: 1, Now: at, LeaseUntil: at.Add(time.Minute), MaxCrashes: 5}
	for b.Loop() {
		if claims, err := s.Claim(b.Context(), q); err != nil || len(claims.Runs) != 0 {
			b.Fatal(len(claims.Runs), err)
		}
	}
}
