package durable

import (
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// RetryPolicy determines when a failed attempt of a step is followed by another attempt. The number of attempts and the time of
// the next attempt are recorded, so that after a crash the series continues where it stopped. An attempt whose process died
// counts as an attempt. If the process died during the last attempt that the policy allows, the step fails with
// [ErrOutcomeUnknown].
//
// With the zero RetryPolicy, which is the default, a failed attempt is not retried. A step with the zero RetryPolicy is still
// executed again if its process died.
//
// The waits between attempts are exponential, with jitter, and are computed by github.com/cenkalti/backoff.
type RetryPolicy struct {
	// Initial is the wait after the first failure. If Initial is zero, each further attempt begins at once.
	Initial time.Duration
	// Max is the longest wait between two attempts. The default Max is one year.
	Max time.Duration
	// Multiplier is the factor from one wait to the next, at least 1. If Multiplier is zero or 1, all waits are Initial.
	Multiplier float64
	// Jitter is the fraction, from 0 to 1, by which each wait is changed at random, up or down.
	Jitter float64
	// Attempts is the largest number of attempts, including the first one. Attempts may be zero only in the zero RetryPolicy,
	// and then means one attempt. With [Unlimited] Attempts, a step is retried until its error is [Permanent], or
	// [TotalTimeout] is over.
	Attempts int
}

// Unlimited is the value of RetryPolicy.Attempts for any number of attempts.
const Unlimited = math.MaxInt32

// defaultMaxWait is the longest wait of a policy without a maximum.
const defaultMaxWait = 365 * 24 * time.Hour

// NoRetry is the default RetryPolicy, with a single attempt.
var NoRetry = RetryPolicy{}

// Fixed returns a RetryPolicy with the given number of attempts, and the same wait after each failure.
func Fixed(wait time.Duration, attempts int) RetryPolicy {
	return RetryPolicy{Initial: wait, Attempts: attempts}
}

// Exponential returns a RetryPolicy with the given number of attempts, and growing waits. The first wait between attempts is
// initial; each further wait is twice as long as the previous one, up to longest. Each wait is then changed at random by up to
// half of its length.
func Exponential(initial, longest time.Duration, attempts int) RetryPolicy {
	return RetryPolicy{Initial: initial, Max: longest, Multiplier: 2, Jitter: 0.5, Attempts: attempts}
}

// check returns ErrInvalidConfig for a policy that contradicts itself.
func (p RetryPolicy) check() error {
	switch {
	case p.Initial < 0 || p.Max < 0:
		return fmt.Errorf("%w: a retry policy with a negative wait (initial %v, max %v)", ErrInvalidConfig, p.Initial, p.Max)
	case p.Attempts < 0:
		return fmt.Errorf("%w: a retry policy with %d attempts: use durable.Unlimited for no bound", ErrInvalidConfig, p.Attempts)
	case p.Attempts == 0 && p != (RetryPolicy{}):
		return fmt.Errorf("%w: a retry policy with waits (%v) and no Attempts makes one attempt: set Attempts, or durable.Unlimited", ErrInvalidConfig, max(p.Initial, p.Max))
	case p.Multiplier != 0 && !(p.Multiplier >= 1) || math.IsInf(p.Multiplier, 0):
		return fmt.Errorf("%w: a retry policy with multiplier %v: it must be at least 1", ErrInvalidConfig, p.Multiplier)
	case !(p.Jitter >= 0 && p.Jitter <= 1):
		return fmt.Errorf("%w: a retry policy with jitter %v: it must be from 0 to 1", ErrInvalidConfig, p.Jitter)
	}
	return nil
}

// waitAfter returns the wait after the given attempt has failed, or false if it was the last one.
func (p RetryPolicy) waitAfter(attempt int32) (time.Duration, bool) {
	if int(attempt) >= max(p.Attempts, 1) {
		return 0, false
	}
	if p.Initial == 0 {
		return 0, true
	}
	most := p.Max
	if most == 0 {
		most = defaultMaxWait
	}
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(p.Initial, most)),
		backoff.WithMultiplier(max(p.Multiplier, 1)),
		backoff.WithMaxInterval(most),
		backoff.WithRandomizationFactor(p.Jitter),
		backoff.WithMaxElapsedTime(0),
	)
	wait := b.NextBackOff()
	if p.Multiplier > 1 {
		// After this number of failures the wait has reached its maximum.
		growing := math.Ceil(math.Log(float64(most)/float64(p.Initial)) / math.Log(p.Multiplier))
		for range int(min(float64(attempt-1), growing)) {
			wait = b.NextBackOff()
		}
	}
	if wait < 0 { // jitter made a wait of centuries overflow
		wait = most
	}
	return min(wait, most), true
}
