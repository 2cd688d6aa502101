package durable

import (
	"fmt"
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// RetryPolicy says when a failed attempt of a step is followed by another. Attempts,
// and the time of the next one, are in the database: a series continues after a
// crash where it stood. An attempt whose process died counts; if it was the last one
// allowed, the step fails with ErrOutcomeUnknown. The zero value never retries, and is
// what a step has unless asked; such a step does run again if its process died.
//
// The waits are those of cenkalti/backoff: exponential, with jitter.
type RetryPolicy struct {
	// Initial is the wait after the first failure. Zero, with more than one attempt
	// allowed, tries again at once.
	Initial time.Duration
	// Max bounds each wait. Zero: no bound but a year.
	Max time.Duration
	// Multiplier is the growth from one wait to the next. Zero and one: fixed waits.
	Multiplier float64
	// Jitter spreads each wait at random by up to this part of it, from 0 to 1.
	Jitter float64
	// Attempts is the most attempts that are made, the first included. Zero, in the zero policy only: one.
	// Unlimited: until Permanent, or the TotalTimeout.
	Attempts int
}

// Unlimited as RetryPolicy.Attempts sets no bound on them.
const Unlimited = math.MaxInt32

// longest is where waits stop growing if a policy sets no maximum.
const longest = 365 * 24 * time.Hour

// NoRetry is the policy of a step unless it is given another.
var NoRetry = RetryPolicy{}

// Fixed makes up to attempts attempts, the same wait apart.
func Fixed(wait time.Duration, attempts int) RetryPolicy {
	return RetryPolicy{Initial: wait, Attempts: attempts}
}

// Exponential makes up to attempts attempts; the wait begins with initial, doubles each
// time up to longest, and is spread by half of it.
func Exponential(initial, longest time.Duration, attempts int) RetryPolicy {
	return RetryPolicy{Initial: initial, Max: longest, Multiplier: 2, Jitter: 0.5, Attempts: attempts}
}

// check answers ErrInvalidConfig for a policy that cannot be meant.
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

// next is how long to wait after the given attempt has failed, or false for no more.
func (p RetryPolicy) next(attempt int32) (time.Duration, bool) {
	if int(attempt) >= max(p.Attempts, 1) {
		return 0, false
	}
	if p.Initial == 0 {
		return 0, true
	}
	most := p.Max
	if most == 0 {
		most = longest
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
		// Beyond this many steps the wait no longer grows.
		growing := math.Ceil(math.Log(float64(most)/float64(p.Initial)) / math.Log(p.Multiplier))
		for range int(min(float64(attempt-1), growing)) {
			wait = b.NextBackOff()
		}
	}
	if wait < 0 { // a wait of centuries, spread, overflowed
		wait = most
	}
	return min(wait, most), true
}
