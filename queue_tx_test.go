package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// orderOf is a workflow that records the order in which its runs begin.
type orderOf struct {
	*durable.Workflow[string, string]
	mu    sync.Mutex
	begun []string
}

func newOrderOf() *orderOf {
	o := new(orderOf)
	o.Workflow = durable.Define("order of", func(_ *durable.Ctx, in string) (string, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.begun = append(o.begun, in)
		return in, nil
	})
	return o
}

func (o *orderOf) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.begun)
}

// A start in a transaction has its place in the queue once the transaction commits: its key, its priority and its StartBy. One that
// is rolled back leaves none.
func TestAStartInATransactionHasAPlaceInItsQueue(t *testing.T) {
	onStoresInTx(t, func(t *testing.T, s durable.Store, start startInTx) {
		ctx := within(t)
		o := newOrderOf()
		e := engineOn(t, s, o)
		in := durable.InQueue("mail")
		if _, err := start(e, o.Workflow, "x", true, in, durable.GroupKey("acme")); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a start with a key in a queue without settings: %v", err)
		}
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1, Depth: 3}); err != nil {
			t.Fatal(err)
		}
		first := orFail(start(e, o.Workflow, "first", true, in, durable.GroupKey("acme", durable.KeyWeight(3)), durable.Priority(-1), durable.StartBy(time.Hour)))(t)
		gone := orFail(start(e, o.Workflow, "gone", false, in, durable.GroupKey("acme")))(t)
		orFail(start(e, o.Workflow, "second", true, in, durable.GroupKey("acme"), durable.Priority(-1)))(t)
		urgent := orFail(start(e, o.Workflow, "urgent", true, in, durable.GroupKey("acme"), durable.Priority(2)))(t)
		if _, err := start(e, o.Workflow, "x", true, in); !errors.Is(err, durable.ErrQueueFull) {
			t.Errorf("a start into the full queue: %v", err)
		}
		info := orFail(e.Get(ctx, first.ID()))(t)
		p := info.Place
		if p == nil || p.Queue != "mail" || p.GroupKey != "acme" || p.Weight != 3 || !p.StartBy.Equal(info.CreatedAt.Add(time.Hour)) || info.Priority != -1 {
			t.Errorf("the place is %+v, and the priority %d", p, info.Priority)
		}
		if _, err := e.Get(ctx, gone.ID()); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("the run that was rolled back: %v", err)
		}
		if page := orFail(e.List(ctx, durable.Filter{Queue: "mail", GroupKey: "acme"}, durable.Page{}))(t); len(page.Runs) != 3 {
			t.Errorf("%d runs of the key, want 3", len(page.Runs))
		}
		defer running(t, e)()
		waitFor(t, func() bool { return len(o.all()) == 3 })
		if got, want := o.all(), []string{"urgent", "first", "second"}; !slices.Equal(got, want) {
			t.Errorf("they began in the order %v, want %v", got, want)
		}
		if got, err := urgent.Result(ctx); got != "urgent" || err != nil {
			t.Error(got, err)
		}
	})
}

// A start that commits after the last run of its key has ended is executed: no further end lets anybody look at the key.
func TestAStartThatCommitsAfterTheLastOfItsKeyIsExecuted(t *testing.T) {
	besideOthers(t)
	ctx := within(t)
	pool := orFail(pgxpool.New(ctx, pgtest.URL(t)))(t)
	defer pool.Close()
	s := orFail(postgres.New(pool, postgres.Schema(pgtest.Schema(t))))(t)
	defer s.Close()
	o := newOrderOf()
	e := engineOn(t, s, o)
	if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxInProgressPerKey: 1}); err != nil {
		t.Fatal(err)
	}
	defer running(t, e)()
	opts := []durable.StartOption{durable.InQueue("mail"), durable.GroupKey("acme")}
	last := orFail(o.Start(ctx, e, "last", opts...))(t)
	tx := orFail(pool.Begin(ctx))(t)
	defer tx.Rollback(context.Background()) //nolint:errcheck // the test is over if it fails
	late := orFail(postgres.StartTx(ctx, tx, e, o.Workflow, "late", opts...))(t)
	orFail(last.Result(ctx))(t)
	waitFor(t, func() bool {
		q := orFail(e.Queues(ctx))(t)[0]
		return q.Executing+q.InProgress+q.Waiting == 0 && len(q.Keys) == 0
	})
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := late.Result(ctx); got != "late" || err != nil {
		t.Error(got, err)
	}
}

