package durable

import (
	"fmt"
	"time"
)

// Sleep waits for d. It first records when the wait ends, by the database's clock, so that a process that continues the run
// waits until the same time. A run that only waits, for longer than Config.ParkAfter, leaves memory. A duration of zero or less
// is recorded too, and Sleep returns at once. The errors are those of [Ctx.Step].
func (c *Ctx) Sleep(name string, d time.Duration) error {
	return c.callScope().Sleep(name, callSite(0), func(now time.Time) time.Time { return now.Add(d) })
}

// SleepUntil waits until t, by the database's clock. In all other respects SleepUntil works as [Ctx.Sleep]. If t has passed, it
// returns at once. The zero time and years outside of 1 to 9999 return [ErrInvalidConfig].
func (c *Ctx) SleepUntil(name string, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: sleep %q until %v: give it a time in the years 1 to 9999, and not the zero time", ErrInvalidConfig, name, t)
	}
	return c.callScope().Sleep(name, callSite(0), func(time.Time) time.Time { return t.UTC() })
}
