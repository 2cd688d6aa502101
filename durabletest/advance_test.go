package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// Advance stops at each due time on its way, and goes no further than asked.
func TestAdvance(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var beats atomic.Int32
		w := durable.Define("heart", func(c *durable.Ctx, _ int) (int, error) {
			for i := 0; ; i++ {
				if err := c.Sleep(fmt.Sprint("pause-", i), time.Hour); err != nil {
					return 0, err
				}
				if err := c.Do(fmt.Sprint("beat-", i), func(context.Context) error { beats.Add(1); return nil }); err != nil {
					return 0, err
				}
			}
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		if _, err := w.Start(quickly(t), e.Engine, 0); err != nil {
			t.Fatal(err)
		}
		e.Advance(0)
		if beats.Load() != 0 {
			t.Errorf("%d beats at once", beats.Load())
		}
		e.Advance(time.Hour - time.Microsecond)
		if beats.Load() != 0 {
			t.Errorf("%d beats before the hour", beats.Load())
		}
		e.Advance(time.Microsecond)
		if beats.Load() != 1 {
			t.Errorf("%d beats after an hour", beats.Load())
		}
		e.Advance(10*time.Hour + time.Minute)
		if beats.Load() != 11 {
			t.Errorf("%d beats after eleven hours", beats.Load())
		}
		e.AdvanceUntil(func() bool { return beats.Load() == 20 })
		if beats.Load() != 20 {
			t.Errorf("%d beats", beats.Load())
		}
	})
}

// Frozen, time passes by Advance only.
func TestFreeze(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Sleep("a day", day) })
	e := durabletest.New(t, w)
	e.FreezeClock()
	run, err := w.Start(quickly(t), e.Engine, 0)
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(time.Hour)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := run.Result(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen: %v", err)
	}
	e.UnfreezeClock()
	if got, err := run.Result(quickly(t)); got != 1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// A lease does not end by a jump: the run that executes is never claimed twice.
func TestLeasesOutliveJumps(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for i := range 3 {
				if err := c.Sleep(fmt.Sprint(i), 365*day); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
		// Everything stays in memory, with the lease of its start.
		opts = append(opts, durabletest.Configure(func(c *durable.Config) { c.ParkAfter = 10000 * day }))
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		e.StartAnother(w)
		if _, err := w.Call(quickly(t), e.Engine, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		info, err := e.Get(quickly(t), "run")
		if err != nil || info.Epoch != 1 || info.Crashes != 0 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}
