package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/store"
)

// Tx executes a step whose writes commit together with the step's checkpoint, exactly once. One transaction in the engine's database
// contains the statements that fn executes on tx, and the checkpoint of the step. Tx uses a connection of the pool that was given to New,
// or of the pool that Open created. The function fn must not commit or roll back the transaction, and must close the rows of its queries
// before it returns; otherwise the step fails with durable.ErrInvalidConfig. If fn sets a role with SET LOCAL ROLE, for example for
// row-level security, fn must execute RESET ROLE before it returns, because Tx then writes the checkpoint in the same transaction.
//
// If the database rolled the transaction back (serialization failure, deadlock, lost connection), or did not reply to COMMIT, Tx retries
// the transaction, together with fn, until the step's context ends. If a timeout, a cancelled statement or a lock ended the transaction, Tx
// retries it at most nine times. All tries of the transaction count as one attempt of the step. If fn returns any other error, Tx rolls the
// transaction back, and the error is the step's failure.
//
// If the step's context ends after Tx has sent COMMIT, Tx still returns the outcome that the database has recorded. If Tx cannot read the
// recorded outcome within Config.Patience, the run is held. If the default isolation level of the database is REPEATABLE READ or above, Tx
// may call fn once more in a transaction that has locked the run. While Tx has locked the run, the run's lease is not renewed, and signals
// to the run wait until the transaction ends.
//
// Tx returns the errors of durable.Ctx.Step, and durable.ErrInvalidConfig if the engine does not use
// PostgreSQL.
func Tx[T any](ctx *durable.Ctx, name string, fn func(ctx context.Context, tx pgx.Tx) (T, error), opts ...durable.StepOption) (T, error) {
	var step func(context.Context) (T, error)
	if fn != nil {
		step = func(ctx context.Context) (T, error) { return fn(ctx, bridge.Transaction(ctx).(pgx.Tx)) }
	}
	return ctx.Step(name, step, append(slices.Clip(opts), bridge.TxStep(executeTxStep).(durable.StepOption))...)
}

// StartTx starts a run in the caller's own transaction, which must belong to the engine's database. The new run exists if and when the
// caller's transaction commits, and workers are notified then. StartTx returns durable.ErrInvalidConfig if tx is nil, has ended, is read-only
// or was aborted by the error of an earlier statement, and durable.ErrLocked if PostgreSQL aborts tx because of a deadlock or a
// serialization failure. After such an ErrLocked, roll tx back and repeat the whole transaction.
func StartTx[I, O any](ctx context.Context, tx pgx.Tx, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) (*durable.Run[O], error) {
	insert := bridge.StartTx(func(ctx context.Context, s store.Store, starts []*store.StartWrite) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return callerTxError(tx, own.startRunsInTx(ctx, tx, starts))
	}, func(ctx context.Context, s store.Store, c *store.StartKeyChangeRequest) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return callerTxError(tx, own.updateStartKeyRowInTx(ctx, tx, c))
	})
	return w.Start(ctx, e, in, append(slices.Clip(opts), insert.(durable.StartOption))...)
}

// SignalTx sends a signal in the caller's own transaction, which must belong to the engine's database. The signal exists if and when the
// caller's transaction commits, and the run is woken then. Until the caller's transaction commits, the run can neither end nor receive a
// signal, so commit soon. If another transaction has signalled the run, SignalTx waits until that transaction ends, as long as ctx and
// the lock_timeout of the caller's session allow; after a lock_timeout, it returns durable.ErrLocked. SignalTx returns the errors of
// durable.Engine.Signal, and the errors that [StartTx] returns because of tx.
func SignalTx(ctx context.Context, tx pgx.Tx, e *durable.Engine, id, name string, payload any, opts ...durable.SignalOption) error {
	insert := bridge.SignalTx(func(ctx context.Context, s store.Store, to store.RunRef, signal *store.SignalWrite) error {
		own, err := databaseForTx(s, tx)
		if err != nil {
			return err
		}
		return callerTxError(tx, own.signalInTx(ctx, tx, to, signal))
	})
	return e.Signal(ctx, id, name, payload, append(slices.Clip(opts), insert.(durable.SignalOption))...)
}

