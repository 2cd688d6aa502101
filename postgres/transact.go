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

// Tx is a step whose writes commit together with its checkpoint, exactly once: fn's
// statements on tx, and the record that the step is done, are one transaction in the
// database that the engine works on, on a connection of the pool given to New (or of
// one made by Open). fn must not commit or roll back itself.
//
// A transaction that the database undid (serialization failure, deadlock, a lost
// connection), or whose COMMIT was not answered, is made again, fn included, until the
// step's context ends; that counts as one attempt. When it ends after COMMIT was sent, the step still returns what the
// database recorded; if that cannot be found out within Config.Patience, the run is held. One that a timeout, a cancel or a lock
// ended is made ten times. An error that fn answers otherwise rolls back and is the step's
// failure. Where the database's default isolation is REPEATABLE READ or above, fn may be
// called once more with the run locked, so that no renewal of its lease comes in between;
// signals to the run wait for its end then.
//
// It answers as durable.Ctx.Step does; durable.ErrInvalidConfig if the engine does not
// work on PostgreSQL.
func Tx[T any](ctx *durable.Ctx, name string, fn func(ctx context.Context, tx pgx.Tx) (T, error), opts ...durable.StepOption) (T, error) {
	var step func(context.Context) (T, error)
	if fn != nil {
		step = func(ctx context.Context) (T, error) { return fn(ctx, bridge.Transaction(ctx).(pgx.Tx)) }
	}
	return ctx.Step(name, step, append(slices.Clip(opts), bridge.TxStep(transact).(durable.StepOption))...)
}

// StartTx starts a run in the caller's own transaction, which must be of the engine's own
// database: the run exists if and when that commits, and workers hear of it then. durable.ErrInvalidConfig is returned
// if tx is nil or has ended.
func StartTx[I, O any](ctx context.Context, tx pgx.Tx, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) (*durable.Run[O], error) {
	insert := bridge.StartTx(func(ctx context.Context, s store.Store, starts []*store.Start) error {
		own, err := mine(s)
		if err != nil {
			return err
		}
		if tx == nil {
			return errNoTransaction
		}
		return ended(own.startIn(ctx, tx, starts))
	})
	return w.Start(ctx, e, in, append(slices.Clip(opts), insert.(durable.StartOption))...)
}

// SignalTx sends a signal in the caller's own transaction, which must be of the engine's own
// database: it is there if and when that commits, and the run is woken then. Until then the
// run can neither end nor receive, so commit soon. Errors as for durable.Engine.Signal, and durable.ErrInvalidConfig if
// tx is nil or has ended.
func SignalTx(ctx context.Context, tx pgx.Tx, e *durable.Engine, id, name string, payload any, opts ...durable.SignalOption) error {
	insert := bridge.SignalTx(func(ctx context.Context, s store.Store, to store.Ref, signal *store.Signal) error {
		own, err := mine(s)
		if err != nil {
			return err
		}
		if tx == nil {
			return errNoTransaction
		}
		return ended(own.signalIn(ctx, tx, to, signal))
	})
	return e.Signal(ctx, id, name, payload, append(slices.Clip(opts), insert.(durable.SignalOption))...)
}

// errNoTransaction is the error of a StartTx or SignalTx without a transaction.
var errNoTransaction = fmt.Errorf("%w: the transaction is nil: pass one that Begin of the pool or of a connection returned", durable.ErrInvalidConfig)

// ended gives the error of a call in a transaction that has ended its kind: another try fails as well.
func ended(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: the transaction was committed or rolled back before this call: call before Commit: %w", durable.ErrInvalidConfig, pgx.ErrTxClosed)
	}
	return err
}

// mine returns the database of a store of this package.
func mine(s store.Store) (*database, error) {
	if opened, ok := s.(*Store); ok {
		s = opened.implementation
	}
	own, ok := s.(*database)
	if !ok {
		return nil, fmt.Errorf("%w: the engine works on %s, and a transaction of postgres was asked for: use the Tx of that store's package", durable.ErrInvalidConfig, s.Name())
	}
	return own, nil
}

const (
	firstAgain = 5 * time.Millisecond
	longAgain  = time.Second
	doubtful   = 10 // how often a transaction is made that may end in the same way each time
)

// transact is the bridge.Transact of this store.
func transact(ctx context.Context, s store.Store, w *store.StepWrite, work func(context.Context) error) error {
	own, err := mine(s)
	if err != nil {
		return err
	}
	sent, err := own.transact(ctx, w, work)
	if err != nil && sent {
		return own.findOut(ctx, w, err)
	}
	return err
}

