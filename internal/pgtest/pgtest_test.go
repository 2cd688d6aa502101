package pgtest_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_HELPER") != "" {
		helper()
		return
	}
	os.Exit(pgtest.Main(m))
}

// helper starts a server, tells its URL and process, and waits to be killed.
func helper() {
	s, err := pgtest.Start(pgtest.Options{NoSync: true})
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(s.URL() + "\n")
	select {}
}

func TestDatabasesAreFreshAndDropped(t *testing.T) {
	var first string
	t.Run("one", func(t *testing.T) {
		first = pgtest.URL(t)
		run(t, first, "CREATE TABLE x (a int)")
	})
	second := pgtest.URL(t)
	if first == second {
		t.Fatalf("two tests share %s", first)
	}
	run(t, second, "CREATE TABLE x (a int)")
	if conn, err := pgx.Connect(t.Context(), first); err == nil {
		conn.Close(t.Context())
		t.Errorf("%s is still there after its test", first)
	}
}

func TestServerSurvivesItsPostmaster(t *testing.T) {
	s, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	run(t, s.URL(), "CREATE TABLE x AS SELECT 42 AS a")
	for _, fault := range []func() error{s.Kill9, func() error { return s.Stop("immediate") }} {
		if err := fault(); err != nil {
			t.Fatal(err)
		}
		if conn, err := pgx.Connect(t.Context(), s.URL()); err == nil {
			conn.Close(t.Context())
			t.Fatal("the server still answers after its fault")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		run(t, s.URL(), "SELECT a FROM x")
	}
}

func TestServerDiesWithItsProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "PGTEST_HELPER=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	run(t, url, "SELECT 1")
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as asked
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, url)
		if ctx.Err() != nil {
			t.Fatal("the server outlives the process that started it")
		}
		if err != nil {
			return
		}
		// Until it goes, this connection waits for its end.
		_, err = conn.Exec(ctx, "SELECT pg_sleep(30)")
		conn.Close(ctx)
		if err != nil && ctx.Err() == nil {
			continue
		}
	}
}

func run(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}
