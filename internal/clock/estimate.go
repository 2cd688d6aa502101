package clock

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Estimate estimates the database's time without a query: it adds the time that has passed on the process's
// monotonic clock to the last reading. A local wall clock that is wrong or jumps has no effect. The zero
// value is an Estimate without a reading.
type Estimate struct {
	last    atomic.Pointer[reading]
	checked atomic.Pointer[time.Time] // when the database's clock was read last, whether that reading was stored or not
}

type reading struct {
	database, local time.Time
	trip            time.Duration // the round trip of the query; the reading may be wrong by half of it
}

const (
	maxDriftRatio = 10_000                 // two clocks drift apart by at most one part in this many
	maxReadings   = 4                      // how often Ensure reads the clock at most, to get a good first reading
	goodRoundTrip = 500 * time.Microsecond // a round trip at which Ensure stops: opening a connection takes far longer
	maxReadingAge = time.Minute            // the age of the last reading at which Ensure reads the clock again
)

// doubt returns how wrong the reading may be at the given local time.
func (r *reading) doubt(at time.Time) time.Duration { return r.trip/2 + at.Sub(r.local)/maxDriftRatio }

// Now implements Clock.
func (e *Estimate) Now() time.Time {
	r := e.last.Load()
	return r.database.Add(time.Since(r.local)).Truncate(time.Microsecond)
}

// Set implements Clock. It assumes that the database read its clock half a round trip after the query was
// sent. It discards a reading that is less certain than the present estimate, since it would make timers
// early or late under load. But it stores a reading that cannot be true together with the estimate: then a
// clock has jumped, or a machine has slept.
func (e *Estimate) Set(database, asked time.Time) {
	local := time.Now()
	e.checked.Store(&local)
	next := &reading{database: database.Add(local.Sub(asked) / 2).UTC(), local: local, trip: local.Sub(asked)}
	if old := e.last.Load(); old != nil {
		known, doubt := old.doubt(local), next.doubt(local)
		apart := next.database.Sub(old.database.Add(local.Sub(old.local))).Abs()
		if doubt > known && apart <= known+doubt {
			return
		}
	}
	e.last.Store(next)
}

// Ensure implements Clock. It repeats a slow read while the next read may be faster: the first query may
// have to wait for a connection, and half of that wait would be doubt. One call a minute reads the clock again if no heartbeat
// does, because a clock may have been set, or a machine may have slept.
func (e *Estimate) Ensure(ctx context.Context, r Reader) error {
	if e.last.Load() != nil {
		e.readAgain(ctx, r)
		return nil
	}
	best := time.Duration(math.MaxInt64)
	for range maxReadings {
		asked := time.Now()
		now, err := r.Now(ctx)
		if err != nil && e.last.Load() == nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		if err != nil {
			break // an earlier reading is good enough
		}
		trip := time.Since(asked)
		e.Set(now, asked)
		if trip <= goodRoundTrip || trip > best-best/4 {
			break
		}
		best = trip
	}
	return nil
}

// readAgain reads the clock if the last reading is old, and no other call is about to. If that fails, the estimate stays.
func (e *Estimate) readAgain(ctx context.Context, r Reader) {
	checked := e.checked.Load()
	if time.Since(*checked) < maxReadingAge {
		return
	}
	asked := time.Now()
	if !e.checked.CompareAndSwap(checked, &asked) {
		return
	}
	if now, err := r.Now(ctx); err == nil {
		e.Set(now, asked)
	}
}

// Until implements Clock.
func (e *Estimate) Until(t time.Time) time.Duration {
	doubt := e.Doubt()
	return max(0, min(t.Sub(e.Now()), math.MaxInt64-doubt)+doubt) // Sub saturates at 292 years
}

// Doubt implements Clock.
func (e *Estimate) Doubt() time.Duration { return e.last.Load().doubt(time.Now()) }

// CallAt implements Clock.
func (e *Estimate) CallAt(t time.Time, f func()) Timer { return time.AfterFunc(e.Until(t), f) }

// AfterFunc implements Clock. It does not use the estimate, since a duration is the same on every clock.
func (e *Estimate) AfterFunc(d time.Duration, f func()) ResettableTimer { return time.AfterFunc(d, f) }

// ArrivedAt implements Clock. The database's own time is exact, so the estimate is not used.
func (e *Estimate) ArrivedAt() time.Time { return time.Time{} }

// Manual implements Clock.
func (e *Estimate) Manual() bool { return false }
