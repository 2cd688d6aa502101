package durable

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Ctx is the argument of a workflow function. A Ctx is a context.Context, and its methods are the durable calls. The Done
// channel of a Ctx closes when the run leaves this process or must end. If the run leaves the process, context.Cause of its Ctx
// returns [ErrShutdown], [ErrLeaseLost], [ErrParked], [ErrPaused] or [ErrHeld]. If the run must end, context.Cause of its Ctx
// returns [ErrCancelled], [ErrTerminated] or [ErrTimeout].
//
// A workflow function can replace the context in the field Context of its Ctx, for example to add a value or a deadline for the
// functions that it calls. The durable calls of the Ctx do not end with the replaced context.
//
// A Ctx is valid for one execution of one run, and is safe for concurrent use by the goroutines of that execution.
type Ctx struct {
	context.Context
	scope        *engine.Scope
	maxPayload   int
	stepDefaults *stepOptions // see Defaults; nil: none
}

// Deadline returns the time at which the run's [Timeout] is over, by this process's clock. [Engine.SetTimeout] changes the
// deadline of the Ctx, but not the deadline of contexts that were derived from the Ctx before. If the context in the field
// Context has an earlier deadline, Deadline returns the earlier deadline.
func (c *Ctx) Deadline() (time.Time, bool) {
	at, ok := c.scope.Deadline()
	if own, has := c.Context.Deadline(); has && (!ok || own.Before(at)) {
		return own, true
	}
	return at, ok
}

// callScope returns the scope in which the durable calls of the Ctx are made.
func (c *Ctx) callScope() *engine.Scope { return c.scope.WithNestingFromContext(c.Context) }

// withScope returns a Ctx whose durable calls are made in the scope.
func (c *Ctx) withScope(scope *engine.Scope) *Ctx {
	return &Ctx{Context: scope.Context(), scope: scope, maxPayload: c.maxPayload, stepDefaults: c.stepDefaults}
}

// Value returns the value that the context in the field Context of the Ctx has for the key.
func (c *Ctx) Value(key any) any {
	if key == (engine.ScopeContextKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}

// payloadLimit returns the largest size, in bytes, of an encoded argument of the call with this name. A recorded call has no bound,
// because its argument was accepted when it was recorded, perhaps with a larger Config.MaxPayload.
func (c *Ctx) payloadLimit(name string) int {
	if c.scope.HasCallBegun(name) {
		return math.MaxInt
	}
	return c.maxPayload
}

// ID returns the ID that addresses the run: the caller's ID of a root run, or the UUID of a child or of a root run that was
// started without an ID.
func (c *Ctx) ID() string { return c.scope.RunNameOrUUID() }

// RunID returns the run's UUID in text form.
func (c *Ctx) RunID() string { return c.scope.RunUUID().String() }

// Replaying reports whether all calls that this execution of the run has made so far were recorded by an earlier execution. The
// workflow function must not depend on the result of Replaying.
func (c *Ctx) Replaying() bool { return c.scope.IsReplaying() }

// Logger returns the engine's logger, with attributes that identify the run. During a replay the logger drops each log line that
// is followed by a recorded call of the same branch, because an earlier execution has already written the line. A line that
// follows the last recorded call of its branch is written, because it may be new. Such a line is written again each time the run
// is loaded into memory, until its branch records a further call.
func (c *Ctx) Logger() *slog.Logger {
	return slog.New(&replayFilterHandler{c.scope.UnfilteredLogger().Handler(), c.scope})
}

// replayFilterHandler is a handler that drops the records that an earlier execution of the run has written.
type replayFilterHandler struct {
	slog.Handler
	scope *engine.Scope
}

func (h *replayFilterHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level) && !h.scope.HasWrittenNextLine()
}

func (h *replayFilterHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &replayFilterHandler{h.Handler.WithAttrs(attrs), h.scope}
}

func (h *replayFilterHandler) WithGroup(name string) slog.Handler {
	return &replayFilterHandler{h.Handler.WithGroup(name), h.scope}
}

// IdempotencyKey returns a text that is unique to the step and the same in every attempt and every process. The argument ctx is
// the context that the step's function gets. Pass the key to the outside systems that the step calls, because a step can be
// executed more than once before its result is recorded.
//
// If ctx is the workflow's Ctx, or is derived from that Ctx, IdempotencyKey panics, so that no request is sent with an empty
// key. The step or the workflow in which IdempotencyKey panics fails with [ErrOutsideStep]. For any other context outside of a
// step, IdempotencyKey returns an empty string.
func IdempotencyKey(ctx context.Context) string { return engine.IdempotencyKey(ctx) }

// Attempt returns the number of the step's attempt, from 1, counted over all processes. The argument ctx is the context that
// the step's function gets. Outside of a step Attempt returns zero.
func Attempt(ctx context.Context) int { return engine.AttemptNumber(ctx) }

// RunningStep describes the step whose function is being executed; see [StepInfo].
type RunningStep struct {
	Name        string // the name of the step with its scope, as in [Checkpoint]: "orders/7" is item 7 of the Map orders
	Map         string // the name, with its scope, of the Map of which the step is an item; empty if the step is no item of a Map
	Index       int    // the index of the item in its Map; -1 if the step is no item of a Map
	Key         string // what the [Key] option returned for the item; empty if the item has no key
	Attempt     int    // the number of the attempt, from 1, counted over all processes
	MaxAttempts int    // the largest number of attempts that [Retry] allows; zero means no bound
}

// StepInfo returns the step that is being executed, and reports whether ctx is the context that the function of a step gets.
func StepInfo(ctx context.Context) (RunningStep, bool) {
	i, ok := engine.AttemptInfo(ctx)
	return RunningStep{Name: i.Name, Map: i.MapName, Index: i.ItemIndex, Key: i.ItemKey, Attempt: i.Attempt, MaxAttempts: i.MaxAttempts}, ok
}

// callSite returns the program counter at which the user's code called the exported function that calls site. skip is the number of
// functions between the exported function and site.
func callSite(skip int) uintptr {
	var pcs [1]uintptr
	runtime.Callers(3+skip, pcs[:])
	return pcs[0]
}
