package durable

import (
	"fmt"
	"time"
)

// RetryRun makes a worker retry a run that fails, as [Engine.Retry] does, after the waits of the policy. RetryRun is an option
// of [Define]. The policy's Attempts is the largest number of executions of a run, including the first execution. Each retry is
// a generation of the run (see [Engine.Generations]), with the ID of the run. A retry keeps the recorded calls, except the
// failed steps whose errors the run's error wraps: the retry executes these steps again, with the same idempotency keys. Failed
// children are retried together with the run. If the run's error wraps no error of a step or a child, the function continues
// after its last recorded call. In a workflow with RetryRun, therefore wrap errors with %w, and combine several errors with
// errors.Join.
//
// Between two generations a run with RetryRun waits, has no worker, and does not count as executing in its queue. A run with
// RetryRun counts towards the bounds MaxInProgress and MaxInProgressPerKey until its last generation has ended. Callers that wait for the run, and the parent of the run, get only the result of the last generation.
// Compensations are executed after the last failure, and not before a retry. A cancel, a pause and the [Timeout] affect a run
// that waits for its retry in the same way as a run that sleeps. A signal, the end of a child and a resume do not bring the
// retry forward. To end the wait for a retry, call [Engine.Fork] with [FromEnd], which executes the run at once, and the
// children that are retried with it. [RunInfo.RetryWait] describes the wait. ContinueAsNew and an operator's repair reset the
// count of attempts.
//
// The policy of RetryRun comes from the code of the worker and not from the start, so that a deployment changes the policy of
// live runs too. A run is not retried if its error is marked by [Permanent] or wraps [ErrOutcomeUnknown], [ErrCrashLoop] or
// [ErrDiverged], if the run has expired or was cancelled, or if it has begun to execute compensations.
func RetryRun(policy RetryPolicy) WorkflowOption {
	return func(o *workflowOptions) {
		o.addOptionOnce(optionRetryRun, "RetryRun")
		o.retryRun = &policy
		if err := policy.check(); err != nil {
			o.setFirstError(fmt.Errorf("RetryRun: %w", err))
		}
	}
}

// retryWaitFunc returns the function that tells the engine how long to wait before a retry, or nil.
func (w *Workflow[I, O]) retryWaitFunc() func(failures int32) (time.Duration, bool) {
	if w.retryRun == nil {
		return nil
	}
	return w.retryRun.waitAfter
}
