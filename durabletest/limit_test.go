package durabletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// A rate follows the test's clock: steps that wait for it take no real time.
func TestRateFollowsTheClock(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		limit := durable.NewLimit("mail", durable.Rate(1, time.Minute), durable.Burst(2))
		w := durable.Define("send", func(c *durable.Ctx, _ int) (int, error) {
			_, err := c.Map("mails", make([]int, 20), func(context.Context, int) (int, error) { return 0, nil }, durable.ItemOptions(limit.Permit()))
			return 0, err
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		began := e.Now()
		run, err := w.Start(quickly(t), e.Engine, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(quickly(t)); err != nil {
			t.Fatal(err)
		}
		if took := e.Now().Sub(began); took < 18*time.Minute || took > 19*time.Minute {
			t.Errorf("20 mails, one a minute and two at once, took %v of the test's time, want 18 minutes", took)
		}
	})
}

// Steps that wait for a permit of others do not stop the clock, nor do they look as if they waited for nothing.
func TestStepsTakeTurnsUnderALimit(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		limit := durable.NewLimit("one", durable.Concurrent(1))
		w := durable.Define("turns", func(c *durable.Ctx, n int) (int, error) {
			for i := range 3 {
				if err := c.Do("step "+string(rune('a'+i)), func(context.Context) error { return nil }, limit.Permit()); err != nil {
					return 0, err
				}
				if err := c.Sleep("sleep "+string(rune('a'+i)), time.Hour); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		var runs []*durable.Run[int]
		for i := range 10 {
			run, err := w.Start(quickly(t), e.Engine, i)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		for i, run := range runs {
			if got, err := run.Result(quickly(t)); err != nil || got != i {
				t.Errorf("run %d: %d, %v", i, got, err)
			}
		}
	})
}
