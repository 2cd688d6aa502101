package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/graph"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A node may fail without a call that records the failure: its condition or another function that belongs to the workflow function
// panics, or the input of its child is too large. Other nodes run, or are skipped, because of the failure. Newer code without the cause
// would then execute the failed node beside them. So the failure is recorded as well, before other nodes see it.

// unrecordedNodeError is an error that a function of a node returned outside the calls of the node. It may wrap recorded errors of other
// nodes.
type unrecordedNodeError struct{ error }

func (e *unrecordedNodeError) Unwrap() error { return e.error }

// executeNodeAndRecordFailure executes a node that is due. It records a failure of the node, unless a call of the node has recorded it.
func (x *graphRun) executeNodeAndRecordFailure(c *Ctx, n dueNode) (any, error) {
	executeCatching := x.executeNodeCatchingPanic
	if n.callsUserFunction {
		executeCatching = x.executeNodeCatchingGoexit
	}
	v, failure, err := executeCatching(c, n)
	if failure == nil && isFinalWithoutRecord(err) {
		return v, err
	}
	if failure == nil {
		if own, ok := errors.AsType[*unrecordedNodeError](err); ok {
			err = own.error
		}
		failure = toRecordedFailure(err)
	}
	if call := graph.CallName(n.spec().Kind); x.hasRecords && n.isEmpty == nil && c.scope.HasCallOutcome(call) { // others may have acted on that outcome
		return nil, c.scope.ReportDivergence(call, fmt.Errorf("%w: node %q in run %q has an outcome in the history, and the code fails to return it: %s", ErrDiverged, n.name, c.ID(), failure.Message))
	}
	failure.Permanent = true
	if c.scope.IsPreflight() { // it reports what follows from the failure
		return nil, newStepError(c.scope.DisplayName(graph.CallFailure), failure)
	}
	return nil, recordNodeFailure(c, n.graphNode, failure)
}

func (x *graphRun) executeNodeCatchingPanic(c *Ctx, n dueNode) (v any, failure *record.Failure, err error) {
	c.scope.CallCatchingPanicAndGoexit(func() { v, err = x.executeNode(c, n) }, func(f *record.Failure) { failure = f })
	return v, failure, err
}

// executeNodeCatchingGoexit executes a node in a goroutine of its own. After a runtime.Goexit, the calling goroutine must go on: it may be that
// of the workflow function.
func (x *graphRun) executeNodeCatchingGoexit(c *Ctx, n dueNode) (v any, failure *record.Failure, err error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		c.scope.CallCatchingPanicAndGoexit(func() { v, err = x.executeNode(c, n) }, func(f *record.Failure) { failure = f })
	}()
	<-returned
	return v, failure, err
}

// recordNodeFailure records the failure of a node, or reads its record. It returns the recorded failure.
func recordNodeFailure(c *Ctx, n *graphNode, failure *record.Failure) error {
	res, err := c.callScope().Step(&engine.CallSpec{Name: graph.CallFailure, Kind: store.KindGraph, CallSite: n.callSite, ExecuteAttempt: func(context.Context) (engine.AttemptOutput, *record.Failure) {
		return engine.AttemptOutput{}, failure
	}})
	return callResultError(c, graph.CallFailure, &res, err)
}

// isFinalWithoutRecord reports whether the error of a node, which may be nil, needs no record of its own: every replay returns it again,
// or the run is held or ends.
func isFinalWithoutRecord(err error) bool {
	switch e := err.(type) {
	case nil, *RunError, *nodeSkippedError, *graphFailure:
		return true
	case *StepError:
		return !e.isBranchPanic
	case *unrecordedNodeError:
		return false
	case *joinedErrors: // of a list
		for _, each := range e.errs {
			if !isFinalWithoutRecord(each) {
				return false
			}
		}
		return true
	}
	return nodeStateFromError(err) != graph.Failed || errors.Is(err, ErrDiverged) || errors.As(err, new(*StepError)) || errors.As(err, new(*RunError))
}