// errNoTransaction is returned by StartTx and SignalTx if the transaction is nil.
var errNoTransaction = fmt.Errorf("%w: the transaction is nil: pass one that Begin of the pool or of a connection returned", durable.ErrInvalidConfig)

// databaseForTx returns the database for a call in the caller's transaction tx.
func databaseForTx(s store.Store, tx pgx.Tx) (*database, error) {
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
		return nil, fmt.Errorf("%w: the engine works on %s, and a transaction of postgres was asked for: use the Tx of that store's package", durable.ErrInvalidConfig, s.Name())
	}
	return own, nil
}

const (
	firstTxRetryDelay = 5 * time.Millisecond
	maxTxRetryDelay   = time.Second
	maxAmbiguousTries = 10 // bounds the tries of a transaction that may fail in the same way each time
)

// executeTxStep is this store's bridge.Transact.
func executeTxStep(ctx context.Context, s store.Store, w *store.StepWrite, work func(context.Context) error) error {
	own, err := databaseOf(s)
	if err != nil {
		return err
	}
	sent, err := own.executeTxStepWithRetries(ctx, w, work)
	if err != nil && sent {
		return own.resolveLostCommit(ctx, w, err)
	}
	return err
}

// executeTxStepWithRetries tries the transaction until it is committed or must not be retried. Together with an error it
// reports whether a COMMIT was sent whose outcome is unknown.
func (s *database) executeTxStepWithRetries(ctx context.Context, w *store.StepWrite, work func(context.Context) error) (sent bool, _ error) {
	var before error
	doubts := 0
	for wait := firstTxRetryDelay; ; wait = min(2*wait, maxTxRetryDelay) {
		era := s.rewindDetector.rewindCount.Load()
		its := false // the function returned the error, whatever the error wraps
		err := s.executeTxStepOnce(ctx, w, func(ctx context.Context, tx pgx.Tx) error {
			err := work(bridge.WithTransaction(ctx, tx))
			if err != nil && wasRolledBack(ctx, tx, err) {
				return fmt.Errorf("postgres: transaction: %w: %w", store.ErrUnavailable, err)
			}
			its = err != nil
			return err
		}, before)
		if err == nil {
			err = s.rewindDetector.recordAcknowledgedBatch(era, &store.Batch{Steps: []*store.StepWrite{w}})
			sent = sent || err != nil
		} else if reply, ok := errors.AsType[*ambiguousCommitError](err); ok {
			sent, err = true, reply.error
		}
		if err == nil || its || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked) || ctx.Err() != nil {
			return sent, err
		}
		if mayFailOnEveryRetry(err) {
			doubts++
		}
		if before = err; doubts >= maxAmbiguousTries || !sleepJittered(ctx, wait) {
			return sent, err
		}
	}
}

// ambiguousCommitError is the error of a COMMIT that may have taken effect.
type ambiguousCommitError struct{ error }

// Unwrap returns the error of the COMMIT.
func (e *ambiguousCommitError) Unwrap() error { return e.error }

