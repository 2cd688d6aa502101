package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

var (
	//go:embed size.postgres.sql
	sizeOfTables string
	//go:embed checkpoint.sqlite.sql
	checkpoint string
)

// place is a database, or a schema of a database. It is empty at first, and is removed at the end.
type place struct {
	store   string // sqlite or postgres
	address string // a file or a URL
	schema  string // of the tables in PostgreSQL
	remove  func() error
}

// provide creates a place: for SQLite a file in a new folder; for PostgreSQL a schema in the
// database of DATABASE_URL, or in a server that lives as long as this process.
func provide(ctx context.Context, store string) (*place, error) {
	switch store {
	case "sqlite":
		folder, err := os.MkdirTemp("", "durable-sleepers-")
		if err != nil {
			return nil, err
		}
		return &place{store: store, address: filepath.Join(folder, "sleepers.db"), remove: func() error { return os.RemoveAll(folder) }}, nil
	case "postgres":
		p := &place{store: store, address: os.Getenv("DATABASE_URL"), schema: fmt.Sprintf("durable_sleepers_%d", os.Getpid())}
		p.remove = p.drop
		if p.address != "" {
			return p, nil
		}
		fmt.Println("starting a PostgreSQL server of its own")
		server, err := pgtest.Start(ctx, pgtest.Options{Dir: os.TempDir()})
		if err != nil {
			return nil, err
		}
		p.address, p.remove = server.URL(), server.Close
		return p, nil
	}
	return nil, fmt.Errorf("the store %q is not known: use -store=sqlite, -store=postgres or -store=all", store)
}

// open connects to the place, and creates the tables.
func (p *place) open(ctx context.Context) (durable.Store, error) {
	if p.store == "sqlite" {
		return sqlite.Open(p.address)
	}
	return postgres.Open(ctx, p.address, postgres.Schema(p.schema))
}

// size returns the bytes of the database: of its file, after all data was moved into it, or of its
// tables with their indexes.
func (p *place) size(ctx context.Context) (bytes int64, err error) {
	if p.store == "postgres" {
		conn, err := pgx.Connect(ctx, p.address)
		if err != nil {
			return 0, err
		}
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, sizeOfTables, p.schema).Scan(&bytes)
		return bytes, err
	}
	if err := p.settle(ctx); err != nil {
		return 0, fmt.Errorf("move the log of %s into it: %w", p.address, err)
	}
	for _, name := range []string{p.address, p.address + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		bytes += info.Size()
	}
	return bytes, nil
}

// settle moves SQLite's write-ahead log into the file. It uses a connection of its own, with the
// driver that package sqlite registers.
func (p *place) settle(ctx context.Context) error {
	db, err := sql.Open("sqlite", p.address)
	if err != nil {
		return err
	}
	var busy, logged, moved int
	return errors.Join(db.QueryRowContext(ctx, checkpoint).Scan(&busy, &logged, &moved), db.Close())
}

// drop drops the schema, because the database may belong to somebody else.
func (p *place) drop() error {
	ctx := context.Background() // the schema is dropped even after an interrupt
	conn, err := pgx.Connect(ctx, p.address)
	if err != nil {
		return errors.New("the schema " + p.schema + " could not be dropped: the database cannot be reached")
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{p.schema}.Sanitize()+" CASCADE")
	return err
}
