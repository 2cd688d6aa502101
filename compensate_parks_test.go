package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run that fails or expires leaves memory while a compensation waits for its next attempt, each time, also after its deadline.
func TestARunThatCompensatesParksBetweenAttempts(t *testing.T) {
	for name, end := range map[string]func(c *durable.Ctx) error{
		"fails":   func(*durable.Ctx) error { return errDeclined },
		"expires": func(c *durable.Ctx) error { return c.Sleep("for a day", 24*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) { parksBetweenAttempts(t, s, end) })
		})
	}
}

func parksBetweenAttempts(t *testing.T, s durable.Store, end func(c *durable.Ctx) error) {
	attempts := make(chan int, 10)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		undo := func(ctx context.Context) error {
			attempts <- durable.Attempt(ctx)
			return errors.New("not yet")
		}
		err := c.Compensate("undo", undo, durable.Retry(durable.RetryPolicy{Attempts: 5, Initial: 2 * time.Second, Multiplier: 3000, Max: time.Hour}))
		if err != nil {
			return 0, err
		}
		return 0, end(c)
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
	running(t, e)
	read(w.Start(within(t), e, 0, durable.ID("a"), durable.Timeout(time.Second)))(t)
	for range 2 {
		<-attempts
		if !becomes(t, e, "a", durable.StatusWaiting) {
			info := read(e.Get(within(t), "a"))(t)
			t.Fatalf("the run is %s, and wakes at %v", info.Status, info.WakeAt)
		}
	}
	if info := read(e.Get(within(t), "a"))(t); time.Until(info.WakeAt) < 30*time.Minute {
		t.Errorf("the run wakes at %v, although the next attempt is due in an hour", info.WakeAt)
	}
}

// A cancelled run leaves memory, and its slot, while a compensation waits for its next attempt, or for the permit of its limit.
func TestACancelledRunThatCompensatesParks(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		attempts := make(chan int, 10)
		backoff := durable.Define("backoff", func(c *durable.Ctx, _ int) (int, error) {
			undo := func(ctx context.Context) error {
				attempts <- durable.Attempt(ctx)
				if durable.Attempt(ctx) < 3 {
					return errors.New("not yet")
				}
				return nil
			}
			if err := c.Compensate("undo", undo, durable.Retry(durable.RetryPolicy{Attempts: 3, Initial: 2 * time.Second, Multiplier: 3000, Max: time.Hour})); err != nil {
				return 0, err
			}
			return c.Receive[int]("never")
		})
		refunds := durable.NewLimit("refunds", durable.Rate(1, time.Hour))
		permit := durable.Define("permit", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("refund", func(context.Context) error { return nil }, refunds.Permit()); err != nil {
				return 0, err
			}
			if err := c.Do("use up the rate", func(context.Context) error { return nil }, refunds.Permit()); err != nil {
				return 0, err
			}
			return c.Receive[int]("never")
		})
		other := durable.Define("other", double)
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{backoff, permit, other}, ParkAfter: 20 * time.Millisecond, Concurrency: 1})
		running(t, e)
		read(backoff.Start(within(t), e, 0, durable.ID("backoff")))(t)
		read(permit.Start(within(t), e, 0, durable.ID("permit")))(t)
		for _, id := range []string{"backoff", "permit"} {
			awaitStatus(t, e, id, durable.StatusWaiting)
			must(t)(e.Cancel(within(t), id))
		}
		for range 2 {
			<-attempts
		}
		second, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := read(other.Start(within(t), e, 1))(t).Result(second); err != nil {
			t.Errorf("a run beside cancelled runs that wait: %v", err)
		}
		for _, id := range []string{"backoff", "permit"} {
			if !becomes(t, e, id, durable.StatusWaiting) {
				t.Errorf("the cancelled run %s is %s", id, read(e.Get(within(t), id))(t).Status)
			}
		}
		info := read(e.Get(within(t), "backoff"))(t)
		if time.Until(info.WakeAt) < 30*time.Minute || info.Requested != durable.VerbCancel {
			t.Errorf("the run wakes at %v, although the next attempt is due in an hour; requested: %q", info.WakeAt, info.Requested)
		}
	})
}
