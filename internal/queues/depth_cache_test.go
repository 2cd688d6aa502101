package queues

import (
	"fmt"
	"testing"
	"time"
)

// The readings of queues that are no longer used are dropped, and those that still count are kept.
func TestOldReadingsOfDepthsAreDropped(t *testing.T) {
	var d DepthCache
	for i := range 10 * maxDepthReadings {
		d.setReading(fmt.Sprint("tenant ", i), depthReading{began: time.Now().Add(-time.Hour), maxDepth: 10, remainingStarts: 1})
	}
	if n := len(d.readings); n > maxDepthReadings {
		t.Errorf("%d readings are kept, want at most %d", n, maxDepthReadings)
	}
	for i := range 2 * maxDepthReadings {
		d.setReading(fmt.Sprint("queue ", i), depthReading{began: time.Now().Add(time.Hour), maxDepth: 10, remainingStarts: 1})
	}
	for i := range 2 * maxDepthReadings {
		if !d.TryTakeFreePlaces(fmt.Sprint("queue ", i), 10, 1) {
			t.Fatalf("the reading of queue %d was dropped", i)
		}
	}
}
