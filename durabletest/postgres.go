package durabletest

import (
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

var mainRuns atomic.Bool

// Main runs the tests of a package that uses Postgres, and stops the server that they
// used. It answers the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) }
func Main(m *testing.M) int {
	mainRuns.Store(true)
	return pgtest.Main(m)
}

// Postgres is a store on a PostgreSQL database of its own, empty, which is dropped at the
// test's end: for On. DATABASE_URL, if set, names a server in which it may be made;
// otherwise one is started, of the PostgreSQL (15 or later) that is installed, without
// fsync. The package's TestMain calls Main.
func Postgres(t testing.TB) durable.Store {
	t.Helper()
	if !mainRuns.Load() {
		t.Fatal("durabletest: nothing would stop the PostgreSQL server: add func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) } to this package")
	}
	s, err := postgres.Open(t.Context(), pgtest.URL(t))
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
