// Package wakeup has what the loops of a worker sleep with: [Chan] wakes a loop early, and [SleepCtx] ends with a context. The package
// imports only the standard library.
package wakeup

import (
	"context"
	"time"
)

// Chan wakes the one goroutine that receives from it. If Notify is called several times before the
// goroutine receives, the goroutine wakes once.
type Chan chan struct{}

// NewChan returns a Chan that nobody has notified yet.
func NewChan() Chan { return make(Chan, 1) }

// Notify wakes the goroutine that receives from the channel, now or when it receives next. Notify does not block.
func (c Chan) Notify() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// SleepCtx waits for d, and reports false if ctx ended first.
func SleepCtx(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
