package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Runs whose time in line is over expire while every slot of the worker is taken, also while their queue is paused. Their functions
// are not called. A run that has begun, and so needs a slot for its compensations, waits for one.
func TestRunsExpireWhileAllSlotsAreTaken(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release, held := make(chan struct{}), make(chan struct{}, 2)
		holder := durable.Define("holder", func(c *durable.Ctx, _ int) (int, error) {
			held <- struct{}{}
			<-release
			return 0, nil
		})
		var called atomic.Int64
		waits := durable.Define("waits", func(c *durable.Ctx, n int) (int, error) {
			called.Add(1)
			if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return n, c.Sleep("long", time.Hour)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{holder, waits}, Concurrency: 2, Poll: 50 * time.Millisecond, ParkAfter: 10 * time.Millisecond})
		for _, queue := range []string{"open", "paused"} {
			if err := e.SetQueue(within(t), queue, durable.QueueSettings{MaxExecuting: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.PauseQueue(within(t), "paused"); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		free := sync.OnceFunc(func() { close(release) })
		t.Cleanup(free)
		begun := read(waits.Start(within(t), e, 1, durable.InQueue("open"), durable.Timeout(2*time.Second)))(t)
		waitFor(t, func() bool { return read(e.Get(within(t), begun.ID()))(t).Status == durable.StatusWaiting })
		for i := range 2 {
			read(holder.Start(within(t), e, i))(t)
			<-held
		}
		var late []*durable.Run[int]
		for i := range 20 {
			for _, queue := range []string{"open", "paused"} {
				o := durable.StartBy(10 * time.Millisecond)
				if i%2 == 0 {
					o = durable.Timeout(10 * time.Millisecond)
				}
				late = append(late, read(waits.Start(within(t), e, i, durable.ID(fmt.Sprint(queue, i)), durable.InQueue(queue), o))(t))
			}
		}
		ctx := within(t)
		for _, run := range late {
			if _, err := run.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
				t.Errorf("run %s: %v", run.ID(), err)
			}
			if info := read(e.Get(within(t), run.ID()))(t); info.Status != durable.StatusExpired || info.Crashes != 0 {
				t.Errorf("run %s is %s, %d crashes", run.ID(), info.Status, info.Crashes)
			}
		}
		waitFor(t, func() bool { return read(e.Now(within(t)))(t).After(read(e.Get(within(t), begun.ID()))(t).Deadline) })
		if n := called.Load(); n != 1 {
			t.Errorf("%d functions of runs that wait were called, want 1", n)
		}
		if info := read(e.Get(within(t), begun.ID()))(t); !info.EndedAt.IsZero() {
			t.Errorf("a run with a compensation ended without a slot: %+v", info)
		}
		free()
		if _, err := begun.Result(within(t)); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the run that had begun: %v", err)
		}
	})
}
