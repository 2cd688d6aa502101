package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// txPhase is the progress of an attempt that commits its own checkpoint. While the function is executed, the engine can abandon the
// attempt, whose transaction is then never committed. Once the function has returned, the transaction may be committed at any time,
// and only the database knows its outcome.
type txPhase struct{ atomic.Int32 }

const (
	txPhaseInFunction       int32 = iota // the function is executed
	txPhaseFunctionReturned              // the function has returned
	txPhaseAbandoned                     // the engine does not wait for the attempt any more
)

// tryAbandon tries to abandon the attempt, and reports whether it did. It reports true for a nil phase.
func (p *txPhase) tryAbandon() bool {
	return p == nil || p.CompareAndSwap(txPhaseInFunction, txPhaseAbandoned)
}

// tryEnter enters the next phase. It reports false if the attempt was abandoned.
func (p *txPhase) tryEnter(next int32) bool {
	if p == nil {
		return true
	}
	for {
		at := p.Load()
		if at == txPhaseAbandoned {
			return false
		}
		if p.CompareAndSwap(at, next) {
			return true
		}
	}
}

// TxAttempt is one attempt of a step that commits its own checkpoint.
type TxAttempt struct {
	task                     *stepTask
	stepWrite                *store.StepWrite
	outputRecordedAsReturned bool   // the output is recorded as the function returned it
	plainOutput              []byte // the output before a codec has encoded it
}

// MarkFunctionBegun marks that the step's function begins. MarkFunctionBegun must be called right before each call of the function, because
// the function may be called more than once.
func (x *TxAttempt) MarkFunctionBegun() { x.task.txPhase.tryEnter(txPhaseInFunction) }

// SetOutput puts the output of the attempt into the checkpoint. If SetOutput returns an error, the engine no longer waits for the attempt,
// and the caller must not commit anything.
func (x *TxAttempt) SetOutput(output []byte) error {
	if !x.task.txPhase.tryEnter(txPhaseFunctionReturned) {
		return errAttemptTimeout
	}
	x.stepWrite.Step.Output, x.outputRecordedAsReturned = x.task.outputToRecord(output)
	x.plainOutput = x.stepWrite.Step.Output
	if own := x.task.r.e.codecStore; own != nil {
		var err error
		if x.stepWrite.Step.Output, err = own.EncodeStepOutput(&x.stepWrite.Step); err != nil {
			return err
		}
	}
	x.stepWrite.Step.EndedAt = x.task.r.e.clock.Now()
	return nil
}

// ContextExtendedByPatience returns a context that ends when Config.Patience has passed since the end of ctx, which must be the context of
// an attempt. The extended context ends at once when this process must no longer execute the run.
func ContextExtendedByPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		end(context.Cause(ctx))
		return lasting, func() {}
	}
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(t.r.e.Patience())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.r.ownedCtx.Done():
		case <-lasting.Done():
		}
		end(context.Cause(ctx))
	})
	return lasting, func() { stop(); end(nil) }
}

// callTransactWithRetry executes an attempt that commits its own checkpoint. If the database rejects the commit, callTransactWithRetry calls the
// function again, for as long as other writes are retried.
func (t *stepTask) callTransactWithRetry(ctx context.Context) (got attemptResult) {
	ctx, leave := t.markInsideTx(ctx)
	defer leave()
	err := t.r.e.retryUntilPatienceEnds(ctx, newWriteOptions(t.r.ownedCtx.Done()), func() error {
		w := t.newStepWrite(store.StepCompleted, nil, nil)
		x := &TxAttempt{task: t, stepWrite: w, outputRecordedAsReturned: true}
		value, f := t.spec.ExecuteTxAttempt(ctx, w, x)
		w.Step.Output = x.plainOutput
		if t.r.e.codecStore != nil && w.RecordedStep != nil {
			t.r.e.codecStore.OpenStep(w.RecordedStep)
		}
		switch {
		case f == nil:
			if !x.outputRecordedAsReturned {
				value = nil // the caller decodes it from the record
			}
			got = attemptResult{selfCommittedStep: w, out: AttemptOutput{Bytes: w.Step.Output, Value: value}}
		case f.CommitError == nil:
			got = attemptResult{failure: f}
		default:
			got = attemptResult{failure: f}
			return f.CommitError
		}
		return nil
	})
	// If the run must end, the failure is returned, unless the transaction may have been committed. Otherwise the run is held,
	// because the function is not at fault, even if the attempt's time ended during the retries.
	if err != nil && (t.scope.stepsCtx.Err() == nil || errors.Is(got.failure.CommitError, store.ErrInDoubt)) && !errors.Is(err, store.ErrBadData) {
		t.r.holdWithReason("commit step", t.name, got.failure.CommitError)
		return attemptResult{err: ErrSuspended}
	}
	return got
}
