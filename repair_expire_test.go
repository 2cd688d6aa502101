package durable_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A repaired run, a copy and a child that is retried with its parent execute the compensations of the steps that they have kept if their time is
// over while they wait in the queue, whatever they wait for there.
func TestARepairedRunThatExpiresInItsQueueIsCompensated(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var again atomic.Bool // the runs were repaired
		var mu sync.Mutex
		refunds := make(map[string]int)
		w := durable.Define("w", func(c *durable.Ctx, in string) (int, error) {
			if err := c.Do("pay", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if again.Load() { // the code has registered nothing before
				err := c.Compensate("refund", func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					refunds[in]++
					return nil
				})
				if err != nil {
					return 0, err
				}
			}
			return 0, c.Do("ship", func(context.Context) error { return errDeclined })
		})
		parent := durable.Define("parent", func(c *durable.Ctx, in string) (int, error) {
			return c.Child("kid", w, in, durable.InQueue(in[len("child, "):]))
		})
		begun, release := make(chan struct{}, 1), make(chan struct{})
		blocker := durable.Define("blocker", func(*durable.Ctx, int) (int, error) {
			begun <- struct{}{}
			<-release
			return 0, nil
		})
		e := engineOn(t, s, w, parent, blocker)
		running(t, e)
		t.Cleanup(sync.OnceFunc(func() { close(release) }))
		queues := []string{"paused", "occupied"}
		for _, queue := range queues {
			if err := e.SetQueue(within(t), queue, durable.QueueSettings{MaxExecuting: 1}); err != nil {
				t.Fatal(err)
			}
			for _, how := range []string{"retry", "retry all", "fork", "copy", "paused run"} {
				run := read(w.Start(within(t), e, how+", "+queue, durable.ID(how+", "+queue), durable.InQueue(queue)))(t)
				if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) {
					t.Fatal(err)
				}
			}
			id := "child, " + queue
			run := read(parent.Start(within(t), e, id, durable.ID(id)))(t)
			if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) {
				t.Fatal(err)
			}
		}
		again.Store(true)
		if err := e.PauseQueue(within(t), "paused"); err != nil {
			t.Fatal(err)
		}
		read(blocker.Start(within(t), e, 0, durable.InQueue("occupied")))(t)
		<-begun
		repairs := map[string]func(id string) (waits string, err error){
			"retry":     func(id string) (string, error) { _, err := e.Retry(within(t), id); return id, err },
			"retry all": func(id string) (string, error) { _, err := e.Retry(within(t), id, durable.From("pay")); return id, err },
			"fork":      func(id string) (string, error) { _, err := e.Fork(within(t), id, durable.FromEnd()); return id, err },
			"copy": func(id string) (string, error) {
				_, err := e.Fork(within(t), id, durable.From("ship"), durable.NewID(id+" 2"))
				return id + " 2", err
			},
			"paused run": func(id string) (string, error) { _, err := e.Retry(within(t), id); return id, err },
			"child": func(id string) (string, error) {
				if _, err := e.Retry(within(t), id); err != nil {
					return "", err
				}
				return read(e.Tree(within(t), id))(t).Children[0].ID, nil
			},
		}
		for _, queue := range queues {
			for how, repair := range repairs {
				in := how + ", " + queue
				id, err := repair(in)
				if err != nil {
					t.Fatal(in, err)
				}
				if how == "paused run" {
					must(t)(e.Pause(within(t), id))
				}
				if err := e.SetTimeout(within(t), id, time.Millisecond); err != nil {
					t.Fatal(in, err)
				}
				if how == "paused run" {
					waitFor(t, func() bool { return read(e.Now(within(t)))(t).After(read(e.Get(within(t), id))(t).Deadline) })
					must(t)(e.Resume(within(t), id))
				}
				awaitStatus(t, e, id, durable.StatusExpired)
				want := 1
				if how == "retry all" { // the run paid nothing again
					want = 0
				}
				mu.Lock()
				if got := refunds[in]; got != want {
					t.Errorf("%s: %d refunds, want %d", in, got, want)
				}
				mu.Unlock()
			}
		}
	})
}
