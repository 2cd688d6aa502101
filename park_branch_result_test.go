package durable_test

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A branch whose failure decides AllOrCancel, and that returns it after the run was parked too early beside a branch that waits, fails the run
// all the same: nothing else would wake the run before the event that the other branch waits for.
func TestABranchThatFailsAfterTheRunParkedIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var parked atomic.Bool
		w := durable.Define("w", func(c *durable.Ctx, _ int) ([]int, error) {
			waits := c.Go("waits", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never", durable.Within(time.Hour)) })
			fails := c.Go("fails", func(c *durable.Ctx) (int, error) {
				if !parked.Swap(true) {
					<-c.Done() // the work ends after the run was parked, and sees nothing of that
				}
				return 0, errDeclined
			})
			return durable.AllOrCancel(c, "first failure", waits, fails)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("a")))(t)
		if !becomes(t, e, "a", durable.StatusFailed) {
			info := read(e.Get(within(t), "a"))(t)
			t.Fatalf("the run is %s, and wakes at %v", info.Status, info.WakeAt)
		}
		var failed *durable.RunError
		if _, err := run.Result(within(t)); !errors.As(err, &failed) {
			t.Errorf("the run failed with %v", err)
		}
	})
}

// The same holds for a function that calls runtime.Goexit, as t.FailNow does.
func TestAGoexitAfterTheRunParkedIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var parked atomic.Bool
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			c.Go("waits", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never", durable.Within(time.Hour)) })
			if !parked.Swap(true) {
				<-c.Done()
			}
			runtime.Goexit()
			return 0, nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		read(w.Start(within(t), e, 0, durable.ID("a")))(t)
		if !becomes(t, e, "a", durable.StatusFailed) {
			info := read(e.Get(within(t), "a"))(t)
			t.Errorf("the run is %s, and wakes at %v", info.Status, info.WakeAt)
		}
	})
}
