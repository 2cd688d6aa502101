package durable

import (
	"math"
	"testing"
	"time"
)

// For every policy that passes the check, no wait is negative, longer than its bound or overflows, and the number of attempts is
// bounded.
func FuzzBackoff(f *testing.F) {
	f.Add(int64(time.Second), int64(time.Minute), 2.0, 0.5, 10, int32(3))
	f.Add(int64(math.MaxInt64), int64(0), 1e300, 1.0, Unlimited, int32(math.MaxInt32-1))
	f.Add(int64(1), int64(math.MaxInt64), 1.0000001, 1.0, Unlimited, int32(1<<20))
	f.Add(int64(0), int64(0), 0.0, 0.0, 0, int32(1))
	f.Add(int64(1), int64(1), 2.0, 0.0, Unlimited, int32(1<<30))
	f.Fuzz(func(t *testing.T, initial, most int64, multiplier, jitter float64, attempts int, attempt int32) {
		p := RetryPolicy{Initial: time.Duration(initial), Max: time.Duration(most), Multiplier: multiplier, Jitter: jitter, Attempts: attempts}
		if p.check() != nil || attempt < 1 {
			return
		}
		began := time.Now()
		wait, more := p.waitAfter(attempt)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%+v after attempt %d: next took %v", p, attempt, took)
		}
		bound := p.Max
		if bound == 0 {
			bound = defaultMaxWait
		}
		switch {
		case more != (int(attempt) < max(p.Attempts, 1)):
			t.Errorf("%+v after attempt %d: another one: %v", p, attempt, more)
		case wait < 0 || wait > bound:
			t.Errorf("%+v after attempt %d: wait %v, want from 0 to %v", p, attempt, wait, bound)
		case !more && wait != 0:
			t.Errorf("%+v after attempt %d: no other attempt, and a wait of %v", p, attempt, wait)
		case more && p.Jitter == 0 && p.Multiplier <= 1 && wait != min(p.Initial, bound):
			t.Errorf("%+v after attempt %d: wait %v, want the initial one", p, attempt, wait)
		case more && p.Jitter == 0 && wait < min(p.Initial, bound):
			t.Errorf("%+v after attempt %d: wait %v, less than the initial one", p, attempt, wait)
		}
	})
}
