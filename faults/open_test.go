package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
)

// slowest is the longest of some durations.
type slowest struct{ ns, n atomic.Int64 }

func (s *slowest) since(began time.Time) {
	s.n.Add(1)
	for took := int64(time.Since(began)); ; {
		if most := s.ns.Load(); took <= most || s.ns.CompareAndSwap(most, took) {
			return
		}
	}
}

func (s *slowest) String() string {
	return fmt.Sprintf("%v of %d", time.Duration(s.ns.Load()).Round(time.Millisecond), s.n.Load())
}

func second[V any](_ V, err error) error { return err }

// Row 43: transactions of users stay open for two seconds, with starts and signals in them, and
// one whose commit takes as long with a step in it. Others that want the same wait for their
// ends. Nobody else waits for longer than a moment, and no caller gets an error but by its own
// context.
func TestRow43_OpenTransactions(t *testing.T) {
	t.Parallel()
	const open, held, strangers, most = 2 * time.Second, 10, 20, 500 * time.Millisecond
	db := fresh(t, "postgres")
	s := db.openIn(t)
	admin := session(t, db.Where)
	sql(t, admin, "CREATE TABLE "+db.Schema+".slow (n integer)")
	sql(t, admin, "CREATE FUNCTION "+db.Schema+".slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$")
	sql(t, admin, "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON "+db.Schema+".slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "+db.Schema+".slow()")

	var steps, starts, named, signals slowest
	others := map[string]*slowest{"steps": &steps, "starts": &starts, "named starts": &named, "signals": &signals}
	var over, begun atomic.Bool
	waits := durable.Define("waits", func(c *durable.Ctx, in int) (int, error) {
		n, err := c.Receive[int]("go")
		return n + in, err
	})
	stranger := durable.Define("stranger", func(c *durable.Ctx, _ int) (int, error) {
		for i := 0; !over.Load(); i++ {
			began := time.Now()
			if err := c.Do(fmt.Sprint("s", i), func(context.Context) error { return nil }); err != nil {
				return i, err
			}
			if begun.Load() {
				steps.since(began)
			}
		}
		return 0, nil
	})
	tx := durable.Define("tx", func(c *durable.Ctx, _ int) (int, error) {
		return postgres.Tx(c, "slow", func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, "INSERT INTO "+db.Schema+".slow VALUES (1)")
			begun.Store(true)
			return 7, err
		})
	})
	quick := durable.Define("quick", func(_ *durable.Ctx, in int) (int, error) { return in, nil })
	e := engineOn(t, s, durable.Config{Lease: 5 * time.Second, ParkAfter: 100 * time.Millisecond}, waits, stranger, tx, quick)
	defer runEngine(t, e)()
	var all []*durable.Run[int]
	for i := range held {
		all = append(all, start(t, e, waits, i, durable.ID(fmt.Sprint("held", i))))
	}
	for i := range strangers {
		start(t, e, stranger, i)
		start(t, e, waits, i, durable.ID(fmt.Sprint("free", i)))
	}
	await(t, "the receives", func() bool { return history(t, e, "held0")["go"].Status == "started" })

	user, err := pgx.Connect(bounded(t), db.Where)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close(context.Background())
	inside, err := user.Begin(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range held {
		if err := postgres.SignalTx(bounded(t), inside, e, fmt.Sprint("held", i), "go", 100); err != nil {
			t.Fatal(err)
		}
		if _, err := postgres.StartTx(bounded(t), inside, e, quick, i, durable.ID(fmt.Sprint("name", i))); err != nil {
			t.Fatal(err)
		}
	}
	slow := start(t, e, tx, 0, durable.ID("slow"))
	await(t, "the transactional step", begun.Load)

	var callers sync.WaitGroup
	began, machine := time.Now(), measure(t, e)
	for i := range held { // others that want the same
		callers.Go(func() {
			if err := e.Signal(bounded(t), fmt.Sprint("held", i), "go", 200); err != nil && !errors.Is(err, durable.ErrState) {
				t.Error("a signal to a run that was held: ", err)
			}
		})
		callers.Go(func() {
			run, err := quick.Start(bounded(t), e, i, durable.ID(fmt.Sprint("name", i)))
			if err != nil {
				t.Error("the start of a name that was held: ", err)
				return
			}
			if took := time.Since(began); took < open/2 {
				t.Errorf("the start of a name that is held was acknowledged after %v", took)
			}
			if v, err := run.Result(bounded(t)); err != nil || v != i {
				t.Errorf("name %d: %d, %v", i, v, err)
			}
		})
	}
	callers.Go(func() { _ = e.Signal(bounded(t), "slow", "nobody", 1) })
	callers.Go(func() {
		for i := 0; !over.Load(); i++ { // strangers
			for measure, call := range map[*slowest]func() error{
				&starts: func() error { _, err := quick.Start(bounded(t), e, i); return err },
				&named:  func() error { _, err := quick.Start(bounded(t), e, i, durable.ID(fmt.Sprint("own", i))); return err },
				&signals: func() error {
					err := e.Signal(bounded(t), fmt.Sprint("free", i%strangers), "go", i)
					if errors.Is(err, durable.ErrState) {
						err = nil
					}
					return err
				},
			} {
				at := time.Now()
				if err := call(); err != nil {
					t.Error("a stranger: ", err)
				}
				measure.since(at)
			}
		}
	})
	var bound context.Context
	var byName error
	locked := func() bool { // and not in the middle of a commit, which the time may also end
		failed, typed := errors.AsType[*durable.WriteError](byName)
		return typed && !failed.MayHaveCommitted && errors.Is(byName, durable.ErrLocked)
	}
	for d := 400 * time.Millisecond; !locked() && d < patience/4; d *= 2 { // shorter than the transaction, long enough for one try
		var cancel context.CancelFunc
		bound, cancel = context.WithTimeout(bounded(t), d)
		defer cancel()
		_, byName = quick.Start(bound, e, 0, durable.ID("name0"))
	}
	for what, err := range map[string]error{
		"start": byName, "signal": e.Signal(bound, "held0", "go", 300), "pause": second(e.Pause(bound, "held0")),
	} {
		failed, typed := errors.AsType[*durable.WriteError](err)
		if !errors.Is(err, context.DeadlineExceeded) || what == "start" && (!errors.Is(err, durable.ErrLocked) || !typed || failed.MayHaveCommitted) {
			t.Errorf("%s: %v: want the end of the context, and what it waited for", what, err)
		}
	}
	await(t, "the end of the users' patience, and enough calls of others", func() bool {
		enough := time.Since(began) > open
		for _, s := range others {
			enough = enough && s.n.Load() >= 10
		}
		return enough
	})
	over.Store(true)
	slack := machine.slack()
	if err := inside.Commit(bounded(t)); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	for i, run := range all {
		if v, err := run.Result(bounded(t)); err != nil || v != 100+i {
			t.Errorf("%s: %d, %v: the signal of the transaction was not the first", run.ID(), v, err)
		}
	}
	if v, err := slow.Result(bounded(t)); err != nil || v != 7 {
		t.Errorf("the transactional step: %d, %v", v, err)
	}
	for what, slow := range others {
		if time.Duration(slow.ns.Load()) > most+slack {
			t.Errorf("the slowest of others' %s took %v, want at most %v, and %v for the machine's load", what, slow, most, slack)
		}
	}
	t.Logf("open=%v slowest_step=%v slowest_start=%v slowest_named_start=%v slowest_signal=%v", open, &steps, &starts, &named, &signals)
}
