package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// A user's transaction that has signalled a run and stays open delays that run, and no other run.
func TestOpenSignalTxHoldsUpItsRunOnly(t *testing.T) {
	schema := pgtest.Schema(t)
	pool, err := pgxpool.New(within(t), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := newGate()
	held := durable.Define("held", func(c *durable.Ctx, _ int) (string, error) {
		if err := c.Do("first", g.pass); err != nil {
			return "", err
		}
		return c.Receive[string]("word")
	})
	free := durable.Define("free", func(c *durable.Ctx, i int) (int, error) {
		if err := c.Sleep("nap", time.Millisecond); err != nil {
			return 0, err
		}
		return c.Step("s", func(context.Context) (int, error) { return i, nil })
	})
	e := engineOn(t, s, held, free)
	stop := running(t, e)
	defer stop()
	run, err := held.Start(within(t), e, 0, durable.ID("held"))
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	tx, err := pool.Begin(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := postgres.SignalTx(within(t), tx, e, "held", "word", "at last"); err != nil {
		t.Fatal(err)
	}
	close(g.open) // the run continues to its receive, which is blocked
	for i := range 20 {
		other, err := free.Start(within(t), e, i, durable.ID(fmt.Sprint("free-", i)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Result(within(t)); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
	if err := tx.Commit(within(t)); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); got != "at last" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
