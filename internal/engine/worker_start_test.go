package engine

import (
	"testing"
	"time"
)

// A worker whose start is in the future, because the clock was set back, counts as started before all others; a correction of the
// estimate of the clock changes nothing.
func TestAWorkerThatStartedBeforeTheClockWasSetBackCountsAsTheOldest(t *testing.T) {
	now := time.Unix(1e9, 0)
	for after, want := range map[time.Duration]time.Time{
		-time.Hour: now.Add(-time.Hour), 50 * time.Millisecond: now.Add(50 * time.Millisecond), time.Hour: time.Unix(0, 0),
	} {
		w := &worker{started: now.Add(after)}
		if got := w.comparableStartTime(now); !got.Equal(want) {
			t.Errorf("a start %v after the present: %v, want %v", after, got, want)
		}
	}
}
