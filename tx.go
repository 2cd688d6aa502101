package durable

import (
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Transactor runs work in one transaction of s, writes the checkpoint w, which work
// has filled in, in the same transaction, and commits. w.Outcome says what came of it;
// anything but Written means that it was rolled back because another recorded the step
// or owns the run. An error, work's own or the database's, also means that nothing
// was committed. If it is work's own, it is returned, or wrapped.
type Transactor[X any] func(ctx context.Context, s Store, w *store.StepWrite, work func(ctx context.Context, tx X) error) error

// TxStep is what the Tx functions of the stores are made of; call those. It is Step for
// a function whose writes, in the transaction that it gets, commit together with the
// checkpoint: exactly once. If the database does not take the checkpoint, or the commit, for
// another reason than a value, the function is called again as part of the same attempt, until
// Config.Patience is over; then the run is held.
func TxStep[T, X any](c *Ctx, name string, in Transactor[X], fn func(context.Context, X) (T, error), opts ...StepOption) (T, error) {
	call := newCall[T](c, name, store.KindTx, opts)
	call.spec.Site = site(1)
	call.needs(fn != nil)
	call.spec.Transact = func(ctx context.Context, w *store.StepWrite, seal func([]byte)) (any, *engine.Failure) {
		var out engine.Output
		var unfit *engine.Failure // the function's value, not the database
		err := in(ctx, c.scope.Engine().Store(), w, func(ctx context.Context, tx X) error {
			v, err := fn(ctx, tx)
			if err != nil {
				return &workError{err}
			}
			if out, unfit = call.record(v, nil); unfit != nil {
				return ErrNotEncodable
			}
			seal(out.Bytes)
			return nil
		})
		its, failed := errors.AsType[*workError](err)
		if err == error(its) && failed {
			err = its.error
		}
		switch {
		case unfit != nil:
			return nil, unfit
		case errors.Is(err, ErrInvalidConfig), errors.Is(err, ErrInsideTx): // such as the other store's Tx
			return nil, permanently(err)
		case err != nil:
			f := failureOf(err)
			if !failed && engine.MayPass(err) {
				f.Held = err
			}
			return nil, f
		}
		return out.Value, nil
	}
	return call.do()
}

// workError is what the function of a Tx step returned, and not the database.
type workError struct{ error }

// Unwrap is the function's error.
func (e *workError) Unwrap() error { return e.error }

// StartIn is what the StartTx functions of the stores are made of; call those. It
// prepares the start of a run, lets insert write it in the caller's own transaction,
// and answers the handle of a run that exists once that transaction has committed.
func StartIn[I, O any](ctx context.Context, e *Engine, w *Workflow[I, O], in I, insert func(context.Context, Store, []*store.Start) error, opts ...StartOption) (*Run[O], error) {
	request, err := w.request(e.cfg.MaxPayload, in, opts)
	if err != nil {
		return nil, err
	}
	if err := e.inner.Ready(ctx); err != nil {
		return nil, err
	}
	wrong, err := e.inner.Usurped(ctx, []engine.StartRequest{request})
	if err == nil {
		err = wrong[0]
	}
	if err != nil {
		return nil, err
	}
	starts, spans := e.inner.Prepare(ctx, []engine.StartRequest{request})
	if err := insert(ctx, e.inner.Store(), starts); err != nil {
		spans.Refused(err)
		return nil, err
	}
	spans.Open = true
	answer := e.inner.Answer(ctx, starts, &spans)[0]
	if answer.Err != nil {
		return nil, answer.Err
	}
	return newRun[O](e, &answer.Run), nil
}

// SignalIn is what the SignalTx functions of the stores are made of; call those. It
// prepares a signal and lets insert find the run and write the signal in the caller's
// own transaction.
func SignalIn(ctx context.Context, e *Engine, id, name string, payload any, insert func(context.Context, Store, store.Ref, *store.Signal) error, opts ...SignalOption) error {
	signal, err := e.signal(name, payload, opts)
	if err != nil {
		return err
	}
	if err := e.inner.Ready(ctx); err != nil {
		return err
	}
	if err := engine.CheckRef(id); err != nil {
		return err
	}
	e.inner.Stamp(signal)
	if err := insert(ctx, e.inner.Store(), store.Ref{Text: id}, signal); err != nil {
		return err
	}
	return stated(e.inner.Signalled(id, signal))
}
