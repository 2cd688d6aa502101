package clock

import (
	"context"
	"sync/atomic"
	"time"
)

// ManualClock is a clock that a test moves.
type ManualClock interface {
	// Now returns the time in UTC, in whole microseconds. It never goes back.
	Now() time.Time
	// CallAt calls f, which must not block, once due has come. Stop of the Timer reports whether it prevented
	// the call of f.
	CallAt(due time.Time, f func()) Timer
}

// FromManualClock returns a Clock that shows the time of m, which is exact. Readings of the database's clock
// have no effect.
func FromManualClock(m ManualClock) Clock { return manualAdapter{m} }

// Fixed returns a Clock that always shows the time at. Its timers never fire.
func Fixed(at time.Time) Clock {
	return FromManualClock(fixedClock(at.UTC().Truncate(time.Microsecond)))
}

type fixedClock time.Time

// Now implements ManualClock.
func (c fixedClock) Now() time.Time { return time.Time(c) }

// CallAt implements ManualClock. The time never comes, so f is not called.
func (fixedClock) CallAt(time.Time, func()) Timer { return new(idleTimer) }

// idleTimer is a timer that waits until it is stopped.
type idleTimer struct{ stopped atomic.Bool }

// Stop implements Timer.
func (t *idleTimer) Stop() bool { return !t.stopped.Swap(true) }

// manualAdapter makes a Clock of a ManualClock.
type manualAdapter struct{ m ManualClock }

// EnsureReading implements Clock. The time of a ManualClock is always known.
func (manualAdapter) EnsureReading(context.Context, Reader) error { return nil }

// AddReading implements Clock.
func (manualAdapter) AddReading(time.Time, time.Time) {}

// Now implements Clock.
func (a manualAdapter) Now() time.Time { return a.m.Now() }

// MaxError implements Clock.
func (manualAdapter) MaxError() time.Duration { return 0 }

// Until implements Clock.
func (a manualAdapter) Until(t time.Time) time.Duration { return max(0, t.Sub(a.m.Now())) }

// CallAt implements Clock.
func (a manualAdapter) CallAt(t time.Time, f func()) Timer { return a.m.CallAt(t, f) }

// AfterFunc implements Clock.
func (a manualAdapter) AfterFunc(d time.Duration, f func()) ResettableTimer {
	t := &manualTimer{m: a.m, f: f}
	t.schedule(d)
	return t
}

// RowTimeOverride implements Clock. The database's own time is not that of the test.
func (a manualAdapter) RowTimeOverride() time.Time { return a.m.Now() }

// IsManual implements Clock.
func (manualAdapter) IsManual() bool { return true }

// manualTimer is a timer of a ManualClock that can be reset.
type manualTimer struct {
	Timer
	m ManualClock
	f func()
}

func (t *manualTimer) schedule(d time.Duration) { t.Timer = t.m.CallAt(t.m.Now().Add(d), t.f) }

// Reset implements ResettableTimer.
func (t *manualTimer) Reset(d time.Duration) bool {
	active := t.Stop()
	t.schedule(d)
	return active
}
