package durable_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// countedSuspects is a store that counts the claims, and those that may take a suspect.
type countedSuspects struct {
	durable.Store
	claims, takesSuspect atomic.Int64
}

func (s *countedSuspects) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	if q.MaxSuspects > 0 {
		s.takesSuspect.Add(1)
	}
	s.claims.Add(1)
	return s.Store.Claim(ctx, q)
}

// loseTwice claims the only run of the workflow, which is due, for two workers, whose leases have ended.
func loseTwice(t *testing.T, s durable.Store, workflow string) {
	t.Helper()
	for range 2 {
		now := dbNow(t, s)
		got, err := s.Claim(within(t), store.ClaimQuery{
			Worker: store.NewUUID(0), EpochNonce: 2, Filter: store.NewClaimFilter([]string{workflow}, nil), Limit: 1, MaxSuspects: 1, Now: now, LeaseUntil: now,
		})
		if err != nil || len(got.Runs) != 1 {
			t.Fatal(got, err)
		}
	}
}

// A call that has not ended is no checkpoint. A suspect that records one is still a suspect, and executed alone: the next death would
// otherwise count against it and against the next suspect.
func TestASuspectIsExecutedAloneUntilACallEnds(t *testing.T) {
	kid := durable.Define("kid", double)
	opens := map[string]func(c *durable.Ctx){
		"failed attempt": func(c *durable.Ctx) {
			failed := false
			_ = c.Do("flaky", func(context.Context) error {
				if !failed {
					failed = true
					return errors.New("once")
				}
				return nil
			}, durable.Retry(durable.Fixed(time.Hour, 2)))
		},
		"child":   func(c *durable.Ctx) { _, _ = c.StartChild("kid", kid, 1, durable.Delay(time.Hour)) },
		"receive": func(c *durable.Ctx) { _, _ = c.Receive[int]("signal") },
	}
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				counted := &countedSuspects{Store: s}
				working, leave := make(chan struct{}), make(chan struct{})
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					c.Go("open", func(c *durable.Ctx) (int, error) { open(c); return 0, nil })
					return c.Step("work", func(context.Context) (int, error) {
						close(working)
						<-leave
						return 1, nil
					})
				})
				e := engineWith(t, counted, durable.Config{Workflows: []durable.Definition{w, kid}, Poll: 20 * time.Millisecond})
				read(w.Start(within(t), e, 1, durable.ID("suspect")))(t)
				waitUntil(t, s, read(e.Get(within(t), "suspect"))(t).CreatedAt)
				loseTwice(t, s, "w")
				running(t, e)
				<-working
				await(t, "the open call", func() bool {
					return slices.ContainsFunc(historyOf(t, e, "suspect"), func(h durable.Checkpoint) bool { return h.Name != "work" })
				})
				before, from := counted.takesSuspect.Load(), counted.claims.Load()
				await(t, "more claims", func() bool { return counted.claims.Load() > from+3 })
				if n := counted.takesSuspect.Load() - before; n > 1 { // one may have been under way
					t.Errorf("%d claims might take another suspect", n)
				}
				close(leave)
				await(t, "a claim after the checkpoint", func() bool { return counted.takesSuspect.Load() > before+1 })
			})
		})
	}
}
