package durabletest

import (
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

var mainCalled atomic.Bool

// Main runs the tests of a package that uses Postgres, and stops the server that they
// used. It answers the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) }
func Main(m *testing.M) int {
	mainCalled.Store(true)
	return pgtest.Main(m)
}

// PostgresURL is the URL of a PostgreSQL database of its own, empty, which is dropped at the test's
// end: for a store with options, or for tables and a pool of the test's. DATABASE_URL, if set, names
// a server in which it may be made; otherwise one is started, of the PostgreSQL (15 or later) that is
// installed, without fsync. The package's TestMain calls Main.
func PostgresURL(t testing.TB) string {
	t.Helper()
	if !mainCalled.Load() {
		t.Fatal("durabletest: nothing would stop the PostgreSQL server: add func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) } to this package")
	}
	return pgtest.URL(t)
}

// PostgresStore is a store on a database of its own, as PostgresURL makes it: for On and OnNewStores.
func PostgresStore(t testing.TB) durable.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("durabletest: close the PostgreSQL store: %v", err)
		}
	})
	return s
}
