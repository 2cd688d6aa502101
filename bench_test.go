package durable_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// instant is a store in which every commit succeeds at once. So a benchmark measures only the library's own work.
type instant struct{ durable.Store }

func (instant) Commit(_ context.Context, b *store.Batch) error {
	for _, s := range b.Starts {
		s.Outcome = store.Written
	}
	for _, s := range b.Steps {
		s.Outcome = store.Written
	}
	for _, r := range b.OwnershipEnds {
		r.Outcome = store.Written
	}
	return nil
}

// BenchmarkWorkflow executes workflows of ten steps, 16 at once, without a database. ns/op and allocs/op are per workflow.
func BenchmarkWorkflow(b *testing.B) {
	type receipt struct {
		Number int    `json:"number"`
		Text   string `json:"text"`
	}
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprintf("step-%d", i)
	}
	answers := make([]chan int, 1024)
	for i := range answers {
		answers[i] = make(chan int, 1)
	}
	flow := durable.Define("flow", func(ctx *durable.Ctx, caller int) (int, error) {
		sum := 0
		for i, name := range names {
			r, err := ctx.Step(name, func(context.Context) (receipt, error) {
				return receipt{i, "forty bytes of text, or perhaps some more"}, nil
			})
			if err != nil {
				return 0, err
			}
			sum += r.Number
		}
		answers[caller] <- sum // the store keeps nothing, so the run could not be read later
		return sum, nil
	})
	e := engineWith(b, instant{openStore(b)}, durable.Config{Workflows: []durable.Definition{flow}, Concurrency: 1000})
	running(b, e)
	for e.Stats().Heartbeats == 0 { // before the first heartbeat the worker would claim the run instead of executing it from its start
		runtime.Gosched()
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	var callers atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		me := int(callers.Add(1))
		for pb.Next() {
			if _, err := flow.Start(b.Context(), e, me); err != nil {
				b.Error(err)
				return
			}
			if sum := <-answers[me]; sum != 45 {
				b.Error(sum)
			}
		}
	})
}

// endless is a store that always has one more due run, each with the same history.
type endless struct {
	instant
	history []store.Step
}

func (s endless) Claim(_ context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	if q.Limit == 0 {
		return store.ClaimResult{}, nil
	}
	id, name := store.NewRootIdentity("")
	return store.ClaimResult{Runs: []store.ClaimedRun{{History: s.history, Run: store.Run{
		UUID: id, Name: name, Workflow: "flow", Queue: "default", Status: store.Running, Epoch: store.Epoch{Count: 2}, Input: []byte("1"),
		Owner: uuid.NullUUID{UUID: q.Worker, Valid: true}, CreatedAt: q.Now, StartedAt: q.Now, WakeAt: q.LeaseUntil,
	}}}}, nil
}

// BenchmarkReplay replays claimed runs with histories of 10,000 steps, one after the other. ns/op is per run.
func BenchmarkReplay(b *testing.B) {
	const steps = 10_000
	s := endless{instant: instant{openStore(b)}, history: make([]store.Step, steps)}
	names := make([]string, steps)
	for i := range steps {
		names[i] = fmt.Sprintf("step-%05d", i)
		s.history[i] = store.Step{Name: names[i], Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: store.Epoch{Count: 1}, Output: []byte("1")}
	}
	ended := make(chan int)
	flow := durable.Define("flow", func(ctx *durable.Ctx, _ int) (int, error) {
		sum := 0
		for _, name := range names {
			one, err := ctx.Step(name, func(context.Context) (int, error) { return 0, errors.New("executed again") })
			if err != nil {
				return 0, err
			}
			sum += one
		}
		select {
		case ended <- sum:
		case <-ctx.Done():
		}
		return sum, nil
	})
	running(b, engineWith(b, s, durable.Config{Workflows: []durable.Definition{flow}, Concurrency: 1}))
	<-ended
	b.ReportAllocs()
	for b.Loop() {
		if sum := <-ended; sum != steps {
			b.Fatal(sum)
		}
	}
}
