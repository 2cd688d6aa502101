package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// BenchmarkSteps commits new steps with synchronous=FULL, spread over a hundred
// runs, in batches of several sizes. ns/op is the time of one step.
func BenchmarkSteps(b *testing.B) {
	for _, size := range []int{1, 16, 100, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := openTest(b)
			runs := startTestRuns(b, s, 100)
			now := time.Now()
			output := []byte(`{"ok":true,"amount":1200,"currency":"EUR"}`)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				batch := &store.Batch{}
				for len(batch.Steps) < size && n < b.N {
					batch.Steps = append(batch.Steps, &store.StepWrite{Step: store.Step{
						Run: runs[n%len(runs)], Name: fmt.Sprintf("step-%d", n), Kind: store.KindStep,
						Status: store.StepCompleted, Attempt: 1, Epoch: epochAt(1),
						Output: output, StartedAt: now, EndedAt: now,
					}})
					n++
				}
				if err := s.Commit(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
				for _, w := range batch.Steps {
					if w.Outcome != store.Written {
						b.Fatal("outcome", w.Outcome)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// BenchmarkRuns starts and finishes runs in batches of a hundred.
func BenchmarkRuns(b *testing.B) {
	s := openTest(b)
	for n := 0; n < b.N; n += 100 {
		runs := startTestRuns(b, s, 100)
		batch := &store.Batch{}
		for _, id := range runs {
			batch.OwnershipEnds = append(batch.OwnershipEnds, &store.OwnershipEnd{
				UUID: id, Epoch: epochAt(1), Status: store.Completed, Output: []byte("1"), EndedAt: time.Now(),
			})
		}
		if err := s.Commit(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkIdlePoll is a claim that finds nothing in a file with sleeping runs.
func BenchmarkIdlePoll(b *testing.B) {
	s := openTest(b)
	startTestRuns(b, s, 100)
	q := store.ClaimQuery{
		Worker: uuid.New(), Filter: store.NewClaimFilter([]string{"test"}, nil), Limit: 10,
		Now: time.Now(), LeaseUntil: time.Now().Add(time.Minute), MaxCrashes: 5,
	}
	b.ReportAllocs()
	for b.Loop() {
		if c, err := s.Claim(context.Background(), q); err != nil || len(c.Runs) > 0 {
			b.Fatal(c, err)
		}
	}
}
