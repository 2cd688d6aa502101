package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// setupTimeout limits the time for the server to be found or installed, and to start.
const setupTimeout = 5 * time.Minute

// shared is the one server of this test binary.
var shared struct {
	main   bool // Main was called, and will close the server
	once   sync.Once
	server *Server // nil if DATABASE_URL is used
	url    string
	err    error
}

// Main runs the tests, stops the server that they used, and returns the exit code. m is the *testing.M, or what wraps its Run.
func Main(m interface{ Run() int }) int {
	shared.main = true
	code := m.Run()
	err := errors.Join(closeIdleConns(), removeEmptyCluster(), dropTemplates())
	if shared.server != nil {
		err = errors.Join(err, shared.server.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// ServerURL returns a superuser's URL of the maintenance database of the shared server. The first call
// starts the server.
func ServerURL(t testing.TB) string {
	t.Helper()
	if !shared.main {
		t.Fatal("pgtest: nothing would stop the server: add func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) } to this package")
	}
	shared.once.Do(func() {
		if shared.url = os.Getenv("DATABASE_URL"); shared.url != "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout) // not the context of t, because other tests wait for the server too
		defer cancel()
		if shared.server, shared.err = Start(ctx, Options{NoSync: true}); shared.err == nil {
			shared.url = shared.server.URL()
		}
		if shared.err == nil && os.Getenv(NoLocalFacts) != "" {
			shared.err = removeLocalFacts(ctx, shared.url)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.url
}

// URL creates an empty database for the test and returns a superuser's URL of it. The database is
// dropped at the end of the test, even if clients are still connected.
func URL(t testing.TB) string {
	t.Helper()
	ServerURL(t)
	return createDatabase(t, templateDatabase())
}

// createDatabase creates a copy of the template, which is dropped at the end of the test, and returns its URL.
func createDatabase(t testing.TB, template string) string {
	t.Helper()
	name := "pgtest_" + strings.ToLower(rand.Text())
	if err := execute(t.Context(), shared.url, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatalf("pgtest: create a database: %v", err)
	}
	t.Cleanup(func() {
		if err := dropDatabase(name); err != nil {
			t.Errorf("pgtest: drop the database of %s: %v", t.Name(), err)
		}
	})
	at, err := withDatabase(shared.url, name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Schema returns a new random name for a schema.
func Schema(t testing.TB) string {
	t.Helper()
	return "durable_" + strings.ToLower(rand.Text())
}

// withDatabase returns the URL of another database of the same server.
func withDatabase(server, name string) (string, error) {
	if !strings.HasPrefix(server, "postgres://") && !strings.HasPrefix(server, "postgresql://") {
		return server + " dbname=" + name, nil // keyword/value form, where the last value of a keyword applies
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("pgtest: DATABASE_URL is not a URL") // the error of url.Parse contains the password
	}
	u.Path = "/" + name
	return u.String(), nil
}

func execute(ctx context.Context, server, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}
