package engine

import (
	"slices"
	"time"
)

// maxFireRetryDelay is the longest wait before a schedule that could not be fired is tried again.
const maxFireRetryDelay = 30 * time.Second

// failedSchedules are the due schedules that this worker could not fire. Each of them waits longer after each failure, so that
// failing schedules, however many, do not delay the others. The times are on this process's clock.
type failedSchedules map[string]failedSchedule

type failedSchedule struct {
	retryDelay time.Duration
	retryAt    time.Time
}

// filterReadyToFire returns the due schedules that must be fired now, and removes the schedules that are no longer due.
func (f failedSchedules) filterReadyToFire(due []string, now time.Time) []string {
	if len(f) == 0 {
		return due
	}
	still := make(map[string]bool, len(due))
	for _, name := range due {
		still[name] = true
	}
	for name := range f {
		if !still[name] {
			delete(f, name)
		}
	}
	return slices.DeleteFunc(due, func(name string) bool { return f[name].retryAt.After(now) })
}

// noteFailure records a failure.
func (f failedSchedules) noteFailure(name string, now time.Time) {
	s := f[name]
	s.retryDelay = min(max(2*s.retryDelay, firstClaimRetryDelay), maxFireRetryDelay)
	s.retryAt = now.Add(s.retryDelay)
	f[name] = s
}

// nextRetryIn returns the time until the first of them is tried again, but at most longest.
func (f failedSchedules) nextRetryIn(now time.Time, longest time.Duration) time.Duration {
	for _, s := range f {
		longest = min(longest, s.retryAt.Sub(now))
	}
	return longest
}
