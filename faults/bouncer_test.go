package faults

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// Row 17: through PgBouncer in transaction mode, where LISTEN does not arrive and session
// settings do not last, everything finishes in pgx's modes that are meant for it.
func TestRow17_Bouncer(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}()
	port := bouncer(t, server)
	const runs = 100
	for _, mode := range []string{"cache_describe", "exec"} {
		t.Run(mode, func(t *testing.T) {
			at := fmt.Sprintf("postgres://anybody@127.0.0.1:%d/postgres?sslmode=disable&default_query_exec_mode=%s", port, mode)
			s, err := postgres.Open(t.Context(), at, postgres.Schema("bouncer_"+mode))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
				sum, err := c.Step("double", func(context.Context) (int, error) { return 2 * n, nil })
				if err != nil {
					return 0, err
				}
				one, err := postgres.Tx(c, "tx", func(ctx context.Context, tx pgx.Tx) (one int, err error) {
					err = tx.QueryRow(ctx, "SELECT 1").Scan(&one)
					return one, err
				})
				return sum + one, err
			})
			worker, client := engineOn(t, s, durable.Config{}, w), engineOn(t, s, durable.Config{})
			stop := runEngine(t, worker)
			defer stop()
			var all sync.WaitGroup
			for i := range runs {
				all.Go(func() {
					run, err := w.Start(bounded(t), client, i) // claimed, never hinted
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := run.Result(bounded(t)); err != nil || got != 2*i+1 {
						t.Errorf("run %d: %d, %v", i, got, err)
					}
				})
			}
			all.Wait()
			t.Logf("mode=%s runs=%d", mode, runs)
		})
	}
}

// bouncer starts a PgBouncer in transaction mode in front of the server, and returns its port.
func bouncer(t *testing.T, server *pgtest.Server) int {
	t.Helper()
	at, err := url.Parse(server.TCP())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := at.User.Password()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "pgb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "bouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%s dbname=postgres user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
`, at.Port(), at.User.Username(), password, port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bouncerProgram(t), config)
	if os.Geteuid() == 0 { // it refuses root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // killed, as asked
	})
	await(t, "PgBouncer's reply", func() bool {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://anybody@127.0.0.1:%d/postgres?sslmode=disable", port))
		if err != nil {
			return false
		}
		return conn.Close(t.Context()) == nil
	})
	return port
}

// bouncerProgram finds PgBouncer, or as root on Debian installs it.
func bouncerProgram(t *testing.T) string {
	t.Helper()
	find := func() string {
		for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
			if path, err := exec.LookPath(name); err == nil {
				return path
			}
		}
		return ""
	}
	if path := find(); path != "" {
		return path
	}
	if _, err := exec.LookPath("apt-get"); err == nil && os.Geteuid() == 0 {
		for _, args := range [][]string{{"update", "-q"}, {"install", "-y", "-q", "--no-install-recommends", "pgbouncer"}} {
			cmd := exec.Command("apt-get", args...)
			cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("apt-get %s: %v\n%s", args[0], err, out)
			}
		}
	}
	path := find()
	if path == "" {
		t.Fatal("PgBouncer is not installed, and only root on Debian can have it installed by the test: install the package pgbouncer")
	}
	return path
}
