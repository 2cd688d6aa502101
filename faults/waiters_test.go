package faults

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// counted counts how often the ends of runs are looked for.
type counted struct {
	durable.Store
	looks atomic.Int64
}

func (s *counted) Statuses(ctx context.Context, runs []uuid.UUID) ([]store.Status, error) {
	defer s.looks.Add(1)
	return s.Store.Statuses(ctx, runs)
}

func (s *counted) await(t *testing.T) {
	t.Helper()
	await(t, "a look for the run's end", func() bool { return s.looks.Load() > 0 })
}

// Row 40: the database refuses a privilege. Callers from outside are told so at once, with the
// database's error, however long Config.Patience is: the caller of Result too, who waited already. A
// run that waits for a child goes on waiting, and completes when the privilege is granted again.
func TestRow40_CallersAreToldOfAMissingPrivilege(t *testing.T) {
	t.Parallel()
	db := owned(t, "postgres")
	kids := make(chan string, 1)
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) {
		kids <- c.RunID()
		return c.Receive[int]("go")
	})
	parent := durable.Define("parent", func(c *durable.Ctx, in int) (int, error) { return c.Child("kid", kid, in) })
	// In two processes, so that the parent has to read the kid's end from the database.
	elsewhere := engineOn(t, db.openIn(t), durable.Config{}, kid)
	defer runEngine(t, elsewhere)()
	e := engineOn(t, db.openIn(t), durable.Config{ParkAfter: time.Hour}, parent)
	defer runEngine(t, e)()
	looks := &counted{Store: db.openIn(t)}
	client := engineOn(t, looks, durable.Config{Patience: time.Hour})
	run := start(t, client, parent, 0, durable.ID("r"))
	id := <-kids
	waited := make(chan error, 1)
	go func() { waited <- second(run.Result(bounded(t))) }()
	looks.await(t)

	fault := revoked("SELECT, INSERT, UPDATE", "run")
	fault.turn(t, db, true)
	for what, call := range map[string]func(context.Context) error{
		"the result that was waited for already": func(context.Context) error { return <-waited },
		"the result":                             func(ctx context.Context) error { return second(run.Result(ctx)) },
		"start":                                  func(ctx context.Context) error { return second(parent.Start(ctx, client, 1, durable.ID("s"))) },
		"signal":                                 func(ctx context.Context) error { return client.Signal(ctx, id, "go", 1) },
		"pause":                                  func(ctx context.Context) error { return second(client.Pause(ctx, "r")) },
		"get":                                    func(ctx context.Context) error { return second(client.Get(ctx, "r")) },
		"list":                                   func(ctx context.Context) error { return second(client.List(ctx, durable.Filter{}, durable.Page{})) },
		"tag": func(ctx context.Context) error {
			return client.SetTags(ctx, "r", map[string]string{"shop.kind": "book"})
		},
	} {
		err := call(bounded(t))
		cause, _ := errors.AsType[*pgconn.PgError](err)
		if !errors.Is(err, durable.ErrPermission) || !errors.Is(err, durable.ErrRejected) || cause == nil || cause.Code != "42501" {
			t.Errorf("%s: %v: want ErrPermission with the database's error", what, err)
		}
	}
	fault.turn(t, db, false)

	for _, c := range []struct {
		fault rejection
		call  func(context.Context) error
	}{
		{revoked("INSERT", "run"), func(ctx context.Context) error { return second(parent.Start(ctx, client, 1, durable.ID("s"))) }},
		{revoked("INSERT", "signal"), func(ctx context.Context) error { return client.Signal(ctx, id, "go", 1) }},
		{revoked("UPDATE", "run"), func(ctx context.Context) error { return second(client.Pause(ctx, "r")) }},
	} {
		c.fault.turn(t, db, true)
		err := c.call(bounded(t))
		failed, typed := errors.AsType[*durable.WriteError](err)
		if !errors.Is(err, durable.ErrPermission) || !typed || failed.MayHaveCommitted {
			t.Errorf("%s: %v: want ErrPermission, and that nothing was written", c.fault.name, err)
		}
		c.fault.turn(t, db, false)
	}

	if err := client.Signal(bounded(t), id, "go", 7); err != nil {
		t.Fatal(err)
	}
	if v, err := run.Result(bounded(t)); err != nil || v != 7 {
		t.Errorf("when the privileges were granted again: %d, %v", v, err)
	}
}

// Row 40: a table is missing. The caller of Result is told so after Config.Patience, and gets the
// result if the table is back before.
func TestRow40_CallersOfResultAreToldOfAMissingTable(t *testing.T) {
	onBothOwned(t, func(t *testing.T, db database) {
		w := durable.Define("waits", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		e := engineOn(t, db.openIn(t), durable.Config{}, w)
		defer runEngine(t, e)()
		start(t, e, w, 0, durable.ID("r"))
		results := func(cfg durable.Config) (chan int, chan error) {
			looks := &counted{Store: db.openIn(t)}
			run, err := w.Handle(bounded(t), engineOn(t, looks, cfg), "r")
			if err != nil {
				t.Fatal(err)
			}
			values, errs := make(chan int, 1), make(chan error, 1)
			go func() {
				v, err := run.Result(bounded(t))
				values <- v
				errs <- err
			}()
			looks.await(t)
			return values, errs
		}
		values, errs := results(durable.Config{})
		_, refused := results(durable.Config{Patience: 300 * time.Millisecond})
		fault := renamed("run")
		began := time.Now() // before the first refusal, which may come before turn returns
		fault.turn(t, db, true)
		if err := <-refused; !errors.Is(err, durable.ErrSchema) {
			t.Errorf("%v: want ErrSchema", err)
		}
		took := time.Since(began)
		fault.turn(t, db, false)
		if took < 300*time.Millisecond {
			t.Errorf("it was told after %v, before Patience was over", took)
		}
		if err := e.Signal(bounded(t), "r", "go", 7); err != nil {
			t.Fatal(err)
		}
		if v, err := <-values, <-errs; err != nil || v != 7 {
			t.Errorf("when the table was back: %d, %v", v, err)
		}
		t.Logf("told_after=%v", took.Round(time.Millisecond))
	})
}