// A run that a signal in a transaction wakes passes its queue again: it waits until a place is free, and comes before the runs that
// have not begun.
func TestASignalInATransactionWakesARunThroughItsQueue(t *testing.T) {
	besideOthers(t)
	t.Run("sqlite", func(t *testing.T) {
		s := orFail(sqlite.Open(t.TempDir() + "/queue.db"))(t)
		defer s.Close()
		wakeThroughQueue(t, s, func(e *durable.Engine, id string) error {
			tx, err := s.Writer().BeginTx(within(t), nil)
			if err == nil {
				err = errors.Join(sqlite.SignalTx(within(t), tx, e, id, "word", "go"), tx.Commit())
			}
			return err
		})
	})
	t.Run("postgres", func(t *testing.T) {
		pool := orFail(pgxpool.New(within(t), pgtest.URL(t)))(t)
		defer pool.Close()
		s := orFail(postgres.New(pool, postgres.Schema(pgtest.Schema(t))))(t)
		defer s.Close()
		wakeThroughQueue(t, s, func(e *durable.Engine, id string) error {
			tx, err := pool.Begin(within(t))
			if err == nil {
				err = errors.Join(postgres.SignalTx(within(t), tx, e, id, "word", "go"), tx.Commit(within(t)))
			}
			return err
		})
	})
}

// wakeThroughQueue wakes a run of a queue whose only place another run has.
func wakeThroughQueue(t *testing.T, s durable.Store, signal func(e *durable.Engine, id string) error) {
	ctx := within(t)
	g := newGate()
	var mu sync.Mutex
	var order []string
	record := func(name string) func(context.Context) error {
		return func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		}
	}
	waits := durable.Define("waits", func(c *durable.Ctx, _ int) (string, error) {
		if _, err := c.Receive[string]("word"); err != nil {
			return "", err
		}
		return "", c.Do("continue", record("woken"))
	})
	busy := durable.Define("busy", func(c *durable.Ctx, _ int) (string, error) { return "", c.Do("work", g.pass) })
	begins := durable.Define("begins", func(c *durable.Ctx, _ int) (string, error) { return "", c.Do("begin", record("new")) })
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{waits, busy, begins}, ParkAfter: time.Millisecond})
	if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
		t.Fatal(err)
	}
	defer running(t, e)()
	placeOf := func(id string) *durable.QueuePlace { return orFail(e.Get(ctx, id))(t).Place }
	runs := []*durable.Run[string]{orFail(waits.Start(ctx, e, 0, durable.InQueue("mail"), durable.ID("woken")))(t)}
	waitFor(t, func() bool { return orFail(e.Get(ctx, "woken"))(t).Status == durable.StatusWaiting })
	runs = append(runs, orFail(busy.Start(ctx, e, 0, durable.InQueue("mail")))(t))
	<-g.entered
	runs = append(runs, orFail(begins.Start(ctx, e, 0, durable.InQueue("mail"), durable.ID("new")))(t))
	waitFor(t, func() bool { return placeOf("new").State == durable.PlaceInLine })
	if err := signal(e, "woken"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return placeOf("woken").State == durable.PlaceInLine })
	close(g.open)
	for _, r := range runs {
		orFail(r.Result(ctx))(t)
	}
	if want := []string{"woken", "new"}; !slices.Equal(order, want) {
		t.Errorf("they were executed in the order %v, want %v", order, want)
	}
}

// StartMany starts runs of one key, which have the place of their order among those of another key.
func TestStartManyIntoAQueueTakesTurnsWithOtherKeys(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		o := newOrderOf()
		e := engineOn(t, s, o)
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		var items []durable.StartItem[string]
		for i := range 20 {
			items = append(items, durable.StartItem[string]{ID: fmt.Sprint("big-", i), Input: "big"})
		}
		opts := []durable.StartOption{durable.InQueue("mail"), durable.Priority(1), durable.GroupKey("big", durable.KeyWeight(2))}
		runs := orFail(o.StartMany(ctx, e, items, opts...))(t)
		orFail(o.StartMany(ctx, e, items, opts...))(t) // a repetition starts nothing
		for range 2 {
			runs = append(runs, orFail(o.Start(ctx, e, "small", durable.InQueue("mail"), durable.Priority(1), durable.GroupKey("small")))(t))
		}
		info := orFail(e.Get(ctx, "big-7"))(t)
		if p := info.Place; p == nil || p.GroupKey != "big" || p.Weight != 2 || info.Priority != 1 {
			t.Errorf("the place is %+v, and the priority %d", p, info.Priority)
		}
		running(t, e)
		for _, r := range runs {
			orFail(r.Result(ctx))(t)
		}
		got := o.all()
		if len(got) != 22 || slices.Index(got, "small") > 2 || slices.Index(got[slices.Index(got, "small")+1:], "small") > 2 {
			t.Errorf("they began in the order %v, want a small one after at most two big ones", got)
		}
	})
}