// commitTxStep commits a transaction that has written its checkpoint. It waits for the reply even if ctx
// ends, because a COMMIT that was sent cannot be withdrawn.
func (s *database) commitTxStep(ctx context.Context, tx pgx.Tx) error {
	if ctx.Err() != nil {
		return s.wrapError(ctx, "commit", ctx.Err())
	}
	lasting, end := bridge.Outlast(ctx)
	defer end()
	tracked, landed := s.hosts.trackCall(lasting, s.hosts.addressOf(tx.Conn()), true)
	err := tx.Commit(tracked)
	left := landed()
	if err == nil {
		if wasCommitUnreplicated(tx.Conn().PgConn()) {
			return &ambiguousCommitError{s.wrapError(lasting, "commit", errUnreplicated)}
		}
		return nil
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.SeverityUnlocalized == "ERROR" {
		if !maySucceedOnRetry(pg) { // a deferred constraint or trigger of the user
			return fmt.Errorf("postgres: commit: %w: %w", store.ErrBadData, err)
		}
		return s.wrapError(lasting, "commit", err)
	}
	if left {
		err = hostChangedError(err)
	}
	return &ambiguousCommitError{s.wrapError(lasting, "commit", err)}
}

// resolveLostCommit returns nil if a COMMIT without a reply took effect, err if it did not, and store.ErrInDoubt if the context of
// bridge.Outlast ends before this is known. It executes the transaction again without the function: the insert of the checkpoint
// waits as long as the former transaction holds the key.
func (s *database) resolveLostCommit(ctx context.Context, w *store.StepWrite, err error) error {
	lasting, end := bridge.Outlast(ctx)
	defer end()
	for wait := firstTxRetryDelay; ; wait = min(2*wait, maxTxRetryDelay) {
		w.Outcome, w.RecordedStep = 0, nil
		era := s.rewindDetector.rewindCount.Load()
		failed := s.executeTxStepOnce(lasting, w, nil, err)
		if failed == nil {
			failed = s.rewindDetector.recordAcknowledgedBatch(era, &store.Batch{Steps: []*store.StepWrite{w}})
		}
		switch {
		case failed == nil:
			return nil
		case errors.Is(failed, errCommitWithoutEffect):
			w.Outcome = 0
			if ctx.Err() != nil {
				return s.wrapError(ctx, "commit", err)
			}
			return err
		case !errors.Is(failed, store.ErrUnavailable) && !errors.Is(failed, store.ErrLocked) && !errors.Is(failed, store.ErrRejected) || !sleepJittered(lasting, wait):
			return fmt.Errorf("postgres: commit: %w: %w: the reply was lost (%v), and the step could not be looked for: %v", //nolint:errorlint // the ends of contexts say nothing about the commit
				store.ErrUnavailable, store.ErrInDoubt, err, failed)
		}
	}
}

// errCommitWithoutEffect rolls back the transaction of resolveLostCommit: the checkpoint did not exist.
var errCommitWithoutEffect = errors.New("the COMMIT did not take effect")

// mayFailOnEveryRetry reports whether a transaction may end with this error each time: because of a timeout that the user has set, a
// lock of another transaction, or a prepared statement that the server has lost.
func mayFailOnEveryRetry(err error) bool {
	return hasSQLState(err, "57014", "55P03", "26000", "0A000") || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// sleepJittered waits for a random time between 0.5 and 1.5 times wait. It returns false if ctx ends first.
func sleepJittered(ctx context.Context, wait time.Duration) bool {
	return sleepCtx(ctx, wait/2+rand.N(wait))
}

// wasRolledBack reports whether work failed because the database rolled its transaction back, or the connection
// was lost. Any other error is the function's own.
func wasRolledBack(ctx context.Context, tx pgx.Tx, err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && maySucceedOnRetry(pg) || ctx.Err() == nil && tx.Conn().IsClosed() || errors.Is(context.Cause(ctx), errHostChanged)
}

// maySucceedOnRetry reports whether the error of a user's statement may disappear when the transaction is retried.
// For the engine's own statements, storeErrorOfState decides differently: an existing key, for example, only means that the first
// copy of a start is still committing.
func maySucceedOnRetry(err *pgconn.PgError) bool {
	switch err.Code {
	case "23505", sqlStateAbortedTx, sqlStateReadOnly: // sqlStateReadOnly: the function made its transaction read-only
		return false
	case "0A000": // a plan that became invalid with its table; otherwise a feature that is never supported
		return isPlanInvalid(err)
	case "55P03", "53200", "53400":
		return true
	}
	return storeErrorOfState(err.Code) == store.ErrUnavailable && !strings.HasPrefix(err.Code, "55")
}

// txMisuseError returns the error for a function that misused its transaction, or nil if err has another cause.
func txMisuseError(err error) error {
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return errEndedItself
	case hasSQLState(err, sqlStateAbortedTx):
		return fmt.Errorf("%w: a statement of a Tx step failed, and its function went on as if it had not: return that error", durable.ErrInvalidConfig)
	case hasSQLState(err, sqlStateReadOnly):
		return fmt.Errorf("%w: the function of a Tx step made its transaction read-only, so the step's checkpoint cannot be written: leave out SET TRANSACTION READ ONLY", durable.ErrInvalidConfig)
	}
	return nil
}

// errEndedItself is returned when the function committed or rolled back, by a method or by a statement.
var errEndedItself = fmt.Errorf("%w: the function of a Tx step ended its transaction itself: leave Commit and Rollback to the step", durable.ErrInvalidConfig)

// errLeftRowsOpen is returned when the function returned before it had read or closed the rows of a query, or the results of a batch.
var errLeftRowsOpen = fmt.Errorf("%w: the function of a Tx step left the rows of a query open, so the step's checkpoint cannot be written: call Close of the rows, or of the batch results, before the function returns", durable.ErrInvalidConfig)

// sqlStateAbortedTx is the SQLSTATE of a statement that follows a failed statement in the same transaction.
const sqlStateAbortedTx = "25P02"

// executeTxStepOnce executes one transaction. If before, the error of the former try, is not nil, executeTxStepOnce
// first checks whether the former try took effect, because its reply may have been lost. If the former
// COMMIT is still in progress, it holds the checkpoint's key, and this transaction waits for it. If work
// is nil, executeTxStepOnce only checks, and returns errCommitWithoutEffect if no COMMIT took effect.
func (s *database) executeTxStepOnce(ctx context.Context, w *store.StepWrite, work func(context.Context, pgx.Tx) error, before error) (err error) {
	if before != nil {
		states, err := s.readBackStepWrites(s.roundTripFuncOnEnginePool(ctx), []*store.StepWrite{w})
		if err != nil {
			return err
		}
		if row := states[0].row; row != nil && row.Status.IsTerminal() {
			w.Outcome, w.RecordedStep = store.AlreadyRecorded, row
			return nil
		}
	}
	conn, err := s.acquireUserConn(ctx)
	if err != nil {
		return s.wrapError(ctx, "begin", err)
	}
	defer conn.Release()
	outer := ctx
	ctx, landed := s.hosts.trackCall(ctx, s.hosts.addressOf(conn.Conn()), true)
	defer func() {
		_, sent := errors.AsType[*ambiguousCommitError](err)
		if landed() && err != nil && !sent && !errors.Is(err, store.ErrUnavailable) {
			err = s.wrapError(outer, "transaction", hostChangedError(err))
		}
	}()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: s.statements.txStepBegin}) // the isolation level is the session's default
	if err != nil {
		return s.wrapError(ctx, "begin", err)
	}
	defer func() {
		// This also runs when ctx has ended, because the connection must leave its transaction. After a
		// commit it does nothing; if it fails, the pool drops the connection.
		_ = tx.Rollback(context.WithoutCancel(ctx))
	}()
	if hasSQLState(before, "40001") {
		// At REPEATABLE READ and above, a renewal of the lease after the first statement makes each try
		// of a long function fail. If the first statement locks the run, the lease is not renewed.
		if _, err := tx.Exec(ctx, s.statements.txStepRunLock, store.ShardOf(w.Step.Run), pgUUID(w.Step.Run), w.Step.Epoch.EncodeInt64()); err != nil {
			return s.wrapError(ctx, "hold the run", err)
		}
	}
	if work != nil {
		if err := work(ctx, tx); err != nil {
			return err
		}
		if tx.Conn().PgConn().IsBusy() { // each retry would end in the same way, and no error of the server would show the reason
			return errLeftRowsOpen
		}
		if tx.Conn().PgConn().TxStatus() == 'I' {
			return errEndedItself
		}
	}
	if err := s.writeStepInTx(ctx, tx, w, true); err != nil {
		if misuse := txMisuseError(err); misuse != nil {
			return misuse
		}
		return err
	}
	if w.Outcome == store.AlreadyRecorded {
		return s.awaitStandbys(ctx)
	}
	if w.Outcome != store.Written {
		return nil
	}
	if work == nil {
		return errCommitWithoutEffect
	}
	return s.commitTxStep(ctx, tx)
}
