package durable

import (
	"fmt"
	"time"
)

// Sleep waits for d. Sleep first records when the wait ends, by the database's clock, so that another process that continues
// the run waits until the same time. A run that only waits, for longer than Config.ParkAfter, is unloaded from memory. For a
// duration of zero or less, Sleep records the call and returns at once. Sleep returns the errors of [Ctx.Step].
func (c *Ctx) Sleep(name string, d time.Duration) error {
	return c.callScope().Sleep(name, callSite(0), func(now time.Time) time.Time { return now.Add(d) })
}

// SleepUntil waits until t, by the database's clock. In all other respects SleepUntil works as [Ctx.Sleep]. If t has passed,
// SleepUntil returns at once. SleepUntil returns [ErrInvalidConfig] for the zero time and for years outside of 1 to 9999.
func (c *Ctx) SleepUntil(name string, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: sleep %q until %v: give it a time in the years 1 to 9999, and not the zero time", ErrInvalidConfig, name, t)
	}
	return c.callScope().Sleep(name, callSite(0), func(time.Time) time.Time { return t.UTC() })
}
