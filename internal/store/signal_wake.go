package store

import "time"

// WakeTime returns the time at which the signal makes the waiting run due: CreatedAt, or ArrivedAt if a test has set it to an earlier time.
// While the clock of a test stands still, the engine still gives the signals that are sent one after the other increasing CreatedAt times,
// which are later than that clock. Without ArrivedAt, the test would have to move its clock before the run receives the signal.
func (s *SignalWrite) WakeTime() time.Time {
	if !s.ArrivedAt.IsZero() && s.ArrivedAt.Before(s.CreatedAt) {
		return s.ArrivedAt
	}
	return s.CreatedAt
}
