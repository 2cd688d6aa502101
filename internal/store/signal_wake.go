package store

import "time"

// WakeTime returns the time at which the signal makes the waiting run due: CreatedAt, or ArrivedAt if a test has set it to an earlier time.
// Signals sent one after the other get increasing times, although the clock of a test stands still. The test would have to move that clock
// before the run receives the signal.
func (s *SignalWrite) WakeTime() time.Time {
	if !s.ArrivedAt.IsZero() && s.ArrivedAt.Before(s.CreatedAt) {
		return s.ArrivedAt
	}
	return s.CreatedAt
}
