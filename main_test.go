package durable_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/testsize"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most tests wait, so more of them can run at once than there are processors. If there are many more, they wait for processors, and tests
	// that measure a time fail.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(leaktest.Main(pgtest.InMemory(func() int { return pgtest.Main(testsWithSharedConnections{m}) })))
}

// sharedConnections is a store whose connections the tests share in the small form (see testsize). A connection takes the server longer than
// most tests need.
var sharedConnections struct {
	sync.Mutex
	store *postgres.Store
}

// openPostgres opens a store on an empty schema. In the full form of the tests it has connections of its own.
func openPostgres(t testing.TB) (*postgres.Store, error) {
	t.Helper()
	url, schema := pgtest.ServerURL(t), pgtest.LendSchema(t, "migration", "secret")
	if testsize.IsFull() {
		return postgres.Open(within(t), url, postgres.Schema(schema))
	}
	sharedConnections.Lock()
	defer sharedConnections.Unlock()
	if sharedConnections.store == nil {
		s, err := postgres.Open(within(t), url, postgres.Schema(pgtest.Schema(t)))
		if err != nil {
			return nil, err
		}
		sharedConnections.store = s
	}
	return sharedConnections.store.OpenSchema(within(t), schema)
}

// testsWithSharedConnections runs the tests, and closes the shared connections before the server stops.
type testsWithSharedConnections struct{ *testing.M }

func (m testsWithSharedConnections) Run() int {
	code := m.M.Run()
	if s := sharedConnections.store; s != nil {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// openStore returns a store on a temporary file, which is closed when the test ends. The test runs in parallel with others, or is
// checked for leaked goroutines; see besideOthers.
func openStore(t testing.TB) durable.Store {
	t.Helper()
	besideOthers(t)
	return openFile(t)
}

// aside holds the tests that were made parallel.
var aside sync.Map

// besideOthers makes a test run in parallel with others, because most tests wait more than they work. In the full size (see
// testsize) tests run one after the other instead, and each must leave no goroutine behind: with parallel tests, the test that
// leaked a goroutine is unknown.
func besideOthers(t testing.TB) {
	t.Helper()
	p, ok := t.(*testing.T)
	if _, parallel := aside.Load(p); parallel { // as both subtests of onStores, which checks them together
		return
	}
	if !ok || testsize.IsFull() {
		leaktest.Test(t)
		return
	}
	if strings.Contains(t.Name(), "/") { // its parent may compare what its subtests do one after the other
		return
	}
	aside.Store(p, nil)
	p.Parallel()
}

// emptyFile is the content of an SQLite database whose tables exist and are empty. Copying it is faster than creating the
// tables.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "durable-empty")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "durable.db")
	s, err := sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func openFile(t testing.TB) durable.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "durable.db")
	empty, err := emptyFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, empty, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(path)
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

// engineOn returns an engine that executes the workflows once its Run is called.
func engineOn(t testing.TB, s durable.Store, workflows ...durable.Definition) *durable.Engine {
	t.Helper()
	return engineWith(t, s, durable.Config{Workflows: workflows})
}

// If DURABLE_TEST_CODEC is set, payloads are compressed and encrypted in all tests that say nothing of a codec.
func engineWith(t testing.TB, s durable.Store, cfg durable.Config) *durable.Engine {
	t.Helper()
	if os.Getenv("DURABLE_TEST_CODEC") != "" && cfg.Codec == nil {
		cfg.Codec = bothCodecs(t, "a")
	}
	return engineAsGiven(t, s, cfg)
}

// engineAsGiven is engineWith without a codec that the configuration does not name.
func engineAsGiven(t testing.TB, s durable.Store, cfg durable.Config) *durable.Engine {
	t.Helper()
	e, err := durable.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// running runs the engine until the test ends, or the returned function stop is called.
func running(t testing.TB, e *durable.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// testPatience bounds the waits of tests, so that a test does not hang. It is much longer than anything takes, also on a loaded machine.
const testPatience = 2 * time.Minute

// within returns a context that ends after testPatience or with the test.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	t.Cleanup(cancel)
	return ctx
}

// durableCall executes one workflow function on a fresh SQLite database, and returns its result.
func durableCall[I, O any](t *testing.T, in I, fn func(*durable.Ctx, I) (O, error)) (O, error) {
	t.Helper()
	w := durable.Define("test", fn)
	e := engineOn(t, openStore(t), w) // openStore may wait until other parallel tests are done
	return w.Call(within(t), e, in, durable.ID("run"))
}

// onStores runs a test as subtests, each on a fresh database of one kind.
func onStores(t *testing.T, test func(t *testing.T, s durable.Store)) {
	besideOthers(t) // checks both subtests together for leaked goroutines
	t.Run("sqlite", func(t *testing.T) {
		aside.Store(t, nil)
		t.Parallel()
		test(t, openFile(t))
	})
	t.Run("postgres", func(t *testing.T) {
		aside.Store(t, nil)
		t.Parallel()
		s, err := openPostgres(t)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, s)
	})
}

// gate is a step that blocks until the test opens the gate.
type gate struct{ entered, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 100), make(chan struct{})} }

func (g gate) pass(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// must returns a function that returns the effect of a control call, and fails the test if the call fails.
func must(t *testing.T) func(durable.ControlResult, error) durable.ControlResult {
	return func(e durable.ControlResult, err error) durable.ControlResult {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func historyOf(t testing.TB, e *durable.Engine, id string) []durable.Checkpoint {
	t.Helper()
	history, err := e.History(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// read returns a function that returns v, and fails the test if err is not nil. It is used as read(e.Get(ctx, id))(t).
func read[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func dbNow(t testing.TB, s durable.Store) time.Time {
	t.Helper()
	return read(s.Now(within(t)))(t)
}

// waitFor waits until done returns true, because of another goroutine. It fails the test after 15 s.
func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	if !poll(within(t), done) {
		t.Fatal("it did not come")
	}
}

// poll calls done each millisecond until it returns true. It reports false if the context ends before.
func poll(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// waitUntil waits until the database's clock shows a time after at. An engine estimates that clock, and the times that it writes may be
// ahead of it by milliseconds on a loaded machine.
func waitUntil(t testing.TB, s durable.Store, at time.Time) {
	t.Helper()
	waitFor(t, func() bool { return dbNow(t, s).After(at) })
}
