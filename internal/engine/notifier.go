package engine

import (
	"context"
	"time"
)

// notifier wakes the one goroutine that receives from it. If notify is called several times before the
// goroutine receives, the goroutine wakes once.
type notifier chan struct{}

func newNotifier() notifier { return make(notifier, 1) }

func (b notifier) notify() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// awaitNotificationOrDue waits until n is notified, for at most the duration wait, and not past the time next of the database. A zero next
// means that nothing is due. It also returns when ctx ends.
func (w *worker) awaitNotificationOrDue(ctx context.Context, n notifier, wait time.Duration, next time.Time) {
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
