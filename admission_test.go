package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

const boundedQueue = "bounded"

// bound sets the settings of the queue of these tests.
func bound(t *testing.T, s durable.Store, settings store.QueueSettings) {
	t.Helper()
	now, err := s.Now(t.Context())
	if err == nil {
		err = s.ChangeQueue(t.Context(), store.QueueChangeRequest{Name: boundedQueue, Settings: settings, Now: now})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// enqueue starts a run of the workflow in the queue of these tests.
func enqueue(t *testing.T, s durable.Store, workflow, id, key string, priority int16) {
	t.Helper()
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uuid, name := store.NewRootIdentity(id)
	w := &store.StartWrite{
		Run: store.Run{
			UUID: uuid, Name: name, Workflow: workflow, Queue: boundedQueue, Priority: priority, Admission: store.AdmissionPending,
			Status: store.Pending, Input: []byte("1"), CreatedAt: now, WakeAt: now,
		},
		Place: &store.QueuePlace{Run: uuid, Queue: boundedQueue, Key: key, Weight: 1, Priority: priority, State: store.PlaceNotArrived, Root: true},
	}
	if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{w}}); err != nil {
		t.Fatal(err)
	}
}

// allEnd waits until the runs have completed.
func allEnd(t *testing.T, e *durable.Engine, ids ...string) {
	t.Helper()
	for _, id := range ids {
		waitFor(t, func() bool {
			info, err := e.Get(t.Context(), id)
			return err == nil && info.Status == durable.StatusCompleted
		})
	}
}

// together counts what executes at once.
type together struct {
	mu        sync.Mutex
	now, most int
	full      chan struct{} // closed when as many execute as the bound allows
}

// enter counts a run that executes, and waits until as many execute as may.
func (c *together) enter(ctx context.Context, bound int) {
	c.mu.Lock()
	c.now++
	if c.most = max(c.most, c.now); c.now == bound && c.full != nil {
		close(c.full)
		c.full = nil
	}
	full := c.full
	c.mu.Unlock()
	if full != nil {
		select {
		case <-full:
		case <-ctx.Done():
		}
	}
}

func (c *together) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

// As many runs of a queue execute at once as its settings allow, over all workers.
func TestAQueueBoundsTheRunsOfAllWorkers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const most = 3
		within(t)
		bound(t, s, store.QueueSettings{MaxExecuting: most})
		c := &together{full: make(chan struct{})}
		w := durable.Define("w", func(ctx *durable.Ctx, n int) (int, error) {
			return n, ctx.Do("work", func(ctx context.Context) error {
				c.enter(ctx, most)
				defer c.leave()
				return nil
			})
		})
		var ids []string
		for i := range 20 {
			ids = append(ids, fmt.Sprint("run-", i))
			enqueue(t, s, "w", ids[i], "", 0)
		}
		first, second := engineOn(t, s, w), engineOn(t, s, w)
		running(t, first)
		running(t, second)
		allEnd(t, first, ids...)
		if c.most != most {
			t.Errorf("%d runs executed at once, want %d", c.most, most)
		}
	})
}

// With one open run for each key, the runs of a key execute one at a time, in the order of their starts, also
// while they sleep.
func TestOneRunOfAKeyIsOpenAtATime(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		within(t)
		bound(t, s, store.QueueSettings{MaxInProgressPerKey: 1})
		var mu sync.Mutex
		var order []string
		var open, overlaps atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
			err := c.Do("begin", func(context.Context) error {
				if open.Add(1) > 1 {
					overlaps.Add(1)
				}
				return nil
			})
			if err == nil {
				err = c.Sleep("rest", 20*time.Millisecond)
			}
			if err != nil {
				return 0, err
			}
			return n, c.Do("end", func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, c.ID())
				open.Add(-1)
				return nil
			})
		})
		var ids []string
		for i := range 6 {
			ids = append(ids, fmt.Sprint("order-", i))
			enqueue(t, s, "w", ids[i], "customer", 0)
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		allEnd(t, e, ids...)
		if overlaps.Load() > 0 || !slices.Equal(order, ids) {
			t.Errorf("%d overlaps; the order was %v", overlaps.Load(), order)
		}
	})
}

// A parent that waits for a child in its own queue leaves its place to the child.
func TestChildrenInTheQueueOfTheirParentDoNotDeadlock(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		within(t)
		bound(t, s, store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1})
		leaf := durable.Define("leaf", double)
		parent := durable.Define("parent", func(c *durable.Ctx, n int) (int, error) { return c.Child("leaf", leaf, n) })
		ids := []string{"a", "b"}
		for _, id := range ids {
			enqueue(t, s, "parent", id, "", 0)
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{leaf, parent}, ParkAfter: time.Millisecond})
		running(t, e)
		allEnd(t, e, ids...)
	})
}

// A worker executes no more runs of a queue than MaxExecutingPerWorker, and takes runs of other queues meanwhile.
func TestAQueueBoundsTheRunsOfEachWorker(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		bound(t, s, store.QueueSettings{MaxExecutingPerWorker: 2})
		c := &together{full: make(chan struct{})}
		w := durable.Define("w", func(ctx *durable.Ctx, n int) (int, error) {
			return n, ctx.Do("work", func(ctx context.Context) error {
				c.enter(ctx, 2)
				defer c.leave()
				return nil
			})
		})
		other := durable.Define("other", double)
		var ids []string
		for i := range 12 {
			ids = append(ids, fmt.Sprint("run-", i))
			enqueue(t, s, "w", ids[i], "", 0)
		}
		stranger := orFail(other.Start(ctx, engineOn(t, s), 4))(t)
		e := engineOn(t, s, w, other)
		running(t, e)
		allEnd(t, e, ids...)
		if got, err := stranger.Result(ctx); got != 8 || err != nil {
			t.Error(got, err)
		}
		if c.most != 2 {
			t.Errorf("%d runs executed at once on a worker, want 2", c.most)
		}
	})
}

// A start that knew the queue's settings may commit after they were deleted. Its run is executed.
func TestARunThatArrivesAfterItsQueueWasDeletedIsExecuted(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		within(t)
		e := engineOn(t, s, durable.Define("w", double))
		running(t, e)
		enqueue(t, s, "w", "late", "", 0)
		allEnd(t, e, "late")
	})
}
