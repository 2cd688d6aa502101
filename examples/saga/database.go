package main

import (
	"context"
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

// addressVariable is the environment variable in which the parent passes the database's address to
// a worker.
const addressVariable = "DURABLE_SAGA_ADDRESS"

// place says where runs are stored.
type place struct {
	Store   string // sqlite or postgres
	Address string // a file or a URL
	Schema  string // of the tables in PostgreSQL
}

// open connects to the place, and creates the tables if they do not exist.
func (p place) open(ctx context.Context) (durable.Store, error) {
	switch p.Store {
	case "sqlite":
		return sqlite.Open(p.Address)
	case "postgres":
		return postgres.Open(ctx, p.Address, postgres.Schema(p.Schema))
	}
	return nil, fmt.Errorf("the store %q is not known: use -store=sqlite or -store=postgres", p.Store)
}

// provide creates a fresh place: for SQLite a file in the folder; for PostgreSQL a schema in the
// database of DATABASE_URL, or on a server that lives as long as this process.
func provide(store, folder string) (p place, done func() error, err error) {
	if store != "postgres" {
		return place{Store: store, Address: filepath.Join(folder, "saga.db")}, func() error { return nil }, nil
	}
	p = place{Store: store, Address: os.Getenv("DATABASE_URL"), Schema: fmt.Sprintf("durable_saga_%d", os.Getpid())}
	if p.Address != "" {
		return p, p.remove, nil
	}
	fmt.Println("starting a PostgreSQL server of its own for the saga")
	server, err := pgtest.Start(context.Background(), pgtest.Options{})
	if err != nil {
		return p, nil, err
	}
	p.Address = server.URL()
	return p, server.Close, nil
}

// remove drops the saga's schema, because the database may belong to somebody else.
func (p place) remove() error {
	ctx := context.Background() // the schema is dropped even after an interrupt
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		return errors.New("the schema " + p.Schema + " could not be dropped: the database cannot be reached")
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{p.Schema}.Sanitize()+" CASCADE")
	return err
}
