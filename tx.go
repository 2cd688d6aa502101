package durable

import (
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

func init() {
	bridge.TxStep = func(in bridge.Transact) any {
		return StepOption(func(o *stepOptions) { o.transact = in })
	}
	bridge.StartTx = func(insert bridge.InsertStarts, fold bridge.InsertWithStartKey) any {
		return StartOption(func(o *startOptions) { o.insert, o.insertWithStartKey = insert, fold })
	}
	bridge.SignalTx = func(insert bridge.InsertSignal) any {
		return SignalOption(signalOptionFunc(func(o *signalOptions) { o.insert = insert }))
	}
	bridge.Workflows = func(e any) (all []bridge.Workflow) {
		for _, w := range e.(*Engine).cfg.Workflows {
			all = append(all, bridge.Workflow{Name: w.Name(), Queue: w.queueName(), CheckInput: w.checkInput})
		}
		return all
	}
}

// makeTransactional makes the call a transactional step: the writes of its function commit together with the checkpoint, exactly once. If the
// checkpoint or the commit fails, and no value is the cause, the function is called again within the same attempt, until Config.Patience is
// over. Then the run is held.
func (k *durableCall[T]) makeTransactional(in bridge.Transact) {
	k.spec.ExecuteAttempt = nil
	k.spec.ExecuteTxAttempt = func(ctx context.Context, w *store.StepWrite, attempt *engine.TxAttempt) (any, *record.Failure) {
		ctx = bridge.WithOutlast(ctx, engine.ContextExtendedByPatience)
		var out engine.AttemptOutput
		var unfit *record.Failure // set if the value that the function returned cannot be recorded
		err := in(ctx, k.c.scope.Engine().RawStore(), w, func(ctx context.Context) error {
			attempt.MarkFunctionBegun()
			v, err := k.fn(ctx)
			if err != nil {
				return &txFuncError{err}
			}
			if out, unfit = k.encodeResult(v, nil); unfit != nil {
				return ErrNotEncodable
			}
			return attempt.SetOutput(out.Bytes)
		})
		its, failed := errors.AsType[*txFuncError](err)
		if err == error(its) && failed {
			err = its.error
		}
		switch {
		case unfit != nil:
			return nil, unfit
		case errors.Is(err, ErrInvalidConfig), errors.Is(err, ErrInsideTx): // for example the Tx of another store's package
			return nil, toPermanentFailure(err)
		case err != nil:
			f := toRecordedFailure(err)
			if !failed && engine.MaySucceedOnRetry(err) {
				f.CommitError = err
			}
			return nil, f
		}
		return out.Value, nil
	}
}

// txFuncError wraps an error that the function of a transactional step returned, to tell it from an error of the database.
type txFuncError struct{ error }

// Unwrap returns the function's error.
func (e *txFuncError) Unwrap() error { return e.error }

// startInTx starts a run with insert, which writes in the caller's transaction. The run exists once that transaction has committed.
func startInTx[O any](ctx context.Context, e *Engine, request engine.StartRequest, insert bridge.InsertStarts) (*Run[O], error) {
	if err := e.inner.EnsureDatabaseClockRead(ctx); err != nil {
		return nil, err
	}
	wrong, err := e.inner.CheckNamesAgainstUUIDs(ctx, []engine.StartRequest{request})
	if err == nil {
		err = wrong[0]
	}
	if err != nil {
		return nil, err
	}
	requests := []engine.StartRequest{request}
	if err := e.inner.MarkStartsNeedingQueuePlace(ctx, requests); err != nil {
		return nil, err
	}
	starts, spans := e.inner.PrepareStarts(ctx, requests)
	if err := e.inner.StartInTx(starts, func(starts []*store.StartWrite) error { return insert(ctx, e.inner.RawStore(), starts) }); err != nil {
		spans.EndFailed(err)
		return nil, err
	}
	spans.Uncommitted = true
	started := e.inner.FinishCommittedStarts(ctx, starts, &spans)[0]
	if started.Err != nil {
		return nil, started.Err
	}
	return newRun[O](e, &started.Run), nil
}

// signalInTx sends a signal with insert, which writes in the caller's transaction.
func (e *Engine) signalInTx(ctx context.Context, id string, signal *store.SignalWrite, insert bridge.InsertSignal) error {
	if err := e.inner.EnsureDatabaseClockRead(ctx); err != nil {
		return err
	}
	if err := engine.CheckRunID(id); err != nil {
		return err
	}
	e.inner.StampSignal(signal)
	if err := e.inner.SignalInTx(signal, func(signal *store.SignalWrite) error {
		return insert(ctx, e.inner.RawStore(), store.RunRef{UUIDOrName: id}, signal)
	}); err != nil {
		return err
	}
	return convertStateError(e.inner.SignalOutcomeError(id, signal))
}
