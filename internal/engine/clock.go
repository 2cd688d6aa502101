package engine

import (
	"context"
	"fmt"
	"math"
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

const (
	drifts   = 10_000                 // clocks part by at most one in so many
	readings = 4                      // tries for a first reading that is
	good     = 500 * time.Microsecond // enough: the trip of one that made a connection first is far longer
)

// doubt is how wrong the reading may have become.
func (r *reading) doubt(at time.Time) time.Duration { return r.trip/2 + at.Sub(r.local)/drifts }

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
// half of the round trip is taken to lie on either side. An answer that is less certain than what is
// known is left: under load it would make timers early or late. But one that
// cannot be true together with the last one is taken: a clock has jumped, or a machine slept.
func (c *clock) set(database, asked time.Time) {
	if c.test != nil {
		return
	}
	local := time.Now()
	next := &reading{database: database.Add(local.Sub(asked) / 2).UTC(), local: local, trip: local.Sub(asked)}
	if old := c.last.Load(); old != nil {
		known, doubt := old.doubt(local), next.doubt(local)
		apart := next.database.Sub(old.database.Add(local.Sub(old.local))).Abs()
		if doubt > known && apart <= known+doubt {
			return
		}
	}
	c.last.Store(next)
}

// ensure reads the database's clock if nobody has yet, and again if the answer took long and the next
// may be quicker: the first question may have to wait for a connection, and half of that
// would be doubt.
func (c *clock) ensure(ctx context.Context, s store.Store) error {
	if c.test != nil || c.last.Load() != nil {
		return nil
	}
	best := time.Duration(math.MaxInt64)
	for range readings {
		asked := time.Now()
		now, err := s.Now(ctx)
		if err != nil && c.last.Load() == nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		if err != nil {
			break // what was read will do
		}
		trip := time.Since(asked)
		c.set(now, asked)
		if trip <= good || trip > best-best/4 {
			break
		}
		best = trip
	}
	return nil
}

// until is how long it is to t, zero if it has passed for certain: a timer is rather late than
// early.
func (c *clock) until(t time.Time) time.Duration {
	doubt := c.doubt()
	return max(0, min(t.Sub(c.now()), math.MaxInt64-doubt)+doubt) // Sub stops at 292 years
}

// doubt is how wrong now may be.
func (c *clock) doubt() time.Duration {
	if r := c.last.Load(); r != nil {
		return r.doubt(time.Now())
	}
	return 0
}

// at calls f, which does not block, once t has come.
func (c *clock) at(t time.Time, f func()) Timer {
	if c.test != nil {
		return c.test.At(t, f)
	}
	return time.AfterFunc(c.until(t), f)
}
