package durable

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Ctx is what a workflow function works with: the durable calls, and a
// context.Context. Its Done closes when the run leaves this process or must end, and
// context.Cause says why: ErrShutdown, ErrLeaseLost, ErrParked or ErrPaused, ErrCancelled,
// ErrTerminated or ErrTimeout.
//
// It is good for one execution of one run, in any of its goroutines.
type Ctx struct {
	context.Context
	scope      *engine.Scope
	maxPayload int
}

// Deadline returns when the run's [Timeout] is over, by this process's clock, or the earlier
// deadline of the context that the Ctx is made from. It follows [Engine.SetTimeout]; a context that
// was derived before keeps the deadline that it saw.
func (c *Ctx) Deadline() (time.Time, bool) { return c.scope.Deadline() }

// calls is where durable calls are made.
func (c *Ctx) calls() *engine.Scope { return c.scope.With(c.Context) }

// Value returns what the context that the Ctx is made from returns.
func (c *Ctx) Value(key any) any {
	if key == (engine.WorkflowKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}

// limit is how many bytes an argument of the call with this name may take. What is recorded was accepted under
// the bound of its time.
func (c *Ctx) limit(name string) int {
	if c.scope.Known(name) {
		return math.MaxInt
	}
	return c.maxPayload
}

// ID is what the run is addressed by: the caller's ID of a root run; the UUID of a child, and of a
// root that was started without an ID.
func (c *Ctx) ID() string { return c.scope.ID() }

// RunID is the run's UUID in text form.
func (c *Ctx) RunID() string { return c.scope.RunID().String() }

// Replaying reports whether this execution has so far only repeated what history
// holds. Use it for nothing that decides what the workflow does.
func (c *Ctx) Replaying() bool { return c.scope.Replaying() }

// Logger is the engine's logger with the run's names on each line. It drops the lines
// of a replay: they were written by the execution before.
func (c *Ctx) Logger() *slog.Logger {
	return slog.New(&liveHandler{c.scope.Logger().Handler(), c.scope})
}

// liveHandler passes records on unless the run is replaying.
type liveHandler struct {
	slog.Handler
	scope *engine.Scope
}

func (h *liveHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.scope.Replaying() && h.Handler.Enabled(ctx, level)
}

func (h *liveHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &liveHandler{h.Handler.WithAttrs(attrs), h.scope}
}

func (h *liveHandler) WithGroup(name string) slog.Handler {
	return &liveHandler{h.Handler.WithGroup(name), h.scope}
}

// IdempotencyKey is, inside a step's function, a text that is the same in every
// attempt and every process, and no other step has: give it to the outside systems
// that the step calls, since a step can run more than once before it is
// checkpointed. It panics if it is given the workflow's Ctx, or a context derived from it, in place
// of the context that the step's function gets: the step, or the workflow, fails with ErrOutsideStep, and nothing
// is sent with an empty key. With any other context outside a step it is empty.
func IdempotencyKey(ctx context.Context) string { return engine.IdempotencyKey(ctx) }

// Attempt is, inside a step's function, the number of the attempt, from 1, counted
// over all processes. Outside a step it is zero.
func Attempt(ctx context.Context) int { return engine.Attempt(ctx) }

// site is where the user's code called the exported function that calls site, with skip
// functions in between.
func site(skip int) uintptr {
	var pcs [1]uintptr
	runtime.Callers(3+skip, pcs[:])
	return pcs[0]
}
