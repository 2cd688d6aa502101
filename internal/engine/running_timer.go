package engine

import (
	"sync"
	"time"
)

// A process may stand still for a while: it has used up its share of the processor, its machine is moved, or it waits behind others. When it
// goes on, all timers that are overdue fire at once, and perhaps before the code that was about to make a call. So a timer that judges by a
// silence of a run that the run does nothing divides its time into parts, and begins each part when the one before is over. However long the
// process stands still, only one part passes.

const (
	maxRunningTimerParts = 10
	runningTimerPart     = 10 * time.Millisecond // the length of the parts of a timer that has fewer
)

// runningTimer calls a function after a time in which the process has not stood still. A nil runningTimer is a timer that was stopped.
type runningTimer struct {
	call func()

	mu    sync.Mutex
	timer *time.Timer
	part  time.Duration
	left  int // parts that are not over; zero: the timer has fired, or was stopped
}

// afterRunning calls the function after d. The function is not called after Stop.
func afterRunning(d time.Duration, call func()) *runningTimer {
	t := &runningTimer{call: call}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setParts(d)
	t.timer = time.AfterFunc(t.part, t.endPart)
	return t
}

// setParts divides the duration into parts.
func (t *runningTimer) setParts(d time.Duration) {
	t.left = int(min(max(d/runningTimerPart, 1), maxRunningTimerParts))
	t.part = (d + time.Duration(t.left-1)) / time.Duration(t.left)
}

// endPart ends one part of the time.
func (t *runningTimer) endPart() {
	t.mu.Lock()
	t.left--
	if t.left > 0 {
		t.timer.Reset(t.part)
	}
	isOver := t.left == 0
	t.mu.Unlock()
	if isOver {
		t.call()
	}
}

// restart begins the time anew, with the duration d, unless it is over.
func (t *runningTimer) restart(d time.Duration) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		t.setParts(d)
		t.timer.Reset(t.part)
	}
}

// stop stops the timer.
func (t *runningTimer) stop() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = 0
	t.timer.Stop()
}
