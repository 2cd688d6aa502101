package engine

import (
	"runtime/debug"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// callWorkflow calls the user's function, and converts a panic into a failure.
func (r *run) callWorkflow() (output []byte, failure *record.Failure) {
	scope, returned := &Scope{r: r, ctx: r.ctx, stepsCtx: r.stepsCtx}, false
	defer func() {
		if v := recover(); v != nil {
			output, failure = nil, panicFailure(v, debug.Stack())
			thrown, _ := v.(error)
			scope.NoteFunctionReturned(thrown)
			r.logger().Error("a workflow panicked", telemetry.KeyError, failure.Message, telemetry.KeyStack, failure.Stack)
		} else if !returned { // it called runtime.Goexit
			scope.NoteFunctionReturned(nil)
		}
	}()
	if failure := r.holdUnlessGraphOrFunction(); failure != nil || r.isSuspended() {
		returned = true
		return nil, failure
	}
	r.functionStackBase = stack.BaseFunction()
	r.noteReplayBegins()
	output, failure = r.e.workflows[r.row.Workflow].CallFunction(scope, r.row.Input)
	returned = true
	return output, failure
}
