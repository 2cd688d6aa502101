package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// Verify is called also if the TotalTimeout was over before another process claimed the run.
func TestVerifyAfterTotalTimeout(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{}, 3)
	var asked atomic.Int32
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("charge", func(ctx context.Context) (string, error) {
			entered <- struct{}{}
			<-ctx.Done() // the step has taken effect, and the process ends
			return "", ctx.Err()
		}, durable.TotalTimeout(3*time.Second), durable.Verify(func(context.Context) (string, bool, error) {
			asked.Add(1)
			return "charged", true, nil
		}))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	waitUntil(t, s, historyOf(t, engineOn(t, s), "a")[0].StartedAt.Add(3*time.Second)) // no process executes the run meanwhile
	got, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("a"))
	if got != "charged" || err != nil || asked.Load() != 1 {
		t.Errorf("got %q, %v (outcome unknown: %v); Verify was asked %d times", got, err, errors.Is(err, durable.ErrOutcomeUnknown), asked.Load())
	}
}

// A Tx step whose process ended before its commit is executed again after Verify.
func TestTxVerify(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{}, 3)
	var first atomic.Bool
	first.Store(true)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return sqlite.Tx(c, "book", func(ctx context.Context, tx *sql.Tx) (string, error) {
			if first.Swap(false) {
				entered <- struct{}{}
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "booked", nil
		}, durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil }))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	if got, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("a")); got != "booked" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
