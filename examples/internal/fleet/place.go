// Package fleet starts the worker processes of an example, and gives them a database.
package fleet

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
// a worker. The address is not an argument, which other users could read: a URL may contain a password.
const addressVariable = "DURABLE_EXAMPLE_ADDRESS"

// Place says where runs are stored.
type Place struct {
	Store   string // sqlite or postgres
	Address string // a file or a URL
	Schema  string // of the tables in PostgreSQL

	server *pgtest.Server // that Provide has started; nil: none
}

// Inherited returns the place that the parent has passed to this worker process.
func Inherited(store, schema string) Place {
	return Place{Store: store, Address: os.Getenv(addressVariable), Schema: schema}
}

// Open connects to the place, and creates the tables if they do not exist.
func (p Place) Open(ctx context.Context) (durable.Store, error) {
	switch p.Store {
	case "sqlite":
		return sqlite.Open(p.Address)
	case "postgres":
		return postgres.Open(ctx, p.Address, postgres.Schema(p.Schema))
	}
	return nil, fmt.Errorf("the store %q is not known: use -store=sqlite or -store=postgres", p.Store)
}

// Provide creates a fresh place for the example: for SQLite a file in the folder; for PostgreSQL a schema in
// the database of DATABASE_URL, or on a server that lives as long as this process. done removes it.
func Provide(example, store, folder string) (p Place, done func() error, err error) {
	if store != "postgres" {
		return Place{Store: store, Address: filepath.Join(folder, example+".db")}, func() error { return nil }, nil
	}
	p = Place{Store: store, Address: os.Getenv("DATABASE_URL"), Schema: fmt.Sprintf("durable_%s_%d", example, os.Getpid())}
	if p.Address != "" {
		return p, p.Remove, nil
	}
	fmt.Printf("starting a PostgreSQL server of its own for %s\n", example)
	server, err := pgtest.Start(context.Background(), pgtest.Options{})
	if err != nil {
		return p, nil, err
	}
	p.Address, p.server = server.URL(), server
	return p, server.Close, nil
}

// OwnsServer reports whether the database is a server that [Provide] has started.
func (p Place) OwnsServer() bool { return p.server != nil }

// KillServer sends SIGKILL to the server that [Provide] has started, and starts it again on the same files.
func (p Place) KillServer(ctx context.Context) error {
	if err := p.server.Kill9(); err != nil {
		return err
	}
	return p.server.Restart(ctx)
}

// Fresh returns another place in the same folder or database. Remove removes it.
func (p Place) Fresh(name string) Place {
	if p.Store == "sqlite" {
		p.Address = filepath.Join(filepath.Dir(p.Address), name+".db")
	} else {
		p.Schema += "_" + name
	}
	return p
}

// Remove drops the schema of a place in PostgreSQL, because the database may belong to somebody else.
func (p Place) Remove() error {
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
