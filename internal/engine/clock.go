package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// clock tells the database's time without asking it: the last answer, plus the
// time that has passed since by the process's monotonic clock. A wall clock that is
// wrong or jumps is never looked at.
type clock struct {
	last atomic.Pointer[reading]
	test Clock // tells the time instead, if it is set
}

type reading struct {
	database, local time.Time
	trip            time.Duration // of the question; half of it is how wrong the reading may be
}

// stale is when a reading gives way even to a worse one: clocks drift.
const stale = 5 * time.Minute

// now is the database's time, in microseconds as databases keep it. Ensure or set
// must have been called before.
func (c *clock) now() time.Time {
	if c.test != nil {
		return c.test.Now()
	}
	r := c.last.Load()
	return r.database.Add(time.Since(r.local)).Truncate(time.Microsecond)
}

// set takes an answer of the database's clock that was asked for at the time given;
// half of the round trip is taken to lie on either side. An answer that took much longer
// than the last one is left: under load it would make timers early or late.
func (c *clock) set(database, asked time.Time) {
	if c.test != nil {
		return
	}
	local := time.Now()
	trip := local.Sub(asked)
	if old := c.last.Load(); old != nil && trip > 2*old.trip+time.Millisecond && local.Sub(old.local) < stale {
		return
	}
	c.last.Store(&reading{database: database.Add(trip / 2).UTC(), local: local, trip: trip})
}

// ensure reads the database's clock if nobody has yet.
func (c *clock) ensure(ctx context.Context, s store.Store) error {
	if c.test != nil || c.last.Load() != nil {
		return nil
	}
	asked := time.Now()
	now, err := s.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	c.set(now, asked)
	return nil
}

// until is how long it is to t, zero if it has passed for certain: a reading may be wrong by
// half of its round trip, and a timer is rather late than early.
func (c *clock) until(t time.Time) time.Duration {
	doubt := time.Duration(0)
	if r := c.last.Load(); r != nil {
		doubt = r.trip / 2
	}
	return max(0, t.Sub(c.now())+doubt)
}

// at calls f, which does not block, once t has come.
func (c *clock) at(t time.Time, f func()) Timer {
	if c.test != nil {
		return c.test.At(t, f)
	}
	return time.AfterFunc(c.until(t), f)
}
