package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The process of an attempt died; Verify says it did not happen; the attempt that follows is not bounded.
func TestVerifiedAttemptIsBounded(t *testing.T) {
	s := openStore(t)
	var tries atomic.Int32
	entered := make(chan struct{}, 9)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("pay", func(ctx context.Context) (string, error) {
			if tries.Add(1) == 1 {
				entered <- struct{}{}
				<-ctx.Done() // by the end of the process
				return "", ctx.Err()
			}
			<-ctx.Done() // a call that hangs until its time is over
			return "", ctx.Err()
		}, durable.TotalTimeout(3*time.Second), durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil }))
	})
	cfg := durable.Config{Workflows: []durable.Definition{w}, Grace: time.Millisecond}
	e := engineWith(t, s, cfg)
	stop := running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	e = engineWith(t, s, cfg)
	running(t, e)
	_ = run
	if !becomes(t, e, "a", durable.StatusFailed, 10*time.Second) {
		info, _ := e.Get(t.Context(), "a")
		t.Errorf("10 s after it began, a step with a TotalTimeout of 3 s still runs (%d tries); the run is %s", tries.Load(), info.Status)
	}
}

// After Verify has said that it did not happen, too late for another attempt: by TotalTimeout, and so said.
func TestVerifyTooLate(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{}, 3)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("charge", func(ctx context.Context) (string, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}, durable.TotalTimeout(time.Second), durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil }))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	later(1200 * time.Millisecond)
	_, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("a"))
	if err == nil || !errors.Is(err, durable.ErrTimeout) || !strings.Contains(err.Error(), "total timeout of 1s") {
		t.Errorf("got %v", err)
	}
}
