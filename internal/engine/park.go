package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// settle is how long a run must have had nothing running before it may leave
// memory: between two durable calls, the workflow's own code runs unseen.
const settle = 100 * time.Millisecond

// idle watches whether a run has anything to do. A run with nothing running, and no
// wait due soon, leaves memory, and its row says when to come back.
type idle struct {
	r       *run
	mu      sync.Mutex
	active  int // durable calls that execute or write
	waits   map[*wait]struct{}
	timer   *time.Timer
	stopped bool
}

// wait is one durable call that waits for a time.
type wait struct{ due time.Time }

// busy says that a durable call begins to execute; done ends it.
func (i *idle) busy() {
	i.mu.Lock()
	i.active++
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

// watch starts the settling time if the run only waits. i.mu is held.
func (i *idle) watch() {
	if i.active == 0 && len(i.waits) > 0 && i.timer == nil && !i.stopped {
		i.timer = time.AfterFunc(min(settle, i.r.e.cfg.ParkAfter), i.park)
	}
}

// park suspends the run if it still only waits, and for long.
func (i *idle) park() {
	i.mu.Lock()
	i.timer = nil
	if i.active > 0 || len(i.waits) == 0 || i.stopped {
		i.mu.Unlock()
		return
	}
	var first time.Time
	for w := range i.waits {
		if first.IsZero() || w.due.Before(first) {
			first = w.due
		}
	}
	i.mu.Unlock()
	if i.r.e.clock.until(first) > i.r.e.cfg.ParkAfter {
		i.r.suspend(suspension{cause: ErrParked, status: store.Waiting, wakeAt: first})
	}
}

// until waits for a time on the database's clock. It answers ErrSuspended if the run
// leaves first. The caller is not busy meanwhile.
func (i *idle) until(due time.Time) error {
	w := &wait{due: due}
	i.mu.Lock()
	if i.waits == nil {
		i.waits = make(map[*wait]struct{})
	}
	i.waits[w] = struct{}{}
	i.watch()
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		delete(i.waits, w)
		i.mu.Unlock()
	}()
	t := time.NewTimer(i.r.e.clock.until(due))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-i.r.ctx.Done():
		return ErrSuspended
	}
}

// stop ends the watch: the workflow function has returned.
func (i *idle) stop() {
	i.mu.Lock()
	i.stopped = true
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	i.mu.Unlock()
}

// nested reports whether this durable call is made from inside another one's
// function. Only when something executes is the stack worth a look.
func (i *idle) nested() bool {
	i.mu.Lock()
	active := i.active
	i.mu.Unlock()
	return active > 0 && inStep()
}
