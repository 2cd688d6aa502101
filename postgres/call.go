package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// silentFor is how long a call may go without an answer before the hosts are looked at.
const silentFor = time.Second

// mostPatience is the longest that a flush waits for its answer where there are several hosts.
const mostPatience = 30 * time.Second

// errSilent says that a host took too long.
var errSilent = errors.New("the host did not answer in time")

// errMoved says that another host takes writes now.
var errMoved = errors.New("another host takes writes now")

// call is something under way on a host.
type call struct {
	where  string // empty: it waits for a connection
	cancel context.CancelCauseFunc
	moved  atomic.Bool
	doubt  *time.Timer // nil: its silence means nothing
	silent bool        // for longer than silentFor
}

// moved says of a call that ended since another host takes writes why it did.
func moved(err error) error { return fmt.Errorf("%w: %w: %v", store.ErrUnavailable, errMoved, err) }

// track notes a call on a host, whose context ends when another host takes writes. Long ones are
// those of users, which may take their time; any other that has no answer for a second has the
// hosts looked at. The function returned ends the call, and reports whether it was moved.
func (h *hosts) track(ctx context.Context, where string, long bool) (_ context.Context, done func() (moved bool)) {
	if h == nil {
		return ctx, func() bool { return false }
	}
	c := &call{where: where}
	ctx, c.cancel = context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flights[c] = struct{}{}
	if !long {
		c.doubt = time.AfterFunc(silentFor, func() { h.doubt(c) })
	}
	return ctx, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.doubt != nil {
			c.doubt.Stop()
		}
		delete(h.flights, c)
		c.cancel(nil)
		return c.moved.Load()
	}
}

// doubt has the hosts looked at for a call that has no answer, now and each second from now on.
func (h *hosts) doubt(c *call) {
	h.mu.Lock()
	_, open := h.flights[c]
	if open {
		c.silent = true
		c.doubt.Reset(silentFor)
	}
	h.mu.Unlock()
	if open {
		h.look(nil, c.where)
	}
}

// patient bounds a flush: a connection on which nothing comes back any more is given up soon. Each flush
// that ended so doubles the time for the next, since large ones, and standbys that are away, take theirs.
func (h *hosts) patient(ctx context.Context) (_ context.Context, done func(*error)) {
	if h == nil {
		return ctx, func(*error) {}
	}
	h.mu.Lock()
	limit := max(silentFor, h.waits)
	h.mu.Unlock()
	bounded, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	return bounded, func(err *error) {
		defer cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		switch {
		case *err == nil:
			h.waits = 0
		case bounded.Err() != nil && ctx.Err() == nil:
			h.waits = min(2*limit, mostPatience)
			*err = fmt.Errorf("%w (%v): %v", store.ErrUnavailable, limit, *err)
		}
	}
}
