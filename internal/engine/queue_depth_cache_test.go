package engine

import (
	"fmt"
	"testing"
	"time"
)

// The readings of queues that are no longer used are dropped, and those that still count are kept.
func TestOldReadingsOfDepthsAreDropped(t *testing.T) {
	var d queueDepths
	for i := range 10 * maxQueueDepthReadings {
		d.setReading(fmt.Sprint("tenant ", i), queueDepthReading{began: time.Now().Add(-time.Hour), maxDepth: 10, remainingStarts: 1})
	}
	if n := len(d.readings); n > maxQueueDepthReadings {
		t.Errorf("%d readings are kept, want at most %d", n, maxQueueDepthReadings)
	}
	for i := range 2 * maxQueueDepthReadings {
		d.setReading(fmt.Sprint("queue ", i), queueDepthReading{began: time.Now().Add(time.Hour), maxDepth: 10, remainingStarts: 1})
	}
	for i := range 2 * maxQueueDepthReadings {
		if !d.tryTakeFreePlaces(fmt.Sprint("queue ", i), 10, 1) {
			t.Fatalf("the reading of queue %d was dropped", i)
		}
	}
}
