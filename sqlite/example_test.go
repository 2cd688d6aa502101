package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// folder returns a temporary folder. A program uses a permanent one.
func folder() (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "durable-example")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() {
		if err := os.RemoveAll(dir); err != nil {
			log.Fatal(err)
		}
	}
}

// open returns a store in a temporary file, with a table of the program's own, and an engine.
func open(workflows ...durable.Definition) (store *sqlite.Store, engine *durable.Engine, end func()) {
	dir, remove := folder()
	store, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := store.Writer().Exec("CREATE TABLE booking (name TEXT PRIMARY KEY)"); err != nil {
		log.Fatal(err)
	}
	engine, err = durable.New(store, durable.Config{Workflows: workflows})
	if err != nil {
		log.Fatal(err)
	}
	return store, engine, func() {
		if err := store.Close(); err != nil {
			log.Fatal(err)
		}
		remove()
	}
}

func ExampleOpen() {
	dir, remove := folder()
	defer remove()
	store, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{double}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(double.Call(context.Background(), engine, 21))
	// Output: 42 <nil>
}

// Commits of this store survive a crash of the process. The last ones can be lost in a power failure.
func ExampleSynchronous() {
	dir, remove := folder()
	defer remove()
	store, err := sqlite.Open(filepath.Join(dir, "shop.db"), sqlite.Synchronous(sqlite.Normal), sqlite.BusyTimeout(time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Name(), store.Close())
	// Output: sqlite <nil>
}

// A program that must not create tables refuses a file that has none.
func ExampleWithoutMigrations() {
	dir, remove := folder()
	defer remove()
	_, err := sqlite.Open(filepath.Join(dir, "shop.db"), sqlite.WithoutMigrations())
	fmt.Println(errors.Is(err, durable.ErrSchema))
	// Output: true
}

// The row and the record that the step is done are one transaction: the row is written exactly once.
func ExampleTx() {
	book := durable.Define("book", func(c *durable.Ctx, name string) (int64, error) {
		return sqlite.Tx(c, "book", func(ctx context.Context, tx *sql.Tx) (int64, error) {
			done, err := tx.ExecContext(ctx, "INSERT INTO booking (name) VALUES (?)", name)
			if err != nil {
				return 0, err
			}
			return done.RowsAffected()
		})
	})
	_, engine, end := open(book)
	defer end()
	fmt.Println(book.Call(context.Background(), engine, "ada"))
	// Output: 1 <nil>
}

// The run exists once the caller's own transaction has committed.
func ExampleStartTx() {
	ship := durable.Define("ship", func(_ *durable.Ctx, order string) (string, error) { return order + " is on its way", nil })
	store, engine, end := open(ship)
	defer end()
	ctx := context.Background()

	order := func(id string, end func(*sql.Tx) error) error {
		tx, err := store.Writer().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // has no effect after the commit
		if _, err := tx.ExecContext(ctx, "INSERT INTO booking (name) VALUES (?)", id); err != nil {
			return err
		}
		if _, err := sqlite.StartTx(ctx, tx, engine, ship, id, durable.ID(id)); err != nil {
			return err
		}
		return end(tx)
	}
	if err := errors.Join(order("order-1", (*sql.Tx).Rollback), order("order-2", (*sql.Tx).Commit)); err != nil {
		log.Fatal(err)
	}
	_, err := engine.Get(ctx, "order-1")
	fmt.Println(errors.Is(err, durable.ErrNotFound))
	fmt.Println(ship.Call(ctx, engine, "order-2", durable.ID("order-2")))
	// Output:
	// true
	// order-2 is on its way <nil>
}

// The signal exists once the caller's own transaction has committed.
func ExampleSignalTx() {
	wait := durable.Define("wait", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("paid by") })
	store, engine, end := open(wait)
	defer end()
	ctx := context.Background()
	client, err := durable.New(store, durable.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := wait.Start(ctx, client, 0, durable.ID("order-1")); err != nil {
		log.Fatal(err)
	}

	tx, err := store.Writer().BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback() // has no effect after the commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO booking (name) VALUES (?)", "ada"); err != nil {
		log.Fatal(err)
	}
	if err := sqlite.SignalTx(ctx, tx, engine, "order-1", "paid by", "ada"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(wait.Call(ctx, engine, 0, durable.ID("order-1")))
	// Output: ada <nil>
}
