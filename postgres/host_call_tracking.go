package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// hostSearchAfterSilence is how long a call may go without a reply before the store searches for another host.
const hostSearchAfterSilence = time.Second

// maxFlushTimeout is the longest time that a flush waits for its reply if there are several hosts.
const maxFlushTimeout = 30 * time.Second

// errSilent is the cause of a flush that ended because its host did not reply in time.
var errSilent = errors.New("the host did not reply in time")

// errHostChanged is the cause of a call that was cancelled because another host takes writes now.
var errHostChanged = errors.New("another host takes writes now")

// hostCall is an operation in progress on a host.
type hostCall struct {
	address      string // the host's address; empty while it waits for a connection
	cancel       context.CancelCauseFunc
	hostChanged  atomic.Bool
	silenceTimer *time.Timer // nil if the call may take any time
	wasSilent    bool        // the call had no reply for hostSearchAfterSilence
}

// hostChangedError returns the error of a call that was cancelled because another host takes writes now.
func hostChangedError(err error) error {
	return fmt.Errorf("%w: %w: %v", store.ErrUnavailable, errHostChanged, err)
}

// trackCall registers a call on a host. The returned context ends when another host takes writes. A long call, such as a user's
// transaction, may take any time. If any other call has no reply for hostSearchAfterSilence, the store searches for the host that
// takes writes. The returned function ends the call, and reports whether it was cancelled because another host takes writes.
func (h *hostSelector) trackCall(ctx context.Context, where string, long bool) (_ context.Context, done func() (moved bool)) {
	if h == nil {
		return ctx, func() bool { return false }
	}
	c := &hostCall{address: where}
	ctx, c.cancel = context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openCalls[c] = struct{}{}
	if !long {
		c.silenceTimer = time.AfterFunc(hostSearchAfterSilence, func() { h.searchHostUntilReply(c) })
	}
	return ctx, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.silenceTimer != nil {
			c.silenceTimer.Stop()
		}
		delete(h.openCalls, c)
		c.cancel(nil)
		return c.hostChanged.Load()
	}
}

// searchHostUntilReply searches for the host that takes writes, now and each second until the call has a reply.
func (h *hostSelector) searchHostUntilReply(c *hostCall) {
	h.mu.Lock()
	_, open := h.openCalls[c]
	if open {
		c.wasSilent = true
		c.silenceTimer.Reset(hostSearchAfterSilence)
	}
	h.mu.Unlock()
	if open {
		h.startSearch(nil, c.address)
	}
}

// boundFlushDuration bounds a flush, so that a broken connection is abandoned soon. Each flush that exceeds the
// limit doubles the limit of the next one, because large flushes and absent standbys take longer; a
// success resets the limit. The returned function sets the error of a flush that exceeded its limit.
func (h *hostSelector) boundFlushDuration(ctx context.Context) (_ context.Context, done func(*error)) {
	if h == nil {
		return ctx, func(*error) {}
	}
	h.mu.Lock()
	limit := max(hostSearchAfterSilence, h.flushTimeout)
	h.mu.Unlock()
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	return bounded, func(err *error) {
		defer cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case *err == nil:
			h.flushTimeout = 0
		case bounded.Err() != nil && ctx.Err() == nil:
			h.flushTimeout = min(2*limit, maxFlushTimeout)
			*err = fmt.Errorf("%w (%v): %v", store.ErrUnavailable, limit, *err)
		}
	}
}
