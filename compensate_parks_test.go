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
