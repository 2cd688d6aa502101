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
	lastReading atomic.Pointer[reading]
	checked     atomic.Pointer[time.Time] // when the database's clock was read last, whether that reading was stored or not
}

type reading struct {
	databaseTime, localTime time.Time
	roundTrip               time.Duration // the round trip of the query; the reading may be wrong by half of it
}

const (
	inverseMaxDrift = 10_000                 // two clocks drift apart by at most one part in this many
	maxReadings     = 4                      // how often Ensure reads the clock at most, to get a good first reading
	goodRoundTrip   = 500 * time.Microsecond // a round trip at which Ensure stops: opening a connection takes far longer
	maxReadingAge   = time.Minute            // the age of the last reading at which Ensure reads the clock again
)

// maxError returns how wrong the reading may be at the given local time.
func (r *reading) maxError(at time.Time) time.Duration {
	return r.roundTrip/2 + at.Sub(r.localTime)/inverseMaxDrift
}

// Now implements Clock.
func (e *Estimate) Now() time.Time {
	r := e.lastReading.Load()
	return r.databaseTime.Add(time.Since(r.localTime)).Truncate(time.Microsecond)
}

// AddReading implements Clock. It assumes that the database read its clock half a round trip after the query was
// sent. It discards a reading that is less certain than the present estimate, since it would make timers
// early or late under load. But it stores a reading that cannot be true together with the estimate: then a
// clock has jumped, or a machine has slept.
func (e *Estimate) AddReading(database, sentAt time.Time) {
	local := time.Now()
	e.checked.Store(&local)
	next := &reading{databaseTime: database.Add(local.Sub(sentAt) / 2).UTC(), localTime: local, roundTrip: local.Sub(sentAt)}
	if old := e.lastReading.Load(); old != nil {
		known, doubt := old.maxError(local), next.maxError(local)
		apart := next.databaseTime.Sub(old.databaseTime.Add(local.Sub(old.localTime))).Abs()
		if doubt > known && apart <= known+doubt {
			return
		}
	}
	e.lastReading.Store(next)
}

// EnsureReading implements Clock. It repeats a slow read while the next read may be faster: the first query may
// have to wait for a connection, and half of that wait would be doubt. One call a minute reads the clock again if no heartbeat
// does, because a clock may have been set, or a machine may have slept.
func (e *Estimate) EnsureReading(ctx context.Context, r Reader) error {
	if e.lastReading.Load() != nil {
		e.readAgain(ctx, r)
		return nil
	}
	best := time.Duration(math.MaxInt64)
	for range maxReadings {
		asked := time.Now()
		now, err := r.Now(ctx)
		if err != nil && e.lastReading.Load() == nil {
			return fmt.Errorf("read the database's clock: %w", err)
		}
		if err != nil {
			break // an earlier reading is good enough
		}
		trip := time.Since(asked)
		e.AddReading(now, asked)
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
		e.AddReading(now, asked)
	}
}

// Until implements Clock.
func (e *Estimate) Until(t time.Time) time.Duration {
	doubt := e.MaxError()
	return max(0, min(t.Sub(e.Now()), math.MaxInt64-doubt)+doubt) // Sub saturates at 292 years
}

// MaxError implements Clock.
func (e *Estimate) MaxError() time.Duration { return e.lastReading.Load().maxError(time.Now()) }

// CallAt implements Clock.
func (e *Estimate) CallAt(t time.Time, f func()) Timer { return time.AfterFunc(e.Until(t), f) }

// AfterFunc implements Clock. It does not use the estimate, since a duration is the same on every clock.
func (e *Estimate) AfterFunc(d time.Duration, f func()) ResettableTimer { return time.AfterFunc(d, f) }

// RowTimeOverride implements Clock. The database's own time is exact, so the estimate is not used.
func (e *Estimate) RowTimeOverride() time.Time { return time.Time{} }

// IsManual implements Clock.
func (e *Estimate) IsManual() bool { return false }
