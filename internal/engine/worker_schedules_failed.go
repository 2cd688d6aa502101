package engine

import (
	"slices"
	"time"
)

// longestFireRetry is the longest wait before a schedule that could not be fired is tried again.
const longestFireRetry = 30 * time.Second

// failedSchedules are the due schedules that this worker could not fire. They wait longer after each failure, so that any number of
// them holds up no others. The times are those of this process's clock.
type failedSchedules map[string]failedSchedule

type failedSchedule struct {
	wait  time.Duration
	again time.Time
}

// readyToRetry returns those of the due schedules that are to be fired now, and forgets those that are no longer due.
func (f failedSchedules) readyToRetry(due []string, now time.Time) []string {
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
	return slices.DeleteFunc(due, func(name string) bool { return f[name].again.After(now) })
}

// noteFailure records a failure.
func (f failedSchedules) noteFailure(name string, now time.Time) {
	s := f[name]
	s.wait = min(max(2*s.wait, firstClaimRetryDelay), longestFireRetry)
	s.again = now.Add(s.wait)
	f[name] = s
}

// nextRetryIn returns the time until the first of them is tried again, but at most longest.
func (f failedSchedules) nextRetryIn(now time.Time, longest time.Duration) time.Duration {
	for _, s := range f {
		longest = min(longest, s.again.Sub(now))
	}
	return longest
}
