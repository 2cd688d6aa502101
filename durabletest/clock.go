package durabletest

import (
	"container/heap"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// clock is a time that stands still until it is moved.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	timers  timers
	seq     uint64
	changes uint64 // of the timers
}

// timer is one call that is due.
type timer struct {
	clock     *clock
	due       time.Time
	seq       uint64
	call      func()
	heapIndex int // in the heap; -1: it is not there any more
}

func newClock(start time.Time) *clock {
	return &clock{now: start.UTC().Truncate(time.Microsecond)}
}

// Now implements engine.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// StartClockAt implements engine.Clock. What is due already is called at once.
func (c *clock) At(due time.Time, f func()) engine.Timer {
	c.mu.Lock()
	if c.now.Before(due) {
		defer c.mu.Unlock()
		return c.scheduleLocked(due, f)
	}
	c.mu.Unlock()
	f()
	return &timer{clock: c, due: due, heapIndex: -1}
}

// schedule is At for what, if it is due already, is called when all rests.
func (c *clock) schedule(due time.Time, f func()) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scheduleLocked(due, f)
}

// scheduleLocked is then with c.mu held.
func (c *clock) scheduleLocked(due time.Time, f func()) *timer {
	c.seq++
	c.changes++
	t := &timer{clock: c, due: due, seq: c.seq, call: f}
	heap.Push(&c.timers, t)
	return t
}

// Stop implements engine.Timer.
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.heapIndex < 0 {
		return false
	}
	t.clock.changes++
	heap.Remove(&t.clock.timers, t.heapIndex)
	return true
}

// state is the present, when the first timer is due (zero: there is none), and a number
// that changes with the timers.
func (c *clock) state() (now, due time.Time, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) > 0 {
		due = c.timers[0].due
	}
	return c.now, due, c.changes
}

// moveTo sets the time, unless it is later already, and calls what is due by then, in order.
func (c *clock) moveTo(to time.Time) {
	c.mu.Lock()
	if to.After(c.now) {
		c.now = to
	}
	var due []*timer
	for len(c.timers) > 0 && !c.timers[0].due.After(c.now) {
		due = append(due, heap.Pop(&c.timers).(*timer))
	}
	c.changes++
	c.mu.Unlock()
	for _, t := range due {
		t.call()
	}
}

// timers is a heap by due time, then by the order in which they were made.
type timers []*timer

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

// Push implements heap.Interface.
func (h *timers) Push(x any) {
	t := x.(*timer)
	t.heapIndex = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.heapIndex = -1
	return t
}
