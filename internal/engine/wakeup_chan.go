package engine

import (
	"context"
	"time"
)

// wakeupChan wakes the one goroutine that receives from it. If notify is called several times before the
// goroutine receives, the goroutine wakes once.
type wakeupChan chan struct{}

func newWakeupChan() wakeupChan { return make(wakeupChan, 1) }

func (b wakeupChan) notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// awaitNotificationOrDue waits until n is notified, for at most the duration wait, and not past the time next of the database. A zero next
// means that nothing is due. It also returns when ctx ends.
func (w *worker) awaitNotificationOrDue(ctx context.Context, n wakeupChan, wait time.Duration, next time.Time) {
	if !next.IsZero() {
		wait = min(wait, w.e.clock.Until(next))
	}
	t := time.NewTimer(max(wait, time.Millisecond))
	defer t.Stop()
	select {
	case <-n:
	case <-t.C:
	case <-ctx.Done():
	}
}
