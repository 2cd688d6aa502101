package durabletest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

var mainCalled atomic.Bool

// Main runs the tests of a package that uses [PostgresURL] or [PostgresStore], stops the PostgreSQL server that the tests have
// started, and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) }
func Main(m *testing.M) int {
	mainCalled.Store(true)
	return pgtest.Main(m)
}

// PostgresURL creates an empty PostgreSQL database, which is dropped at the end of the test, and returns the URL of the
// database. Use the URL to open a store with options, or to create tables of your own. If the environment variable DATABASE_URL
// is set, PostgresURL creates the database in the server at DATABASE_URL. Without DATABASE_URL, PostgresURL starts the
// PostgreSQL server that is installed (version 15 or later) without fsync. The package's TestMain must call [Main].
func PostgresURL(t testing.TB) string {
	t.Helper()
	requireMain(t)
	return pgtest.URL(t)
}

func requireMain(t testing.TB) {
	t.Helper()
	if !mainCalled.Load() {
		t.Fatal("durabletest: TestMain does not call durabletest.Main, so nothing would stop the PostgreSQL server: add func TestMain(m *testing.M) { os.Exit(durabletest.Main(m)) } to this package")
	}
}

// PostgresStore opens a store on a new database of [PostgresURL], and closes the store at the end of the test. Pass the store
// to [OnStore], or the function PostgresStore to [OnNewStores]. The database is a copy of one with durable's tables, because copying is
// faster than creating the tables.
func PostgresStore(t testing.TB) durable.Store {
	t.Helper()
	requireMain(t)
	s, err := postgres.Open(t.Context(), pgtest.CopyURL(t, "durabletest", createTables))
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

// createTables creates durable's tables in an empty database.
func createTables(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	return s.Close()
}
