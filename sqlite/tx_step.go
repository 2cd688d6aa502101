package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/store"
)

// Tx executes a step whose writes commit together with the step's checkpoint, so that they take effect exactly once. One transaction on the
// engine's file contains the statements that fn executes on tx, and the checkpoint of the step. The function fn must not commit or roll
// back the transaction. No other write to the file can happen while fn runs, so fn should be short and use nothing but tx. Engine calls in
// fn that write or wait for a result return durable.ErrInsideTx: use [StartTx] and [SignalTx] with tx, or call the engine after the step.
//
// Tx returns the errors of durable.Ctx.Step, and durable.ErrInvalidConfig if the engine does not use SQLite.
func Tx[T any](ctx *durable.Ctx, name string, fn func(ctx context.Context, tx *sql.Tx) (T, error), opts ...durable.StepOption) (T, error) {
	var step func(context.Context) (T, error)
	if fn != nil {
		step = func(ctx context.Context) (T, error) { return fn(ctx, bridge.Transaction(ctx).(*sql.Tx)) }
	}
	return ctx.Step(name, step, append(slices.Clip(opts), bridge.TxStep(executeTxStep).(durable.StepOption))...)
}

// StartTx starts a run in the caller's own transaction. The new run exists if and when the caller's transaction commits. The transaction tx
// must be begun on the handle that Writer returns for the engine's own file. StartTx returns durable.ErrInvalidConfig if tx is nil or has
// ended.
func StartTx[I, O any](ctx context.Context, tx *sql.Tx, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) (*durable.Run[O], error) {
	insert := bridge.StartTx(func(ctx context.Context, s store.Store, starts []*store.StartWrite) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return endedTxError(own.startRunsInTx(ctx, tx, starts))
	}, func(ctx context.Context, s store.Store, c *store.StartKeyChangeRequest) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return endedTxError(own.updateStartKeyRowInTx(ctx, tx, c))
	})
	return w.Start(ctx, e, in, append(slices.Clip(opts), insert.(durable.StartOption))...)
}

// SignalTx sends a signal in the caller's own transaction. The signal exists, and the run is woken, if and when the caller's transaction
// commits. The transaction tx must be begun on the handle that Writer returns for the engine's own file. SignalTx returns the errors of
// [durable.Engine.Signal], and durable.ErrInvalidConfig if tx is nil or has ended.
func SignalTx(ctx context.Context, tx *sql.Tx, e *durable.Engine, id, name string, payload any, opts ...durable.SignalOption) error {
	insert := bridge.SignalTx(func(ctx context.Context, s store.Store, to store.RunRef, signal *store.SignalWrite) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return endedTxError(own.signalInTx(ctx, tx, to, signal))
	})
	return e.Signal(ctx, id, name, payload, append(slices.Clip(opts), insert.(durable.SignalOption))...)
}

// Writer returns the database handle with the only connection that writes to the file. Use it for your own
// transactions, such as those of [StartTx] and [SignalTx]. A transaction begun on it is IMMEDIATE, and excludes all
// other writes of this store until it ends.
func (s *database) Writer() *sql.DB { return s.writer() }

// errNoTransaction is the error of a StartTx or SignalTx without a transaction.
var errNoTransaction = fmt.Errorf("%w: the transaction is nil: pass one that BeginTx of Writer returned", durable.ErrInvalidConfig)

// endedTxError converts the error of a call in an ended transaction to durable.ErrInvalidConfig: a retry would fail as well.
func endedTxError(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: the transaction was committed or rolled back before this call: call before Commit: %w", durable.ErrInvalidConfig, sql.ErrTxDone)
	}
	return err
}

// databaseForTx returns the database for a call in the caller's transaction tx.
func databaseForTx(s store.Store, tx *sql.Tx) (*database, error) {
	own, err := databaseOf(s)
	if err == nil && tx == nil {
		return nil, errNoTransaction
	}
	return own, err
}

// databaseOf returns the database of a store of this package.
func databaseOf(s store.Store) (*database, error) {
	if opened, ok := s.(*Store); ok {
		s = opened.storeForEngine
	}
	own, ok := s.(*database)
	if !ok {
		return nil, fmt.Errorf("%w: the engine works on %s, and a transaction of sqlite was asked for: use the Tx of that store's package", durable.ErrInvalidConfig, s.Name())
	}
	return own, nil
}

// executeTxStep is the bridge.Transact of this store. It retries a transaction that the database rolled back, or whose commit
// returned no reply. A retry first reads whether the step was recorded after all.
func executeTxStep(ctx context.Context, s store.Store, w *store.StepWrite, work func(context.Context) error) error {
	own, err := databaseOf(s)
	if err != nil {
		return err
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		var its error // the function's own, whatever it wraps
		err := own.executeTxStepOnce(ctx, w, func(ctx context.Context, tx *sql.Tx) error {
			its = work(bridge.WithTransaction(ctx, tx))
			return its
		})
		if err == nil || its != nil || !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return err
		}
	}
}

func (s *database) executeTxStepOnce(ctx context.Context, w *store.StepWrite, work func(context.Context, *sql.Tx) error) error {
	tx, err := s.writer().BeginTx(ctx, nil)
	if err != nil {
		return s.wrapError("begin", err)
	}
	// After a commit this does nothing; its error says no more than the returned one.
	defer func() { _ = tx.Rollback() }()
	row, err := queryStep(txSession{ctx, tx, s.statementTexts}, &w.Step)
	if err != nil {
		return s.wrapError("look for the checkpoint", err)
	}
	if row != nil && row.Status.IsTerminal() {
		w.Outcome, w.RecordedStep = store.AlreadyRecorded, row
		return nil
	}
	if _, err := tx.ExecContext(ctx, s.statementTexts[qTxStepSavepointCreate]); err != nil {
		return s.wrapError("begin", err)
	}
	if err := work(ctx, tx); err != nil {
		return err
	}
	// SQLite undoes all of a transaction when one of its writes is interrupted, by OR ROLLBACK, and where
	// the disk is full; what follows would be committed alone. The savepoint is gone then.
	if _, err := tx.ExecContext(ctx, s.statementTexts[qTxStepSavepointRelease]); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: the transaction of a Tx step was ended before its function returned: leave Commit and Rollback to the step, and return the error of a statement that undid it: %w", durable.ErrInvalidConfig, err)
	} else if err != nil {
		return s.wrapError("checkpoint", err)
	}
	if err := s.writeStepInTx(ctx, tx, w); err != nil || w.Outcome != store.Written {
		return err
	}
	return s.wrapError("commit", tx.Commit())
}
