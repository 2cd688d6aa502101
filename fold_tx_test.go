package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// A user's transaction that has made a start and stays open makes other starts with its key return ErrLocked, and delays nobody else:
// not the starts with other keys, and not the flushes of other runs.
func TestAnOpenFoldingStartHoldsUpItsKeyOnly(t *testing.T) {
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
	j := newJourney()
	free := durable.Define("free", double)
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{j, free}, Patience: 300 * time.Millisecond})
	defer running(t, e)()
	for name, option := range map[string]durable.StartOption{
		"singleton": durable.Singleton("k"), "debounce": durable.Debounce("k", time.Hour, time.Hour), "throttle": durable.Throttle("k", 5, time.Hour),
	} {
		for _, seen := range []bool{false, true} { // the row of the key is new, and then it exists
			tx, err := pool.Begin(within(t))
			if err != nil {
				t.Fatal(err)
			}
			run, err := postgres.StartTx(within(t), tx, e, j.Workflow, "in a transaction", option)
			if err != nil {
				t.Fatal(err)
			}
			blocked := make(chan error, 3)
			for range cap(blocked) {
				go func() {
					_, err := j.Start(within(t), e, "blocked", option)
					blocked <- err
				}()
			}
			for i := range 10 {
				other, err := free.Start(within(t), e, i, durable.Singleton(fmt.Sprint("another ", i)))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := other.Result(within(t)); err != nil {
					t.Fatal(err)
				}
			}
			for range cap(blocked) {
				if err := <-blocked; !errors.Is(err, durable.ErrLocked) {
					t.Errorf("%s: a start with the key of an open transaction: %v", name, err)
				}
			}
			if err := tx.Commit(within(t)); err != nil {
				t.Fatal(err)
			}
			if info, err := e.Get(within(t), run.ID()); err != nil || info.Workflow != "journey" {
				t.Errorf("%s, %v: %+v, %v", name, seen, info, err)
			}
		}
	}
}

// startInTx starts a run in a transaction of its own, which is then committed or rolled back.
type startInTx func(e *durable.Engine, w *durable.Workflow[string, string], in string, commit bool, opts ...durable.StartOption) (*durable.Run[string], error)

// onStoresInTx calls the test with each store, and with a function for its transactions.
func onStoresInTx(t *testing.T, test func(t *testing.T, s durable.Store, start startInTx)) {
	besideOthers(t)
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.TempDir() + "/fold.db")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s, func(e *durable.Engine, w *durable.Workflow[string, string], in string, commit bool, opts ...durable.StartOption) (*durable.Run[string], error) {
			tx := orFail(s.Writer().BeginTx(within(t), nil))(t)
			defer tx.Rollback()
			run, err := sqlite.StartTx(within(t), tx, e, w, in, opts...)
			if err == nil && commit {
				err = tx.Commit()
			}
			return run, err
		})
	})
	t.Run("postgres", func(t *testing.T) {
		pool := orFail(pgxpool.New(within(t), pgtest.URL(t)))(t)
		defer pool.Close()
		s := orFail(postgres.New(pool, postgres.Schema(pgtest.Schema(t))))(t)
		defer s.Close()
		test(t, s, func(e *durable.Engine, w *durable.Workflow[string, string], in string, commit bool, opts ...durable.StartOption) (*durable.Run[string], error) {
			tx := orFail(pool.Begin(within(t)))(t)
			defer tx.Rollback(context.Background())
			run, err := postgres.StartTx(within(t), tx, e, w, in, opts...)
			if err == nil && commit {
				err = tx.Commit(within(t))
			}
			return run, err
		})
	})
}

// The start of a transaction that is rolled back leaves nothing, and the start of one that commits counts.
func TestAFoldingStartBelongsToItsTransaction(t *testing.T) {
	onStoresInTx(t, func(t *testing.T, s durable.Store, start startInTx) {
		ctx := within(t)
		j := newJourney()
		e := engineOn(t, s, j)
		defer running(t, e)()
		replace := durable.Singleton("k", durable.SingletonReplace)
		first := orFail(start(e, j.Workflow, "1", true, replace))(t)
		waitFor(t, func() bool { return j.all() == "begin 1" })
		if _, err := start(e, j.Workflow, "x", true, durable.Singleton("k", durable.SingletonRefuse)); !errors.Is(err, durable.ErrLive) {
			t.Errorf("a start that is refused: %v", err)
		}
		gone := orFail(start(e, j.Workflow, "2", false, replace))(t)
		if _, err := e.Get(ctx, gone.ID()); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("the run of a transaction that was rolled back: %v", err)
		}
		if info := orFail(e.Get(ctx, first.ID()))(t); info.Cancellation != nil {
			t.Errorf("a start that was rolled back has cancelled the live run: %+v", info.Cancellation)
		}
		last := orFail(start(e, j.Workflow, "3", true, replace))(t) // a worker cancels the live run once the transaction has committed
		waitFor(t, func() bool { return j.all() == "begin 1, undo 1, begin 3" })
		if err := e.Signal(ctx, last.ID(), "end", "now"); err != nil {
			t.Fatal(err)
		}
		orFail(last.Result(ctx))(t)
	})
}

// lostReplies is a store that commits a start that folds, and then loses the reply, as often as lose says.
type lostReplies struct {
	durable.Store
	lose atomic.Int32
	then func() // called after the loss
}

func (s *lostReplies) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	err := s.Store.UpdateStartKeyRow(ctx, c)
	if err == nil && !c.SkipLocked && s.lose.Add(-1) >= 0 {
		s.then()
		return fmt.Errorf("%w: the reply was lost", store.ErrRejected)
	}
	return err
}

// A start whose reply is lost is repeated, and does not overwrite what has come since.
func TestAStartWhoseReplyIsLostOverwritesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for _, c := range []struct {
			name, begins string
			option       durable.StartOption
			same         bool // both starts lead to one run
		}{
			{"join", "older", durable.Singleton("k"), true},
			{"replace", "newer", durable.Singleton("r", durable.SingletonReplace), false},
			{"debounce", "newer", durable.Debounce("k", time.Millisecond, time.Millisecond), true},
		} {
			t.Run(c.name, func(t *testing.T) {
				ctx := within(t)
				j := newJourney()
				client, lossy := engineOn(t, s), &lostReplies{Store: s}
				if !c.same {
					orFail(j.Start(ctx, client, "oldest", c.option))(t)
				}
				newer := make(chan *durable.Run[string], 1)
				lossy.then = func() { newer <- orFail(j.Start(ctx, client, "newer", c.option))(t) }
				lossy.lose.Store(1)
				older := orFail(j.Start(ctx, engineOn(t, lossy), "older", c.option))(t)
				last := <-newer
				if (older.ID() == last.ID()) != c.same {
					t.Errorf("the runs are %s and %s", older.ID(), last.ID())
				}
				e := engineOn(t, s, j) // no worker has released a run before
				defer running(t, e)()
				waitFor(t, func() bool { return j.all() != "" })
				if got, want := j.all(), "begin "+c.begins; got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if err := e.Signal(ctx, last.ID(), "end", "now"); err != nil {
					t.Fatal(err)
				}
				orFail(last.Result(ctx))(t)
			})
		}
	})
}
