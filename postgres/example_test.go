package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/exampletest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// shop is a program with a table of its own in the database.
type shop struct {
	pool   *pgxpool.Pool
	store  *postgres.Store
	engine *durable.Engine
	t      *exampletest.T
}

func open(workflows ...durable.Definition) *shop {
	s := &shop{t: exampletest.New()}
	var err error
	if s.pool, err = pgxpool.New(context.Background(), pgtest.URL(s.t)); err != nil {
		log.Fatal(err)
	}
	if _, err := s.pool.Exec(context.Background(), "CREATE TABLE booking (name text PRIMARY KEY)"); err != nil {
		log.Fatal(err)
	}
	if s.store, err = postgres.New(s.pool); err != nil {
		log.Fatal(err)
	}
	if s.engine, err = durable.New(s.store, durable.Config{Workflows: workflows}); err != nil {
		log.Fatal(err)
	}
	return s
}

func (s *shop) close() {
	if err := s.store.Close(); err != nil {
		log.Fatal(err)
	}
	s.pool.Close()
	s.t.End()
}

func ExampleOpen() {
	t := exampletest.New()
	defer t.End()
	url := pgtest.URL(t) // such as "postgres://shop@db.example.org/shop"
	ctx := context.Background()
	store, err := postgres.Open(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{double}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(double.Call(ctx, engine, 21))
	// Output: 42 <nil>
}

// The store uses the program's own pool, which is closed after the store.
func ExampleNew() {
	t := exampletest.New()
	defer t.End()
	pool, err := pgxpool.New(context.Background(), pgtest.URL(t))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	store, err := postgres.New(pool)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Name(), store.Close())
	// Output: postgres <nil>
}

// Two installations share a database. The second one saves the connection on which a worker listens, and keeps the
// synchronous_commit of the database.
func ExampleSchema() {
	t := exampletest.New()
	defer t.End()
	url := pgtest.URL(t)
	ctx := context.Background()
	shop, err := postgres.Open(ctx, url, postgres.Schema("shop"))
	if err != nil {
		log.Fatal(err)
	}
	bank, err := postgres.Open(ctx, url, postgres.Schema("bank"), postgres.WithoutListen(), postgres.AllowAsyncCommit())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shop.Close(), bank.Close())
	// Output: <nil> <nil>
}

// A program that must not create tables refuses a database that has none. The role "owner" may own the tables.
func ExampleWithoutMigrations() {
	t := exampletest.New()
	defer t.End()
	_, err := postgres.Open(context.Background(), pgtest.URL(t), postgres.WithoutMigrations(), postgres.OwnedBy("owner"))
	fmt.Println(errors.Is(err, durable.ErrSchema))
	// Output: true
}

// The row and the record that the step is done are one transaction: the row is written exactly once.
func ExampleTx() {
	book := durable.Define("book", func(c *durable.Ctx, name string) (int64, error) {
		return postgres.Tx(c, "book", func(ctx context.Context, tx pgx.Tx) (int64, error) {
			done, err := tx.Exec(ctx, "INSERT INTO booking (name) VALUES ($1)", name)
			return done.RowsAffected(), err
		})
	})
	s := open(book)
	defer s.close()
	fmt.Println(book.Call(context.Background(), s.engine, "ada"))
	// Output: 1 <nil>
}

// The run exists once the caller's own transaction has committed.
func ExampleStartTx() {
	ship := durable.Define("ship", func(_ *durable.Ctx, order string) (string, error) { return order + " is on its way", nil })
	s := open(ship)
	defer s.close()
	ctx := context.Background()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO booking (name) VALUES ($1)", "ada"); err != nil {
			return err
		}
		_, err := postgres.StartTx(ctx, tx, s.engine, ship, "order-1", durable.ID("order-1"))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ship.Call(ctx, s.engine, "order-1", durable.ID("order-1")))
	// Output: order-1 is on its way <nil>
}

// The signal exists once the caller's own transaction has committed.
func ExampleSignalTx() {
	wait := durable.Define("wait", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("paid by") })
	s := open(wait)
	defer s.close()
	ctx := context.Background()
	client, err := durable.New(s.store, durable.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := wait.Start(ctx, client, 0, durable.ID("order-1")); err != nil {
		log.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO booking (name) VALUES ($1)", "ada"); err != nil {
			return err
		}
		return postgres.SignalTx(ctx, tx, s.engine, "order-1", "paid by", "ada")
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(wait.Call(ctx, s.engine, 0, durable.ID("order-1")))
	// Output: ada <nil>
}

func ExampleStore_OpenSchema() {
	t := exampletest.New()
	defer t.End()
	url := pgtest.URL(t) // such as "postgres://shop@db.example.org/shop"
	ctx := context.Background()
	store, err := postgres.Open(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	hello := durable.Define("hello", func(_ *durable.Ctx, name string) (string, error) { return "hello " + name, nil })
	for _, tenant := range []string{"acme", "globex"} {
		schema, err := store.OpenSchema(ctx, tenant)
		if err != nil {
			log.Fatal(err)
		}
		defer schema.Close()
		engine, err := durable.New(schema, durable.Config{Workflows: []durable.Definition{hello}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(hello.Call(ctx, engine, tenant, durable.ID("greeting"))) // each schema has IDs of its own
	}
	// Output:
	// hello acme <nil>
	// hello globex <nil>
}
