package durabletest

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// manualClock is an engine.Clock that stands still until moveTo moves it.
type manualClock struct {
	mu           sync.Mutex
	now          time.Time
	timers       timerHeap
	timerCount   uint64
	timerChanges uint64 // changes with every change of the timers
}

// clockTimer is a function that the clock calls at a time.
type clockTimer struct {
	clock          *manualClock
	due            time.Time
	creationNumber uint64
	callback       func()
	heapIndex      int // in the heap; -1 if the timer has fired or was stopped
}

func newClock(start time.Time) *manualClock {
	return &manualClock{now: start.UTC().Truncate(time.Microsecond)}
}

// Now implements engine.Clock.
func (c *manualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// CallAt implements engine.Clock. If the time has come already, CallAt calls f at once.
func (c *manualClock) CallAt(due time.Time, f func()) engine.Timer {
	c.mu.Lock()
	if c.now.Before(due) {
		defer c.mu.Unlock()
		return c.scheduleLocked(due, f)
	}
	c.mu.Unlock()
	f()
	return &clockTimer{clock: c, due: due, heapIndex: -1}
}

// schedule calls f when the clock is moved to the time or beyond. Unlike CallAt, schedule never calls f itself, not even if the
// time has come already.
func (c *manualClock) schedule(due time.Time, f func()) *clockTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scheduleLocked(due, f)
}

// scheduleLocked is schedule for callers that hold c.mu.
func (c *manualClock) scheduleLocked(due time.Time, f func()) *clockTimer {
	c.timerCount++
	c.timerChanges++
	t := &clockTimer{clock: c, due: due, creationNumber: c.timerCount, callback: f}
	heap.Push(&c.timers, t)
	return t
}

// Stop implements engine.Timer.
func (t *clockTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.heapIndex < 0 {
		return false
	}
	t.clock.timerChanges++
	heap.Remove(&t.clock.timers, t.heapIndex)
	return true
}

// snapshot returns the time, the time of the first timer (zero if there is none), and a number that changes whenever the
// timers change.
func (c *manualClock) snapshot() (now, due time.Time, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) > 0 {
		due = c.timers[0].due
	}
	return c.now, due, c.timerChanges
}

// moveTo sets the time, unless the clock is already later, and calls the functions that are due by then, in order.
func (c *manualClock) moveTo(to time.Time) {
	c.mu.Lock()
	if to.After(c.now) {
		c.now = to
	}
	var due []*clockTimer
	for len(c.timers) > 0 && !c.timers[0].due.After(c.now) {
		due = append(due, heap.Pop(&c.timers).(*clockTimer))
	}
	c.timerChanges++
	c.mu.Unlock()
	for _, t := range due {
		t.callback()
	}
}

// timerHeap is a heap, ordered by due time and then by creation.
type timerHeap []*clockTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].creationNumber < h[j].creationNumber
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	t := x.(*clockTimer)
	t.heapIndex = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.heapIndex = -1
	return t
}
