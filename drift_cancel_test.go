package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run that is cancelled or expires under code that does not make its recorded calls is held, and none of its compensations is lost: code
// that fits ends it.
func TestEndUnderCodeThatDoesNotFit(t *testing.T) {
	for name, wrong := range map[string]string{"renamed": "pay by card", "removed": ""} {
		for _, end := range []string{"cancel", "timeout"} {
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
					var opts []durable.StartOption
					if end == "timeout" {
						opts = append(opts, durable.Timeout(time.Second))
					}
					if _, err := first.Start(ctx, e, 1, append(opts, durable.ID("order"))...); err != nil {
						t.Fatal(err)
					}
					waitFor(t, func() bool { info, err := e.Get(ctx, "order"); return err == nil && len(info.OpenCalls) == 1 })
					stop()
					if end == "cancel" {
						if _, err := e.Cancel(ctx, "order"); err != nil {
							t.Fatal(err)
						}
					}
					stop = atVersion(t, s, "v2", version(wrong))
					waitFor(t, func() bool {
						info, err := e.Get(ctx, "order")
						return err == nil && (info.Diverged || ended(info.Status))
					})
					if info, err := e.Get(ctx, "order"); err != nil || !info.Diverged {
						t.Fatalf("%+v %v", info, err)
					}
					stop()
					atVersion(t, s, "v3", version("pay"))
					waitFor(t, func() bool { info, err := e.Get(ctx, "order"); return err == nil && ended(info.Status) })
					if paid.Load() != 1 || unpaid.Load() != 1 {
						t.Errorf("paid %d times, undone %d times", paid.Load(), unpaid.Load())
					}
				})
			})
		}
	}
}

// ended reports whether a run with the status has ended.
func ended(s durable.Status) bool {
	return s == durable.StatusCancelled || s == durable.StatusExpired || s == durable.StatusCompleted || s == durable.StatusFailed
}
