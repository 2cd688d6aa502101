package engine

import (
	"maps"
	"sync"
	"time"
)

// queueDepthShare is the part of the free depth that a process may use without another reading: 1/queueDepthShare. So ten processes
// that start as many runs as they can still keep the bound, and a queue that is nearly full is read for each start.
const queueDepthShare = 10

// maxQueueDepthReadings is how many readings are kept before those that no longer count are dropped.
const maxQueueDepthReadings = 512

// queueDepths holds what this process knows of the depths of queues. Reading a depth costs a row for each delayed run, so it is not
// read for each start while much of the queue is free.
type queueDepths struct {
	mu       sync.Mutex
	readings map[string]*queueDepthReading // by queue
}

// queueDepthReading is the latest reading of the depth of a queue. It counts for queueRowsFreshFor.
type queueDepthReading struct {
	began           time.Time
	maxDepth        int // the Depth of the queue
	remainingStarts int // how many further runs this process may start
}

// tryTakeFreePlaces reports whether n further runs can be started without another reading, and counts them.
func (d *queueDepths) tryTakeFreePlaces(queue string, most, n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.readings[queue]
	if r == nil || r.maxDepth != most || r.remainingStarts < n || time.Since(r.began) >= queueRowsFreshFor {
		return false
	}
	r.remainingStarts -= n
	return true
}

// setReading records a reading.
func (d *queueDepths) setReading(queue string, r queueDepthReading) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.readings == nil {
		d.readings = make(map[string]*queueDepthReading)
	}
	if len(d.readings) >= maxQueueDepthReadings {
		maps.DeleteFunc(d.readings, func(_ string, r *queueDepthReading) bool { return time.Since(r.began) >= queueRowsFreshFor })
	}
	d.readings[queue] = &r
}
