package engine

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// clock estimates the database's time without a query: it adds the time that has passed on the process's
// monotonic clock to the last reading. A local wall clock that is wrong or jumps has no effect.
type clock struct {
	last atomic.Pointer[reading]
	test Clock // the clock of a test; it replaces the estimate if it is set
}

type reading struct {
	database, local time.Time
	trip            time.Duration // the round trip of the query; the reading may be wrong by half of it
}

const (
	drifts   = 10_000                 // two clocks drift apart by at most one part in this many
	readings = 4                      // how often ensure reads the clock at most, to get a good first reading
	good     = 500 * time.Microsecond // a round trip at which ensure stops: opening a connection takes far longer
)

// doubt returns how wrong the reading may be at the given local time.
func (r *reading) doubt(at time.Time) time.Duration { return r.trip/2 + at.Sub(r.local)/drifts }

// now returns the database's time in microseconds, the resolution of the databases. It must be called only
// after ensure or set.
func (c *clock) now() time.Time {
	if c.test != nil {
		return c.test.Now()
	}
	r := c.last.Load()
	return r.database.Add(time.Since(r.local)).Truncate(time.Microsecond)
}

// set stores a reading of the database's clock. The query was sent at the time asked; set assumes that the
// database read its clock half a round trip later. It discards a reading that is less certain than the
// present estimate, since it would make timers early or late under load. But it stores a reading that
// cannot be true together with the estimate: then a clock has jumped, or a machine has slept.
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

// ensure reads the database's clock if nobody has read it yet. It repeats a slow read while the next may
// be faster: the first query may have to wait for a connection, and half of that wait would be doubt.
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
			break // an earlier reading is good enough
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

// until returns how long it is until t, or zero if t has certainly passed. It adds the doubt, so that a
// timer is late rather than early.
func (c *clock) until(t time.Time) time.Duration {
	doubt := c.doubt()
	return max(0, min(t.Sub(c.now()), math.MaxInt64-doubt)+doubt) // Sub saturates at 292 years
}

// doubt returns how wrong now may be.
func (c *clock) doubt() time.Duration {
	if r := c.last.Load(); r != nil {
		return r.doubt(time.Now())
	}
	return 0
}

// at calls f when the time t has come. f must not block.
func (c *clock) at(t time.Time, f func()) Timer {
	if c.test != nil {
		return c.test.At(t, f)
	}
	return time.AfterFunc(c.until(t), f)
}
