package queues

import (
	"maps"
	"sync"
	"time"
)

// depthShare is the part of the free depth that a process may use without another reading: 1/depthShare. So ten processes
// that start as many runs as they can still keep the bound, and a queue that is nearly full is read for each start.
const depthShare = 10

// maxDepthReadings is how many readings are kept before those that no longer count are dropped.
const maxDepthReadings = 512

// DepthCache holds what this process knows of the depths of queues. Reading a depth costs a row for each delayed run, so it is not
// read for each start while much of the queue is free.
type DepthCache struct {
	mu       sync.Mutex
	readings map[string]*depthReading // by queue
}

// depthReading is the latest reading of the depth of a queue. It counts for rowsFreshFor.
type depthReading struct {
	began           time.Time
	maxDepth        int // the Depth of the queue
	remainingStarts int // how many further runs this process may start
}

// TryTakeFreePlaces reports whether n further runs can be started without another reading, and counts them.
func (d *DepthCache) TryTakeFreePlaces(queue string, most, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.readings[queue]
	if r == nil || r.maxDepth != most || r.remainingStarts < n || time.Since(r.began) >= rowsFreshFor {
		return false
	}
	r.remainingStarts -= n
	return true
}

// RecordReading records a reading of the depth of a queue, which began at the given time. maxDepth is the Depth of the queue, and
// furtherRuns is how many further runs all processes may start in it.
func (d *DepthCache) RecordReading(queue string, began time.Time, maxDepth, furtherRuns int) {
	d.setReading(queue, depthReading{began: began, maxDepth: maxDepth, remainingStarts: furtherRuns / depthShare})
}

// setReading records a reading.
func (d *DepthCache) setReading(queue string, r depthReading) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.readings == nil {
		d.readings = make(map[string]*depthReading)
	}
	if len(d.readings) >= maxDepthReadings {
		maps.DeleteFunc(d.readings, func(_ string, r *depthReading) bool { return time.Since(r.began) >= rowsFreshFor })
	}
	d.readings[queue] = &r
}
