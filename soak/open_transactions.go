package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// userTx is an open transaction of a user of the database.
type userTx struct {
	onSQLite   *sql.Tx // one of the two is not nil
	onPostgres pgx.Tx

	signal   func(ctx context.Context, e *durable.Engine, id, payload string) error
	commit   func(context.Context) error
	rollback func(context.Context) error
	lost     func() bool // reports whether its connection has ended
}

// beginUserTx begins a transaction of a user.
func (p place) beginUserTx(ctx context.Context, s durable.Store) (*userTx, error) {
	if own, ok := s.(*sqlite.Store); ok {
		tx, err := own.Writer().BeginTx(ctx, nil)
		if err != nil {
			return nil, err
		}
		return &userTx{
			onSQLite: tx,
			signal: func(ctx context.Context, e *durable.Engine, id, payload string) error {
				return sqlite.SignalTx(ctx, tx, e, id, "word", payload, durable.SignalKey(payload))
			},
			commit:   func(context.Context) error { return tx.Commit() },
			rollback: func(context.Context) error { return tx.Rollback() },
			lost:     func() bool { return false },
		}, nil
	}
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return &userTx{
		onPostgres: tx,
		signal: func(ctx context.Context, e *durable.Engine, id, payload string) error {
			return postgres.SignalTx(ctx, tx, e, id, "word", payload, durable.SignalKey(payload))
		},
		commit:   func(ctx context.Context) error { defer conn.Close(ctx); return tx.Commit(ctx) },
		rollback: func(ctx context.Context) error { defer conn.Close(ctx); return tx.Rollback(ctx) },
		lost:     conn.IsClosed,
	}, nil
}

// startIn starts a run in the transaction.
func startIn[I, O any](ctx context.Context, tx *userTx, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) (*durable.Run[O], error) {
	if tx.onSQLite != nil {
		return sqlite.StartTx(ctx, tx.onSQLite, e, w, in, opts...)
	}
	return postgres.StartTx(ctx, tx.onPostgres, e, w, in, opts...)
}

const (
	// longestOpen is how long a transaction is open at most.
	longestOpen = 3 * time.Second
	// longestOpenSQLite is longestOpen for SQLite, where nobody else can write in the meantime. It
	// is shorter than a lease.
	longestOpenSQLite = 500 * time.Millisecond
	// holder is the number of the client that holds transactions open.
	holder = clientCount + 1
)

// holdOpen starts targets and sends them signals in transactions that stay open for a while, until ctx ends.
func (t *clients) holdOpen(ctx context.Context) error {
	r := rand.New(rand.NewPCG(t.seed, 99))
	for sleepCtx(ctx, time.Duration(r.IntN(1500))*time.Millisecond) == nil {
		if err := t.holdOne(context.WithoutCancel(ctx), r); err != nil {
			return err
		}
	}
	return nil
}

// holdOne starts a target, or sends it a signal, in a transaction that stays open for a while.
// Three of four transactions are committed, and are operations on the target. The others are rolled
// back, and must have no effect. A transaction that a fault ends is not an operation either, unless
// its commit may have succeeded: then the call is repeated.
func (t *clients) holdOne(ctx context.Context, r *rand.Rand) error {
	to, q := t.pickTarget(r), request{Verb: verbStart}
	if r.IntN(4) > 0 {
		q = request{Verb: verbSignal, Word: to.signal(r)}
	}
	longest, commits := longestOpen, r.IntN(4) > 0
	if t.controller.place.servers == nil {
		longest = longestOpenSQLite
	}
	open := time.Duration(r.Int64N(int64(longest)))
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	called := time.Now()
	tx, err := t.controller.place.beginUserTx(ctx, t.controller.store)
	if err != nil {
		return nil // the database is away
	}
	if q.Verb == verbStart {
		_, err = startIn(ctx, tx, t.controller.Engine, collect, 0, durable.ID(to.id))
	} else {
		err = tx.signal(ctx, t.controller.Engine, to.id, q.Word)
	}
	if err != nil {
		lost := tx.lost()
		_ = tx.rollback(ctx) // the transaction has failed already
		for _, expected := range []error{durable.ErrState, durable.ErrNotFound, durable.ErrUnavailable, durable.ErrLocked} {
			lost = lost || errors.Is(err, expected)
		}
		if lost {
			return nil
		}
		return fmt.Errorf("%s %s in an open transaction: %w", q.Verb, to.id, err)
	}
	_ = sleepCtx(ctx, open)
	if !commits {
		if tx.rollback(ctx) == nil {
			t.open++
		}
		return nil
	}
	if err := tx.commit(ctx); err != nil {
		_, err := t.callSince(ctx, to, holder, q, called, true)
		return err
	}
	t.open++
	t.record(to, holder, q, response{Result: resultOK}, called)
	return nil
}