// transact makes the transaction until it is committed or may not be made again. It also reports whether a COMMIT
// was sent whose outcome is not known, if there is an error.
func (s *database) transact(ctx context.Context, w *store.StepWrite, work func(context.Context) error) (sent bool, _ error) {
	var before error
	doubts := 0
	for wait := firstAgain; ; wait = min(2*wait, longAgain) {
		era := s.timeline.eras.Load()
		its := false // the error is the function's own, whatever it wraps
		err := s.transactOnce(ctx, w, func(ctx context.Context, tx pgx.Tx) error {
			err := work(bridge.WithTransaction(ctx, tx))
			if err != nil && undone(ctx, tx, err) {
				return fmt.Errorf("postgres: transaction: %w: %w", store.ErrUnavailable, err)
			}
			its = err != nil
			return err
		}, before)
		if err == nil {
			err = s.timeline.acknowledge(era, &store.Batch{Steps: []*store.StepWrite{w}})
			sent = sent || err != nil
		} else if reply, ok := errors.AsType[*noReply](err); ok {
			sent, err = true, reply.error
		}
		if err == nil || its || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked) || ctx.Err() != nil {
			return sent, err
		}
		if recurs(err) {
			doubts++
		}
		if before = err; doubts >= doubtful || !rest(ctx, wait) {
			return sent, err
		}
	}
}

// noReply is the error of a COMMIT that may have taken effect.
type noReply struct{ error }

// Unwrap returns the error of the COMMIT.
func (e *noReply) Unwrap() error { return e.error }

