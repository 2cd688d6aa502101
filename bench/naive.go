package main

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/store"
)

// The naive design uses one transaction for each step: it locks the run, executes the step, inserts its
// result, and commits. Each caller has a connection of its own, up to a limit. The naive design does
// not record the end of the run, and has no leases and no protection against crashes.

// naiveConns is the maximal number of connections of the naive design. With more, PostgreSQL becomes
// slower on a machine with few processors.
const naiveConns = 50

// naive measures the naive design.
func (b *bench) naive(at *site, callers int) (*sample, error) {
	step, done, err := at.textbook(b.ctx, callers)
	if err != nil {
		return nil, err
	}
	names, output := stepNames(b.steps), newReceipt(b.payload).encode()
	o, err := b.load(callers).run(b.ctx, func() (caller, error) {
		return func(did func() bool) error {
			run := store.NewUUID(0)
			for i, name := range names {
				if err := step(run, i == 0, name, output); err != nil {
					return err
				}
				if !did() {
					return nil
				}
			}
			return nil
		}, nil
	})
	if err = errors.Join(err, done()); err != nil {
		return nil, err
	}
	return o.sample(b.steps), nil
}

// naiveStep executes a step of a run that may be new.
type naiveStep func(run uuid.UUID, first bool, name string, output []byte) error

func (at *site) textbook(ctx context.Context, callers int) (naiveStep, func() error, error) {
	if at.pg == nil {
		return at.liteTextbook(ctx)
	}
	cfg, err := pgxpool.ParseConfig(at.rivalAddress)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = int32(min(callers, naiveConns))
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	create, lock, insert := statement("naive_run.postgres.sql"), statement("naive_lock.postgres.sql"), statement("naive_step.postgres.sql")
	step := func(run uuid.UUID, first bool, name string, output []byte) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if first {
				if _, err := tx.Exec(ctx, create, run); err != nil {
					return err
				}
			}
			var status string
			if err := tx.QueryRow(ctx, lock, run).Scan(&status); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, insert, run, name, output)
			return err
		})
	}
	return step, func() error { pool.Close(); return nil }, nil
}

// liteTextbook is textbook for SQLite. It uses one connection, because SQLite has one writer, and
// several connections would compete for the file's lock.
func (at *site) liteTextbook(ctx context.Context) (naiveStep, func() error, error) {
	db, err := at.file(at.rivalAddress)
	if err != nil {
		return nil, nil, err
	}
	var prepared [3]*sql.Stmt
	for i, file := range []string{"naive_run.sqlite.sql", "naive_lock.sqlite.sql", "naive_step.sqlite.sql"} {
		if prepared[i], err = db.PrepareContext(ctx, statement(file)); err != nil {
			return nil, nil, errors.Join(err, db.Close())
		}
	}
	create, lock, insert := prepared[0], prepared[1], prepared[2]
	step := func(run uuid.UUID, first bool, name string, output []byte) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // nothing, once it has committed
		if first {
			if _, err := tx.StmtContext(ctx, create).ExecContext(ctx, run[:]); err != nil {
				return err
			}
		}
		var status string
		if err := tx.StmtContext(ctx, lock).QueryRowContext(ctx, run[:]).Scan(&status); err != nil {
			return err
		}
		if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, run[:], name, output); err != nil {
			return err
		}
		return tx.Commit()
	}
	return step, db.Close, nil
}
