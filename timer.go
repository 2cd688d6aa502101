package durable

import (
	"fmt"
	"time"
)

// Sleep waits for d, durably: the time when it is over is recorded first, by the
// database's clock, and whoever continues the run waits for the same time. A run that
// only waits, for longer than Config.ParkAfter, leaves memory. Zero and less answer at
// once, and are recorded too. Errors as for Step.
func (c *Ctx) Sleep(name string, d time.Duration) error {
	return c.calls().Sleep(name, site(0), func(now time.Time) time.Time { return now.Add(d) })
}

// SleepUntil waits until t on the database's clock; otherwise it is as Sleep. A time that
// has passed answers at once; the zero time is ErrInvalidConfig.
func (c *Ctx) SleepUntil(name string, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: sleep %q until %v: give it a time in the years 1 to 9999, and not the zero time", ErrInvalidConfig, name, t)
	}
	return c.calls().Sleep(name, site(0), func(time.Time) time.Time { return t.UTC() })
}
