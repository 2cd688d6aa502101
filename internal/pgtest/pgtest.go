package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// shared is the one server of this test process. Testing itself is process-wide, so
// this state is too.
var shared struct {
	sync.Once
	server *Server
	url    string
	err    error
}

var serial atomic.Int64

// Main runs the tests and then ends the server, if one was started:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	if shared.server != nil {
		if err := shared.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// ServerURL is the maintenance database of the server that this test process uses. It
// fails the test where there is none.
func ServerURL(t testing.TB) string {
	t.Helper()
	shared.Do(func() {
		if shared.url = os.Getenv("DATABASE_URL"); shared.url != "" {
			return
		}
		if shared.server, shared.err = Start(Options{}); shared.err == nil {
			shared.url = shared.server.URL()
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.url
}

// URL is a fresh, empty database, dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	server := ServerURL(t)
	name := unique("durable_test")
	execute(t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { execute(t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return inDatabase(t, server, name)
}

// Schema is a name for a schema that nobody else uses, for tests that share a
// database. What is in it is dropped when the test ends.
func Schema(t testing.TB) string {
	t.Helper()
	server := ServerURL(t)
	name := unique("durable_test")
	t.Cleanup(func() { execute(t, server, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	return name
}

func unique(prefix string) string {
	return fmt.Sprintf("%s_%d_%d", prefix, os.Getpid(), serial.Add(1))
}

func inDatabase(t testing.TB, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		t.Fatal("pgtest: DATABASE_URL must be a URL, postgres://user@host:port/database")
	}
	u.Path = "/" + name
	return u.String()
}

// execute runs a statement whose only variable part is a name made by unique.
func execute(t testing.TB, server, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Errorf("pgtest: connect: %v", err)
		return
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Errorf("pgtest: %s: %v", statement, err)
	}
}
