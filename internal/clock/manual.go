package clock

import (
	"context"
	"time"
)

// Manual is a clock that a test moves.
type Manual interface {
	// Now returns the time in UTC, in whole microseconds. It never goes back.
	Now() time.Time
	// CallAt calls f, which must not block, once due has come. Stop of the Timer reports whether it prevented
	// the call of f.
	CallAt(due time.Time, f func()) Timer
}

// FromManual returns a Clock that shows the time of m, which is exact. Readings of the database's clock
// have no effect.
func FromManual(m Manual) Clock { return adapter{m} }

// adapter makes a Clock of a Manual.
type adapter struct{ m Manual }

// Ensure implements Clock. The time of a Manual is always known.
func (adapter) Ensure(context.Context, Reader) error { return nil }

// Set implements Clock.
func (adapter) Set(time.Time, time.Time) {}

// Now implements Clock.
func (a adapter) Now() time.Time { return a.m.Now() }

// Doubt implements Clock.
func (adapter) Doubt() time.Duration { return 0 }

// Until implements Clock.
func (a adapter) Until(t time.Time) time.Duration { return max(0, t.Sub(a.m.Now())) }

// CallAt implements Clock.
func (a adapter) CallAt(t time.Time, f func()) Timer { return a.m.CallAt(t, f) }

// AfterFunc implements Clock.
func (a adapter) AfterFunc(d time.Duration, f func()) ResettableTimer {
	t := &manualTimer{m: a.m, f: f}
	t.schedule(d)
	return t
}

// ArrivedAt implements Clock. The database's own time is not that of the test.
func (a adapter) ArrivedAt() time.Time { return a.m.Now() }

// Manual implements Clock.
func (adapter) Manual() bool { return true }

// manualTimer is a timer of a Manual that can be reset.
type manualTimer struct {
	Timer
	m Manual
	f func()
}

func (t *manualTimer) schedule(d time.Duration) { t.Timer = t.m.CallAt(t.m.Now().Add(d), t.f) }

// Reset implements ResettableTimer.
func (t *manualTimer) Reset(d time.Duration) bool {
	active := t.Stop()
	t.schedule(d)
	return active
}
