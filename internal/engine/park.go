package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// settle is how long a run must have had nothing running before it may leave memory:
// between two durable calls, the workflow's own code runs unseen. A run that has never
// done two things at once has but one goroutine, as far as is known, and settles sooner.
const (
	settle      = 100 * time.Millisecond
	settleAlone = 5 * time.Millisecond
)

// idle watches whether a run has anything to do. A run with nothing running, and no
// wait due soon, leaves memory, and its row says when to come back.
type idle struct {
	r       *run
	mu      sync.Mutex
	active  int           // durable calls that execute or write
	longer  time.Duration // to settle than others
	crowded bool          // it has done two things at once
	waits   map[*wait]struct{}
	timer   *time.Timer
	stopped bool
}

// wait is one durable call that waits: for a time, or, with none, for somebody else.
type wait struct{ due time.Time }

// busy says that a durable call begins to execute; done ends it.
func (i *idle) busy() {
	i.mu.Lock()
	i.active++
	i.crowded = i.crowded || i.active+len(i.waits) > 1
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	i.mu.Unlock()
}

func (i *idle) done() {
	i.mu.Lock()
	i.active--
	i.watch()
	i.mu.Unlock()
}

// branched says that the run has goroutines of its own.
func (i *idle) branched() {
	i.mu.Lock()
	i.crowded = true
	i.mu.Unlock()
}

// watch starts the settling time if the run only waits. i.mu is held.
func (i *idle) watch() {
	if i.active != 0 || len(i.waits) == 0 || i.timer != nil || i.stopped || i.r.e.clock.test != nil {
		return // with a test's clock the test says when; see rest.go
	}
	after := settleAlone
	if i.crowded {
		after = settle
	}
	after = max(after, i.longer)
	i.timer = time.AfterFunc(min(after, i.r.e.cfg.ParkAfter), i.park)
}

// park suspends the run if it still only waits, and for long.
func (i *idle) park() {
	i.mu.Lock()
	i.timer = nil
	if i.active > 0 || len(i.waits) == 0 || i.stopped {
		i.mu.Unlock()
		return
	}
	var first time.Time // zero: no time is waited for
	for w := range i.waits {
		if !w.due.IsZero() && (first.IsZero() || w.due.Before(first)) {
			first = w.due
		}
	}
	i.mu.Unlock()
	if i.r.isDoomed() {
		return // a compensation waits for its next attempt: with its cancel, or its time over, the run would be due again at once
	}
	if first.IsZero() || i.r.e.clock.until(first) > i.r.e.cfg.ParkAfter {
		i.r.suspend(suspension{cause: ErrParked, status: store.Waiting, wakeAt: first})
	}
}

// enter says that a durable call waits until due, or, if that is zero, for somebody
// else. The caller is not busy meanwhile, and calls leave after it.
func (i *idle) enter(due time.Time) *wait {
	w := &wait{due: due}
	i.mu.Lock()
	if i.waits == nil {
		i.waits = make(map[*wait]struct{})
	}
	i.waits[w] = struct{}{}
	i.crowded = i.crowded || i.active+len(i.waits) > 1
	i.watch()
	i.mu.Unlock()
	return w
}

func (i *idle) leave(w *wait) {
	i.mu.Lock()
	delete(i.waits, w)
	i.watch() // it may have been what kept the others in memory
	i.mu.Unlock()
}

// until waits for a time on the database's clock (zero: for none), or for news. It
// answers why the scope is left if that comes first. The caller is not busy meanwhile.
func (i *idle) until(s *Scope, due time.Time, news <-chan struct{}) error {
	defer i.leave(i.enter(due))
	var over <-chan time.Time
	if !due.IsZero() {
		passed := make(chan time.Time, 1)
		t := i.r.e.clock.at(due, func() { passed <- due })
		defer t.Stop()
		over = passed
	}
	select {
	case <-over:
		return nil
	case <-news:
		return nil
	case <-s.ctx.Done():
		return s.over()
	}
}

// stop ends the watch: the run is at its end.
func (i *idle) stop() {
	i.mu.Lock()
	i.stopped = true
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	i.mu.Unlock()
}

// executing reports whether a durable call executes or writes.
func (i *idle) executing() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.active > 0
}
