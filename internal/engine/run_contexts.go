package engine

import "context"

// runContexts are the contexts of a run in memory. ownedCtx is the parent of stepsCtx, which is the parent of ctx. The fields are set
// once, so no mutex guards them.
type runContexts struct {
	// ownedCtx ends when this process loses the run, or when the grace period of the drain is over.
	ownedCtx    context.Context
	endOwnedCtx context.CancelCauseFunc
	// stepsCtx is the parent of the steps' contexts. It also ends when the run must end (see forcedEnd).
	stepsCtx    context.Context
	endStepsCtx context.CancelCauseFunc
	// ctx is the context of the workflow function. It also ends when the run is suspended.
	ctx    context.Context
	endCtx context.CancelCauseFunc
	// writeCtx is the context of writes. It does not end with the run.
	writeCtx context.Context
}

// newRunContexts returns contexts that end when parent ends, or earlier. Only writeCtx does not end with parent.
func newRunContexts(parent context.Context) (c runContexts) {
	c.ownedCtx, c.endOwnedCtx = context.WithCancelCause(parent)
	c.stepsCtx, c.endStepsCtx = context.WithCancelCause(c.ownedCtx)
	c.ctx, c.endCtx = context.WithCancelCause(c.stepsCtx)
	c.writeCtx = context.WithoutCancel(parent)
	return c
}

// endCallContexts ends the contexts of the function and of its steps, because the run must end.
func (c *runContexts) endCallContexts(cause error) {
	c.endCtx(cause)
	c.endStepsCtx(cause)
}
