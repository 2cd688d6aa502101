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
const addressVariable = "DURABLE_DEMO_ADDRESS"

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

// fresh returns a place of its own for one run.
func (p place) fresh(name string) place {
	if p.Store == "sqlite" {
		p.Address = filepath.Join(p.Address, name+".db")
	} else {
		p.Schema = fmt.Sprintf("durable_demo_%s_%d", name, os.Getpid())
	}
	return p
}

// provide returns where fresh places can be created: the folder for SQLite; for PostgreSQL the
// database of DATABASE_URL, or a server that lives as long as this process.
func provide(store, folder string) (base place, done func() error, err error) {
	base, done = place{Store: store, Address: folder}, func() error { return nil }
	if store != "postgres" {
		return base, done, nil
	}
	if base.Address = os.Getenv("DATABASE_URL"); base.Address != "" {
		return base, done, nil
	}
	fmt.Println("starting a PostgreSQL server of its own for the demo")
	server, err := pgtest.Start(context.Background(), pgtest.Options{})
	if err != nil {
		return base, done, err
	}
	base.Address = server.URL()
	return base, server.Close, nil
}

// remove drops the schema of a fresh place in PostgreSQL, because the database may belong to
// somebody else.
func (p place) remove() error {
	if p.Store != "postgres" {
		return nil
	}
	ctx := context.Background() // the schema is dropped even after an interrupt
	conn, err := pgx.Connect(ctx, p.Address)
	if err != nil {
		return errors.New("the schema " + p.Schema + " could not be dropped: the database cannot be reached")
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{p.Schema}.Sanitize()+" CASCADE")
	return err
}
