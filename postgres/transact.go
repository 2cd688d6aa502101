package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Tx is a step whose writes commit together with its checkpoint, exactly once: fn's
// statements on tx, and the record that the step is done, are one transaction in the
// database that the engine works on, on a connection of the pool given to New (or of
// one made by Open). fn must not commit or roll back itself.
//
// A transaction that the database undid (serialization failure, deadlock, a lost
// connection), or whose COMMIT was not answered, is made again, fn included, until the
// step's context ends; that counts as one attempt. An error that fn answers otherwise
// rolls back and is the step's failure.
//
// It answers as durable.Ctx.Step does; durable.ErrInvalidConfig if the engine does not
// work on PostgreSQL.
func Tx[T any](ctx *durable.Ctx, name string, fn func(ctx context.Context, tx pgx.Tx) (T, error), opts ...durable.StepOption) (T, error) {
	return durable.TxStep(ctx, name, transact, fn, opts...)
}

// StartTx starts a run in the caller's own transaction, which must be of the engine's own
// database: the run exists if and when that commits, and workers hear of it then.
func StartTx[I, O any](ctx context.Context, tx pgx.Tx, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) (*durable.Run[O], error) {
	return durable.StartIn(ctx, e, w, in, func(ctx context.Context, s durable.Store, starts []*store.Start) error {
		own, err := mine(s)
		if err != nil {
			return err
		}
		return own.startIn(ctx, tx, starts)
	}, opts...)
}

// SignalTx sends a signal in the caller's own transaction, which must be of the engine's own
// database: it is there if and when that commits, and the run is woken then. Until then the
// run can neither end nor receive, so commit soon. Errors as for durable.Engine.Signal.
func SignalTx(ctx context.Context, tx pgx.Tx, e *durable.Engine, id, name string, payload any, opts ...durable.SignalOption) error {
	return durable.SignalIn(ctx, e, id, name, payload, func(ctx context.Context, s durable.Store, to store.Ref, signal *store.Signal) error {
		own, err := mine(s)
		if err != nil {
			return err
		}
		return own.signalIn(ctx, tx, to, signal)
	}, opts...)
}

func mine(s durable.Store) (*Store, error) {
	own, ok := s.(*Store)
	if !ok {
		return nil, fmt.Errorf("%w: the engine works on %s, and a transaction of postgres was asked for: use the Tx of that store's package", durable.ErrInvalidConfig, s.Name())
	}
	return own, nil
}

const (
	firstAgain = 5 * time.Millisecond
	longAgain  = time.Second
)

// transact implements durable.Transactor.
func transact(ctx context.Context, s durable.Store, w *store.StepWrite, work func(context.Context, pgx.Tx) error) error {
	own, err := mine(s)
	if err != nil {
		return err
	}
	again := false
	for wait := firstAgain; ; wait = min(2*wait, longAgain) {
		err := own.transactOnce(ctx, w, work, again)
		if err == nil || !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		again = true
		if !rest(ctx, wait) {
			return err
		}
	}
}

// rest waits about as long as it is told, and answers false if ctx ends first.
func rest(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait/2 + rand.N(wait))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// broke tells whether work failed because the database undid its transaction, or was
// lost under it; any other error is the function's own.
func (s *Store) broke(ctx context.Context, tx pgx.Tx, err error) error {
	var pg *pgconn.PgError
	undone := errors.As(err, &pg) && kindOfState(pg.Code) == store.ErrUnavailable && pg.Code != aborted
	if undone || (ctx.Err() == nil && tx.Conn().IsClosed()) {
		return fmt.Errorf("postgres: transaction: %w: %w", store.ErrUnavailable, err)
	}
	return err
}

// misused says what a function did with its transaction that it must not, nil if it
// did nothing of the kind.
func misused(err error) error {
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return fmt.Errorf("%w: the function of a Tx step ended its transaction itself: leave Commit and Rollback to the step", durable.ErrInvalidConfig)
	case hasState(err, aborted):
		return fmt.Errorf("%w: a statement of a Tx step failed, and its function went on as if it had not: return that error", durable.ErrInvalidConfig)
	}
	return nil
}

// aborted is the SQLSTATE of a statement after one that failed in the same transaction.
const aborted = "25P02"

// transactOnce makes one transaction. The second time it first looks whether the
// commit before, whose answer may have been lost, took effect after all. One that is
// still on its way then holds the checkpoint's key, and ours waits for it.
func (s *Store) transactOnce(ctx context.Context, w *store.StepWrite, work func(context.Context, pgx.Tx) error, again bool) error {
	if again {
		states, err := s.readSteps(s.onEngine(ctx), []*store.StepWrite{w})
		if err != nil {
			return err
		}
		if row := states[0].step; row != nil && row.Status.Terminal() {
			w.Outcome, w.Recorded = store.Adopted, row
			return nil
		}
	}
	tx, err := s.userPool().Begin(ctx)
	if err != nil {
		return s.wrap(ctx, "begin", err)
	}
	defer func() {
		// Also when ctx has ended: the connection must go back out of its transaction.
		// After a commit this does nothing; if it fails, the pool drops the connection.
		_ = tx.Rollback(context.WithoutCancel(ctx))
	}()
	if err := work(ctx, tx); err != nil {
		return s.broke(ctx, tx, err)
	}
	if err := s.checkpoint(ctx, tx, w); err != nil {
		if misuse := misused(err); misuse != nil {
			return misuse
		}
		return err
	}
	if w.Outcome != store.Written {
		return nil
	}
	return s.wrap(ctx, "commit", tx.Commit(ctx))
}
