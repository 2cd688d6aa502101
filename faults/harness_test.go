package faults

import (
	"context"
	"encoding/json/v2"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(jobEnv); text != "" {
		os.Exit(play(text))
	}
	// Most tests wait for processes and leases, so more of them may run at once than
	// there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(leaktest.Main(pgtest.Main(m)))
}

// database names a store so that another process can open it too.
type database struct {
	Kind   string // "sqlite" or "postgres"
	Where  string // a path or a URL
	Schema string
}

func (d database) open() (durable.Store, error) {
	if d.Kind == "sqlite" {
		return sqlite.Open(d.Where)
	}
	return postgres.Open(context.Background(), d.Where, postgres.Schema(d.Schema))
}

// openIn opens the store for the length of a test.
func (d database) openIn(t testing.TB) durable.Store {
	t.Helper()
	s, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close the store:", err)
		}
	})
	return s
}

// onBoth runs the test on SQLite and on PostgreSQL, beside other tests.
func onBoth(t *testing.T, test func(*testing.T, database)) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, fresh(t, kind))
		})
	}
}

// onBothAlone is onBoth for tests that count the goroutines of the whole process, or
// hold it up.
func onBothAlone(t *testing.T, test func(*testing.T, database)) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			leaktest.Test(t)
			test(t, fresh(t, kind))
		})
	}
}

// fresh is an empty database.
func fresh(t testing.TB, kind string) database {
	t.Helper()
	if kind == "sqlite" {
		return database{Kind: kind, Where: filepath.Join(t.TempDir(), "durable.db")}
	}
	return database{Kind: kind, Where: pgtest.ServerURL(t), Schema: pgtest.Schema(t)}
}

// Entry is one thing that user code did.
type Entry struct {
	Run, Step, Key string
	Attempt, Pid   int
	At             time.Time
}

// ledger is a file of what steps did, outside of the database. Each entry is one
// write in append mode, so that processes share it and a kill tears nothing.
type ledger string

func newLedger(t testing.TB) ledger { return ledger(filepath.Join(t.TempDir(), "ledger")) }

func (l ledger) add(e Entry) {
	e.Pid, e.At = os.Getpid(), time.Now()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// did adds the entry of a step function's attempt.
func (l ledger) did(ctx context.Context, run, step string) {
	l.add(Entry{Run: run, Step: step, Key: durable.IdempotencyKey(ctx), Attempt: durable.Attempt(ctx)})
}

func (l ledger) read(t testing.TB) []Entry {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []Entry
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

// of are the entries of one step of one run; empty matches any.
func (l ledger) of(t testing.TB, run, step string) (some []Entry) {
	t.Helper()
	for _, e := range l.read(t) {
		if (run == "" || e.Run == run) && (step == "" || e.Step == step) {
			some = append(some, e)
		}
	}
	return some
}

// counts is how often each "run/step" was executed.
func (l ledger) counts(t testing.TB) map[string]int {
	t.Helper()
	n := make(map[string]int)
	for _, e := range l.read(t) {
		n[e.Run+"/"+e.Step]++
	}
	return n
}

// engineOn makes an engine for the length of a test; it is not running yet.
func engineOn(t testing.TB, s durable.Store, cfg durable.Config, workflows ...durable.Definition) *durable.Engine {
	t.Helper()
	cfg.Workflows = workflows
	e, err := durable.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// runEngine runs the engine until stop is called, or the test ends.
func runEngine(t testing.TB, e *durable.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error("Run:", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// bounded is a context that ends when a test has waited too long.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// result waits for a run that some process executes.
func result[I, O any](t testing.TB, e *durable.Engine, w *durable.Workflow[I, O], id string) (O, error) {
	t.Helper()
	run, err := w.Handle(bounded(t), e, id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Result(bounded(t))
}

// start starts a run and fails the test if that is refused.
func start[I, O any](t testing.TB, e *durable.Engine, w *durable.Workflow[I, O], in I, opts ...durable.StartOption) *durable.Run[O] {
	t.Helper()
	run, err := w.Start(bounded(t), e, in, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// history is the run's recorded steps by name; nil while there is no such run.
func history(t testing.TB, e *durable.Engine, id string) map[string]durable.Checkpoint {
	t.Helper()
	rows, err := e.History(bounded(t), id)
	if errors.Is(err, durable.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]durable.Checkpoint, len(rows))
	for _, c := range rows {
		byName[c.Name] = c
	}
	return byName
}

func info(t testing.TB, e *durable.Engine, id string) *durable.RunInfo {
	t.Helper()
	i, err := e.Get(bounded(t), id)
	for tries := 0; errors.Is(err, durable.ErrUnavailable) && tries < 10; tries++ {
		i, err = e.Get(bounded(t), id) // the test has ended its connection
	}
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// mustFail asserts that err is the failure asked for and that its text names what it
// should.
func mustFail(t testing.TB, err, want error, names ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not name %q", err, name)
		}
	}
}

// faulty is a store whose calls can be interfered with. A nil hook does nothing.
type faulty struct {
	durable.Store
	commits atomic.Int64
	claims  atomic.Int64

	beforeCommit func(n int64, b *store.Batch) error
	afterCommit  func(n int64, b *store.Batch) error // after a commit that succeeded
	failedCommit func(error)
	beforeClaim  func(n int64) error
	afterClaim   func(n int64, c *store.ClaimResult) error
	beforeRenew  func(*store.Heartbeat) error
}

func (f *faulty) Commit(ctx context.Context, b *store.Batch) error {
	n := f.commits.Add(1)
	if f.beforeCommit != nil {
		if err := f.beforeCommit(n, b); err != nil {
			return err
		}
	}
	if err := f.Store.Commit(ctx, b); err != nil {
		if f.failedCommit != nil {
			f.failedCommit(err)
		}
		return err
	}
	if f.afterCommit != nil {
		return f.afterCommit(n, b)
	}
	return nil
}

func (f *faulty) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	n := f.claims.Add(1)
	if f.beforeClaim != nil {
		if err := f.beforeClaim(n); err != nil {
			return store.ClaimResult{}, err
		}
	}
	c, err := f.Store.Claim(ctx, q)
	if err == nil && f.afterClaim != nil && len(c.Runs) > 0 {
		err = f.afterClaim(n, &c)
	}
	return c, err
}

func (f *faulty) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	if f.beforeRenew != nil {
		if err := f.beforeRenew(&h); err != nil {
			return store.RenewResult{}, err
		}
	}
	return f.Store.RenewLeases(ctx, h)
}

// fenced counts the writes that the store refused because another owns the run.
func fenced(b *store.Batch) (n int) {
	for _, w := range b.Steps {
		if w.Outcome == store.Fenced {
			n++
		}
	}
	for _, w := range b.OwnershipEnds {
		if w.Outcome == store.Fenced {
			n++
		}
	}
	return n
}

// Nothing in this package may sleep: a test that does is either slow or wrong.
func TestNoSleep(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	sleep := regexp.MustCompile(`time\.Sleep\(`)
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil || sleep.Match(text) {
			t.Error(name, "sleeps", err)
		}
	}
	t.Logf("%d files without a sleep", len(files))
}