// commitStep commits a transaction that has written its checkpoint. It waits for the reply although ctx ends meanwhile: a
// COMMIT that was sent cannot be taken back.
func (s *database) commitStep(ctx context.Context, tx pgx.Tx) error {
	if ctx.Err() != nil {
		return s.wrap(ctx, "commit", ctx.Err())
	}
	lasting, end := bridge.Outlast(ctx)
	defer end()
	tracked, landed := s.hosts.track(lasting, s.hosts.whereIs(tx.Conn()), true)
	err := tx.Commit(tracked)
	left := landed()
	if err == nil {
		if unreplicated(tx.Conn().PgConn()) {
			return &noReply{s.wrap(lasting, "commit", errAlone)}
		}
		return nil
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.SeverityUnlocalized == "ERROR" {
		if !passes(pg) { // a deferred constraint or trigger of the user's
			return fmt.Errorf("postgres: commit: %w: %w", store.ErrBadData, err)
		}
		return s.wrap(lasting, "commit", err)
	}
	if left {
		err = moved(err)
	}
	return &noReply{s.wrap(lasting, "commit", err)}
}

// findOut returns nil if a COMMIT without a reply took effect, err if it did not, and store.ErrInDoubt if that is not
// known within bridge.Outlast. It does what the engine does for another attempt, without the function: the
// checkpoint's key is waited for as long as the transaction holds it.
func (s *database) findOut(ctx context.Context, w *store.StepWrite, err error) error {
	lasting, end := bridge.Outlast(ctx)
	defer end()
	for wait := firstAgain; ; wait = min(2*wait, longAgain) {
		w.Outcome, w.Recorded = 0, nil
		era := s.timeline.eras.Load()
		failed := s.transactOnce(lasting, w, nil, err)
		if failed == nil {
			failed = s.timeline.acknowledge(era, &store.Batch{Steps: []*store.StepWrite{w}})
		}
		switch {
		case failed == nil:
			return nil
		case errors.Is(failed, errNotThere):
			w.Outcome = 0
			if ctx.Err() != nil {
				return s.wrap(ctx, "commit", err)
			}
			return err
		case !errors.Is(failed, store.ErrUnavailable) && !errors.Is(failed, store.ErrLocked) && !errors.Is(failed, store.ErrRejected) || !rest(lasting, wait):
			return fmt.Errorf("postgres: commit: %w: %w: the reply was lost (%v), and the step could not be looked for: %v", //nolint:errorlint // the ends of contexts say nothing about the commit
				store.ErrUnavailable, store.ErrInDoubt, err, failed)
		}
	}
}

// errNotThere undoes the transaction of findOut: the checkpoint was not there.
var errNotThere = errors.New("the COMMIT did not take effect")

// recurs reports whether a transaction that ended so may end so each time: by a timeout of the
// user's, by a lock that another holds, or by what the server has forgotten.
func recurs(err error) bool {
	return hasState(err, "57014", "55P03", "26000", "0A000") || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
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

// undone reports whether work failed because the database undid its transaction, or was lost under
// it; any other error is the function's own.
func undone(ctx context.Context, tx pgx.Tx, err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && passes(pg) || ctx.Err() == nil && tx.Conn().IsClosed() || errors.Is(context.Cause(ctx), errMoved)
}

// passes reports whether what a statement of the user's met may have passed when the transaction is
// made again. kindOfState judges the engine's own statements, for which a key that exists, say,
// is only a start whose first copy still commits.
func passes(err *pgconn.PgError) bool {
	switch err.Code {
	case "23505", aborted, readOnly: // a transaction that began as READ WRITE was made read-only by the function
		return false
	case "0A000": // a plan that went with its table; other things are never supported
		return replanned(err)
	case "55P03", "53200", "53400":
		return true
	}
	return kindOfState(err.Code) == store.ErrUnavailable && !strings.HasPrefix(err.Code, "55")
}

// misused says what a function did with its transaction that it must not, nil if it
// did nothing of the kind.
func misused(err error) error {
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return errEndedItself
	case hasState(err, aborted):
		return fmt.Errorf("%w: a statement of a Tx step failed, and its function went on as if it had not: return that error", durable.ErrInvalidConfig)
	case hasState(err, readOnly):
		return fmt.Errorf("%w: the function of a Tx step made its transaction read-only, so the step's checkpoint cannot be written: leave out SET TRANSACTION READ ONLY", durable.ErrInvalidConfig)
	}
	return nil
}

// errEndedItself is the error of a function that committed or rolled back, by a method or by a statement.
var errEndedItself = fmt.Errorf("%w: the function of a Tx step ended its transaction itself: leave Commit and Rollback to the step", durable.ErrInvalidConfig)

// aborted is the SQLSTATE of a statement after one that failed in the same transaction.
const aborted = "25P02"

// transactOnce makes one transaction. After one that ended with an error it first looks whether
// that one's commit, whose answer may have been lost, took effect after all. One that is
// still on its way then holds the checkpoint's key, and ours waits for it. Without work it only looks, and returns
// errNotThere if no commit took effect.
func (s *database) transactOnce(ctx context.Context, w *store.StepWrite, work func(context.Context, pgx.Tx) error, before error) (err error) {
	if before != nil {
		states, err := s.readSteps(s.onEngine(ctx), []*store.StepWrite{w})
		if err != nil {
			return err
		}
		if row := states[0].step; row != nil && row.Status.Terminal() {
			w.Outcome, w.Recorded = store.Adopted, row
			return nil
		}
	}
	conn, err := s.acquireUsers(ctx)
	if err != nil {
		return s.wrap(ctx, "begin", err)
	}
	defer conn.Release()
	outer := ctx
	ctx, landed := s.hosts.track(ctx, s.hosts.whereIs(conn.Conn()), true)
	defer func() {
		_, sent := errors.AsType[*noReply](err)
		if landed() && err != nil && !sent && !errors.Is(err, store.ErrUnavailable) {
			err = s.wrap(outer, "transaction", moved(err))
		}
	}()
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{BeginQuery: s.sql.txBegin}) // the isolation level is the user's
	if err != nil {
		return s.wrap(ctx, "begin", err)
	}
	defer func() {
		// Also when ctx has ended: the connection must go back out of its transaction.
		// After a commit this does nothing; if it fails, the pool drops the connection.
		_ = tx.Rollback(context.WithoutCancel(ctx))
	}()
	if hasState(before, "40001") {
		// At REPEATABLE READ and above, a renewal of the lease since the first statement undoes each
		// try of a long function. With the run locked from its first statement on, there is none.
		if _, err := tx.Exec(ctx, s.sql.checkpointHold, store.ShardOf(w.Step.RunID), one(w.Step.RunID), w.Step.Epoch.Number()); err != nil {
			return s.wrap(ctx, "hold the run", err)
		}
	}
	if work != nil {
		if err := work(ctx, tx); err != nil {
			return err
		}
		if tx.Conn().PgConn().TxStatus() == 'I' {
			return errEndedItself
		}
	}
	if err := s.checkpoint(ctx, tx, w, true); err != nil {
		if misuse := misused(err); misuse != nil {
			return misuse
		}
		return err
	}
	if w.Outcome == store.Adopted {
		return s.confirm(ctx)
	}
	if w.Outcome != store.Written {
		return nil
	}
	if work == nil {
		return errNotThere
	}
	return s.commitStep(ctx, tx)
}
