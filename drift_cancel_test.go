package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run that is cancelled or expires under code that does not make its recorded calls is held, and none of its compensations is lost: code
// that fits ends it.
func TestEndUnderCodeThatDoesNotFit(t *testing.T) {
	for name, wrong := range map[string]string{"renamed": "pay by card", "removed": ""} {
		for end, status := range map[string]durable.Status{"cancel": durable.StatusCancelled, "timeout": durable.StatusExpired} {
			t.Run(name+"/"+end, func(t *testing.T) {
				onStores(t, func(t *testing.T, s durable.Store) {
					var paid, unpaid atomic.Int32
					version := func(pay string) *durable.Workflow[int, int] {
						return durable.Define("order", func(c *durable.Ctx, in int) (int, error) {
							if pay != "" {
								if err := c.Do(pay, func(context.Context) error { paid.Add(1); return nil }); err != nil {
									return 0, err
								}
								if err := c.Compensate("unpay", func(context.Context) error { unpaid.Add(1); return nil }); err != nil {
									return 0, err
								}
							}
							_, err := c.Receive[int]("gate")
							return in, err
						})
					}
					ctx := within(t)
					first := version("pay")
					e := engineOn(t, s)
					stop := atVersion(t, s, "v1", first)
					if _, err := first.Start(ctx, e, 1, durable.ID("order")); err != nil {
						t.Fatal(err)
					}
					awaitStatus(t, e, "order", durable.StatusWaiting)
					stop()
					mustEnd(t, e, end)
					if end == "cancel" {
						wantPreflightDiverged(t, s, version(wrong))
					}
					stop = atVersion(t, s, "v2", version(wrong))
					awaitStatus(t, e, "order", durable.StatusPaused)
					if info, err := e.Get(ctx, "order"); err != nil || !info.Diverged {
						t.Fatalf("%+v %v", info, err)
					}
					stop()
					atVersion(t, s, "v3", version("pay"))
					awaitStatus(t, e, "order", status)
					if paid.Load() != 1 || unpaid.Load() != 1 {
						t.Errorf("paid %d times, undone %d times", paid.Load(), unpaid.Load())
					}
				})
			})
		}
	}
}

// mustEnd cancels the order, or lets its time be over. A failure needs neither.
func mustEnd(t *testing.T, client *durable.Engine, end string) {
	t.Helper()
	var err error
	switch end {
	case "cancel":
		_, err = client.Cancel(within(t), "order")
	case "timeout":
		err = client.SetTimeout(within(t), "order", time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Patched returns false to a run that must end and has passed the place, so that its code registers the compensation again.
func TestPatchedInARunThatMustEnd(t *testing.T) {
	for end, status := range map[string]durable.Status{"cancel": durable.StatusCancelled, "timeout": durable.StatusExpired, "failure": durable.StatusFailed} {
		t.Run(end, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var undone atomic.Int32
				broken := atomic.Bool{}
				broken.Store(true)
				version := func(patched bool) *durable.Workflow[int, int] {
					return durable.Define("order", func(c *durable.Ctx, in int) (int, error) {
						if patched {
							takes, err := c.Patched("fraud check")
							if err != nil {
								return 0, err
							}
							if takes {
								if err := c.Do("fraud check", func(context.Context) error { return nil }); err != nil {
									return 0, err
								}
							}
						}
						if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
							return 0, err
						}
						undo := func(context.Context) error {
							if broken.Load() && end == "failure" {
								return errors.New("the bank is closed")
							}
							undone.Add(1)
							return nil
						}
						if err := c.Compensate("refund", undo, durable.Retry(durable.RetryPolicy{Attempts: 1000, Initial: 10 * time.Millisecond})); err != nil {
							return 0, err
						}
						if end == "failure" {
							return 0, errors.New("out of stock")
						}
						_, err := c.Receive[int]("gate")
						return in, err
					})
				}
				ctx := within(t)
				e := engineOn(t, s)
				stop := atVersion(t, s, "v1", version(false))
				if _, err := version(false).Start(ctx, e, 1, durable.ID("order")); err != nil {
					t.Fatal(err)
				}
				waitFor(t, func() bool { info, err := e.Get(ctx, "order"); return err == nil && len(info.OpenCalls) == 1 })
				stop()
				broken.Store(false)
				mustEnd(t, e, end)
				atVersion(t, s, "v2", version(true))
				awaitStatus(t, e, "order", status)
				if undone.Load() != 1 {
					t.Errorf("undone %d times", undone.Load())
				}
			})
		})
	}
}

// A cancelled run whose code no longer registers a compensation that has begun and not succeeded is held, and code that does ends it.
func TestCancelledRunWithoutItsCompensationIsHeld(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var undone, calls atomic.Int32
		var broken atomic.Bool
		broken.Store(true)
		version := func(compensates bool) *durable.Workflow[int, int] {
			return durable.Define("order", func(c *durable.Ctx, in int) (int, error) {
				if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				undo := func(context.Context) error {
					calls.Add(1)
					if broken.Load() {
						return errors.New("the bank is closed")
					}
					undone.Add(1)
					return nil
				}
				if compensates {
					if err := c.Compensate("refund", undo, durable.Retry(durable.RetryPolicy{Attempts: 10000, Initial: 10 * time.Millisecond})); err != nil {
						return 0, err
					}
				}
				_, err := c.Receive[int]("gate")
				return in, err
			})
		}
		ctx := within(t)
		e := engineOn(t, s)
		stop := atVersion(t, s, "v1", version(true))
		if _, err := version(true).Start(ctx, e, 1, durable.ID("order")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "order", durable.StatusWaiting)
		if _, err := e.Cancel(ctx, "order"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return calls.Load() > 1 })
		stop()
		broken.Store(false)
		wantPreflightDiverged(t, s, version(false))
		stop = atVersion(t, s, "v2", version(false))
		awaitStatus(t, e, "order", durable.StatusPaused)
		if info, err := e.Get(ctx, "order"); err != nil || !info.Diverged {
			t.Fatalf("%+v, %v", info, err)
		}
		stop()
		atVersion(t, s, "v3", version(true))
		awaitStatus(t, e, "order", durable.StatusCancelled)
		if undone.Load() != 1 {
			t.Errorf("undone %d times", undone.Load())
		}
	})
}

// Preflight finds a removed call of a run that waits at a later one.
func TestPreflightFindsACallThatWasRemovedBeforeAWait(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		version := func(calls bool) *durable.Workflow[int, int] {
			return durable.Define("order", func(c *durable.Ctx, in int) (int, error) {
				if calls {
					if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
						return 0, err
					}
				}
				_, err := c.Receive[int]("gate")
				return in, err
			})
		}
		ctx := within(t)
		first := version(true)
		e := engineOn(t, s, first)
		running(t, e)
		if _, err := first.Start(ctx, e, 1, durable.ID("order")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { info, err := e.Get(ctx, "order"); return err == nil && len(info.OpenCalls) == 1 })
		for calls, diverged := range map[bool]int{true: 0, false: 1} {
			report, err := engineOn(t, s, version(calls)).Preflight(ctx, durable.Filter{Workflow: "order"})
			if err != nil || report.Diverged != diverged {
				t.Errorf("with the call %v: %+v, %v", calls, report, err)
			}
		}
	})
}
