package postgres

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var (
	flow  = store.NewClaimFilter([]string{"flow"}, nil)
	modes = []string{"cache_statement", "cache_describe", "exec"}
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Many tests wait, so more of them can run at once than there are processors.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(leaktest.Main(pgtest.Main(m)))
}

// besideOthers makes a test run in parallel with others. In the full size (see testsize) it runs alone instead, and must leave
// no goroutine behind.
func besideOthers(t *testing.T) {
	t.Helper()
	if testsize.IsFull() {
		leaktest.Test(t)
		return
	}
	t.Parallel()
}

// with adds a parameter to a URL.
func with(url, param string) string {
	if strings.Contains(url, "?") {
		return url + "&" + param
	}
	return url + "?" + param
}

// open opens a store in a database of its own, in one of pgx's modes. The test must leave no goroutine
// behind.
func open(t testing.TB, mode string, opts ...Option) *database {
	t.Helper()
	leaktest.Test(t)
	return openBeside(t, mode, opts...)
}

// openBeside is open for tests that run in parallel.
func openBeside(t testing.TB, mode string, opts ...Option) *database {
	t.Helper()
	return openAt(t, with(migratedURL(t), "default_query_exec_mode="+mode), opts...)
}

// migratedURL is pgtest.URL of a database to which the migrations have been applied.
func migratedURL(t testing.TB) string {
	t.Helper()
	return pgtest.CopyURL(t, "migrated", func(ctx context.Context, url string) error {
		s, err := openDatabase(ctx, url)
		if err != nil {
			return err
		}
		return s.Close()
	})
}

func openAt(t testing.TB, url string, opts ...Option) *database {
	t.Helper()
	s, err := openDatabase(t.Context(), url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openOver opens a store over a pool with this configuration.
func openOver(t testing.TB, cfg *pgxpool.Config) *database {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := newDatabase(pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// everyWay runs a test in each of pgx's modes, directly and behind a pooler.
func everyWay(t *testing.T, test func(t *testing.T, s *database)) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, openBeside(t, mode))
		})
		t.Run(mode+" behind a pooler", func(t *testing.T) {
			t.Parallel()
			test(t, openPooled(t, mode))
		})
	}
}

func now(t testing.TB, s *database) time.Time {
	t.Helper()
	at, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func commit(t testing.TB, s *database, b *store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// running returns a run that is executed by the process that starts it.
func running(owner uuid.UUID, now time.Time) store.Run {
	id, name := store.NewRootIdentity("")
	return store.Run{
		UUID: id, Name: name, Workflow: "flow", Queue: "default", Status: store.Running, Epoch: epochAt(1),
		Owner: uuid.NullUUID{UUID: owner, Valid: true}, Input: []byte("{}"),
		CreatedAt: now, StartedAt: now, WakeAt: now.Add(time.Minute),
	}
}

// pending returns a run that waits to be claimed.
func pending(now time.Time) store.Run {
	id, name := store.NewRootIdentity("")
	return store.Run{
		UUID: id, Name: name, Workflow: "flow", Queue: "default", Status: store.Pending,
		Input: []byte("{}"), CreatedAt: now, WakeAt: now,
	}
}

// childOf returns a running child of a run at epoch 1.
func childOf(parent uuid.UUID, name string, now time.Time) *store.StartWrite {
	run := running(uuid.New(), now)
	run.UUID, run.Name, run.Parent = store.NewChildUUID(parent), name, uuid.NullUUID{UUID: parent, Valid: true}
	return &store.StartWrite{Run: run, ParentEpoch: epochAt(1)}
}

// begin starts runs and checks that each is written.
func begin(t testing.TB, s *database, starts ...*store.StartWrite) {
	t.Helper()
	commit(t, s, &store.Batch{Starts: starts})
	for _, item := range starts {
		if item.Outcome != store.Written {
			t.Fatalf("the start of %s: outcome %d, %+v", item.Run.Name, item.Outcome, item.RunState)
		}
	}
}

func order(t testing.TB, s *database, o *store.ControlRequest) []store.ControlResult {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = now(t, s)
	}
	if err := s.ControlRuns(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Results
}

// row reads a run.
func row(t testing.TB, s *database, id uuid.UUID) *store.Run {
	t.Helper()
	got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: id.String()}})
	if err != nil || got[0] == nil {
		t.Fatalf("the run %s: %v, %v", id, got, err)
	}
	return got[0]
}

// receive returns a receive that waits for a signal, in a step of a run at epoch 1.
func receive(run uuid.UUID, name, signal string, now time.Time) *store.ReceiveWrite {
	return &store.ReceiveWrite{Signal: signal, Step: store.Step{
		Run: run, Name: name, Kind: store.KindReceive, Status: store.StepStarted, Attempt: 1, Epoch: epochAt(1),
		StartedAt: now, NextAt: now.Add(time.Hour),
	}}
}

func signal(run uuid.UUID, name, payload string, now time.Time) *store.SignalWrite {
	return &store.SignalWrite{Run: run, ID: uuid.Must(uuid.NewV7()), Name: name, Payload: []byte(payload), CreatedAt: now}
}

// done returns a completed step of a run at epoch 1.
func done(run uuid.UUID, name string, now time.Time) *store.StepWrite {
	return &store.StepWrite{Step: store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epochAt(1),
		Output: []byte(`{"ok":true}`), StartedAt: now, EndedAt: now,
	}}
}

// finish returns the write that completes a run at epoch 1.
func finish(run uuid.UUID, now time.Time) *store.OwnershipEnd {
	return &store.OwnershipEnd{UUID: run, Epoch: epochAt(1), Status: store.Completed, Output: []byte("1"), EndedAt: now}
}

// epochAt returns the epoch with this count and no nonce, because the claims here have none.
func epochAt(count int32) store.Epoch { return store.Epoch{Count: count} }
