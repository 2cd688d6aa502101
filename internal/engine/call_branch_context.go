package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// branchContext is the context of a branch. It ends with its parent, or earlier if a choice ends the branch. Most branches end with
// their run, and most steps never wait for the end of their context. So the cancellable context, which registers itself with its parent,
// is created only when Done is called or the branch ends. To create it at once took a third of the time to open a branch and make a call
// in it.
type branchContext struct {
	parent         context.Context
	cancellableCtx atomic.Pointer[cancellableContext] // nil: nobody has called Done or end
}

type cancellableContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// currentContext returns the cancellable context if there is one, or else the parent, which then has the same state.
func (c *branchContext) currentContext() context.Context {
	if own := c.cancellableCtx.Load(); own != nil {
		return own
	}
	return c.parent
}

// getOrCreateCancellableContext returns the cancellable context, and creates it if there is none.
func (c *branchContext) getOrCreateCancellableContext() *cancellableContext {
	if own := c.cancellableCtx.Load(); own != nil {
		return own
	}
	own := new(cancellableContext)
	own.Context, own.cancel = context.WithCancelCause(c.parent)
	if !c.cancellableCtx.CompareAndSwap(nil, own) {
		own.cancel(nil) // another goroutine has created one first: remove this one from the parent
	}
	return c.cancellableCtx.Load()
}

// end ends the context with the cause, unless it has ended.
func (c *branchContext) end(cause error) { c.getOrCreateCancellableContext().cancel(cause) }

// Deadline returns the deadline of the parent.
func (c *branchContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done returns the channel that is closed when the context ends.
func (c *branchContext) Done() <-chan struct{} { return c.getOrCreateCancellableContext().Done() }

// Err returns why the context has ended, or nil.
func (c *branchContext) Err() error { return c.currentContext().Err() }

// Value returns the value of the parent for the key. Through Value, package context finds the cancellable context after a call of Done,
// and the cause of its end, so that contexts derived from this one need no goroutine.
func (c *branchContext) Value(key any) any { return c.currentContext().Value(key) }
