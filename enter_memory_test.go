package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// lateReplies is a store in which the reply of the write that makes a worker the owner of the run "late" is late.
type lateReplies struct {
	durable.Store
	written, release chan struct{}
	readChanges      atomic.Int64 // how often the changes of owned runs were read
}

func (s *lateReplies) delay(name string) {
	if name == "late" {
		s.written <- struct{}{}
		<-s.release
	}
}

func (s *lateReplies) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	claims, err := s.Store.Claim(ctx, q)
	for i := range claims.Runs {
		s.delay(claims.Runs[i].Run.Name)
	}
	return claims, err
}

func (s *lateReplies) Commit(ctx context.Context, b *store.Batch) error {
	err := s.Store.Commit(ctx, b)
	for _, start := range b.Starts {
		if start.Run.Owner.Valid {
			s.delay(start.Run.Name)
		}
	}
	return err
}

func (s *lateReplies) OwnedRunChanges(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.OwnedRunChanges, error) {
	changes, err := s.Store.OwnedRunChanges(ctx, worker, held)
	s.readChanges.Add(1)
	return changes, err
}

// A cancel that arrives after a worker has become the owner of a run, and before the run is in its memory, ends the run at once, and not at the
// next renewal of leases.
func TestACancelBeforeAnOwnedRunIsInMemory(t *testing.T) {
	for _, claimed := range []bool{true, false} {
		t.Run(map[bool]string{true: "claimed", false: "started"}[claimed], func(t *testing.T) {
			onStores(t, func(t *testing.T, raw durable.Store) {
				s := &lateReplies{Store: raw, written: make(chan struct{}, 1), release: make(chan struct{})}
				entered := make(chan struct{}, 2)
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					return 0, c.Do("wait", func(ctx context.Context) error {
						entered <- struct{}{}
						<-ctx.Done()
						return context.Cause(ctx)
					})
				})
				e, client := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Hour, Grace: -1}), engineWith(t, raw, durable.Config{})
				running(t, e)
				read(w.Start(within(t), e, 0, durable.ID("in memory")))(t)
				<-entered
				starter := client
				if !claimed {
					starter = e
				}
				started := make(chan error, 1)
				go func() {
					_, err := w.Start(within(t), starter, 0, durable.ID("late"))
					started <- err
				}()
				<-s.written
				before := s.readChanges.Load()
				must(t)(client.Cancel(within(t), "late"))
				waitFor(t, func() bool { return s.readChanges.Load() > before })
				close(s.release)
				if err := <-started; err != nil {
					t.Fatal(err)
				}
				if !becomes(t, client, "late", durable.StatusCancelled) {
					t.Error("long after the cancel, the run is still executed")
				}
			})
		})
	}
}
