package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

//go:embed effect_table.sql
var effectTable string

//go:embed effect_insert_postgres.sql
var effectInsertPostgres string

//go:embed effect_insert_sqlite.sql
var effectInsertSQLite string

//go:embed effects.sql
var effectsQuery string

// place holds the database of a soak, and a folder for files.
type place struct {
	Store   string // postgres or sqlite
	Address string // a URL or a file
	Folder  string

	servers *servers      // nil for SQLite, and in workers
	pool    *pgxpool.Pool // of the controller; nil for SQLite, and in workers
}

// transaction calls a Tx step that writes one row.
type transaction = func(c *durable.Ctx, name string, value func(context.Context) string) (string, error)

// provide creates a place.
func provide(ctx context.Context, set settings) (place, error) {
	folder, err := os.MkdirTemp("", "durable-soak-")
	if err != nil {
		return place{}, err
	}
	p := place{Store: set.store, Folder: folder, Address: filepath.Join(folder, "durable.db")}
	if set.store == "postgres" {
		p.servers, err = startServers(ctx, set.seed)
		if err == nil {
			p.Address = p.servers.address
			p.pool, err = pgxpool.New(ctx, p.Address)
		}
		if err != nil {
			return place{}, errors.Join(err, p.remove())
		}
	}
	if err := p.prepare(ctx); err != nil {
		return place{}, errors.Join(err, p.remove())
	}
	return p, nil
}

// prepare migrates the database, and creates the table of the transactions' effects.
func (p place) prepare(ctx context.Context) error {
	s, _, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if own, ok := s.(*sqlite.Store); ok {
		_, err := own.Writer().ExecContext(ctx, effectTable)
		return err
	}
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, effectTable)
	return err
}

// open connects to the database. It returns the store, and the function that calls a Tx step on it.
func (p place) open(ctx context.Context) (durable.Store, transaction, error) {
	if p.Store == "sqlite" {
		s, err := sqlite.Open(p.Address)
		return s, func(c *durable.Ctx, name string, value func(context.Context) string) (string, error) {
			return sqlite.Tx(c, name, func(ctx context.Context, tx *sql.Tx) (string, error) {
				v := value(ctx)
				_, err := tx.ExecContext(ctx, effectInsertSQLite, c.RunID(), name, v)
				return v, err
			}, durable.Retry(retryPolicy))
		}, err
	}
	s, err := postgres.Open(ctx, p.Address)
	return s, func(c *durable.Ctx, name string, value func(context.Context) string) (string, error) {
		return postgres.Tx(c, name, func(ctx context.Context, tx pgx.Tx) (string, error) {
			v := value(ctx)
			_, err := tx.Exec(ctx, effectInsertPostgres, c.RunID(), name, v)
			return v, err
		}, durable.Retry(retryPolicy))
	}, err
}

// effect is one row that a transaction wrote.
type effect struct{ run, step, value string }

// effects returns all rows that transactions wrote.
func (p place) effects(ctx context.Context, s durable.Store) (all []effect, err error) {
	scan := func(row interface{ Scan(...any) error }) error {
		var e effect
		err := row.Scan(&e.run, &e.step, &e.value)
		all = append(all, e)
		return err
	}
	if own, ok := s.(*sqlite.Store); ok {
		rows, err := own.Writer().QueryContext(ctx, effectsQuery)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return nil, err
			}
		}
		return all, rows.Err()
	}
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, effectsQuery)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return nil, err
		}
	}
	return all, rows.Err()
}

func (p place) ledger() (*ledger, error) { return openLedger(filepath.Join(p.Folder, "ledger.jsonl")) }

// readReplicated repeats read until no failover can take back what it has read. On SQLite it calls read
// once.
func (p place) readReplicated(ctx context.Context, read func() error) error {
	for {
		if p.servers == nil {
			return read()
		}
		if done, err := p.servers.replicated(ctx, p.pool, read); done || ctx.Err() != nil {
			return err
		}
	}
}

// logger returns a logger of warnings to standard error if DURABLE_SOAK_LOG is set, and nil otherwise: faults
// cause many warnings.
func (p place) logger() *slog.Logger {
	if os.Getenv("DURABLE_SOAK_LOG") == "" {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// remove stops the servers and deletes the folder.
func (p place) remove() error {
	var err error
	if p.pool != nil {
		p.pool.Close()
	}
	if p.servers != nil {
		err = p.servers.close()
	}
	return errors.Join(err, os.RemoveAll(p.Folder))
}
