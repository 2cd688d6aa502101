package durable

import (
	"fmt"
	"time"
)

// RetryRun is an option of [Define]: a run that fails is retried by itself, as [Engine.Retry] does it, after the waits of the
// policy. Attempts counts the executions from the first failure on, including the first one. Each retry is a generation of the
// run (see [Engine.Generations]) with the ID of the run: it keeps what is recorded, and executes the steps again whose errors the
// returned error wraps, with the same idempotency keys. Failed children are retried with the run. If the error wraps no error of
// a step or a child, the function continues after its last recorded call; so wrap errors with %w, and combine several with
// errors.Join.
//
// Between two generations the run is waiting, has no worker, and gives its place in the queue back. Callers that wait for the run,
// and its parent, get the result of the last generation only. Compensations are executed after the last failure, and not before a
// retry. A cancel, a pause and the [Timeout] of the run apply as they do while it sleeps. A signal, the end of a child and a
// resume do not bring the retry forward; [Engine.Fork] with [FromEnd] executes the run at once. ContinueAsNew and an operator's
// repair reset the count of attempts.
//
// The policy is that of the worker's code and not of the start, so a deployment changes it for live runs too. A run is not
// retried if its error is marked by [Permanent] or wraps [ErrOutcomeUnknown], [ErrCrashLoop] or [ErrDiverged], if the run has
// expired or was cancelled, or if it has begun to execute compensations.
func RetryRun(policy RetryPolicy) WorkflowOption {
	return func(o *workflowOptions) {
		o.addOption(optionRetryRun, "RetryRun")
		o.retryRun = &policy
		if err := policy.check(); err != nil {
			o.fail(fmt.Errorf("RetryRun: %w", err))
		}
	}
}

// retryWaitFunc returns the function with which the engine asks for the wait before a retry, or nil.
func (w *Workflow[I, O]) retryWaitFunc() func(failures int32) (time.Duration, bool) {
	if w.retryRun == nil {
		return nil
	}
	return w.retryRun.waitAfter
}
