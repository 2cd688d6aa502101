package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// refusing returns the address of a server that refuses every connection with this SQLSTATE.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			server := pgproto3.NewBackend(conn, conn)
			if _, err := server.ReceiveStartupMessage(); err == nil {
				server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message})
				_ = server.Flush()
			}
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// wantRefused checks that the error has this reason and contains no password.
func wantRefused(t *testing.T, what string, err error, reason postgres.AccessReason, text string) {
	t.Helper()
	var refused *postgres.AccessError
	switch {
	case !errors.As(err, &refused) || refused.Reason != reason:
		t.Errorf("%s: got %v, want an AccessError about the %s", what, err, reason)
	case !errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrUnavailable):
		t.Errorf("%s: %v: want ErrInvalidConfig, and not ErrUnavailable", what, err)
	case !strings.Contains(err.Error(), text):
		t.Errorf("%s: %v: it lacks %s", what, err, text)
	}
	if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "postgres://")) {
		t.Errorf("%s: the error tells the password, or the URL: %v", what, err)
	}
}

// A server that refuses the connection is not unavailable: Open and New return at once what it refuses.
func TestRefusedConnectionsAreTold(t *testing.T) {
	for _, c := range []struct {
		code   string
		reason postgres.AccessReason
		text   string
	}{
		{"28P01", postgres.WrongPassword, `the password of role "app" is wrong`},
		{"28000", postgres.RefusedRole, `role "app" may not connect`},
		{"3D000", postgres.UnknownDatabase, `database "shop" does not exist`},
		{"42501", postgres.NoPrivilege, `role "app" lacks a privilege`},
	} {
		at := refusing(t, c.code, "the server's words")
		dsn := fmt.Sprintf("postgres://app:s3cret@%s/shop?sslmode=disable", at)
		_, err := postgres.Open(t.Context(), dsn)
		wantRefused(t, "Open, "+c.code, err, c.reason, c.text)
		_, err = postgres.Open(t.Context(), fmt.Sprintf("postgres://app:s3cret@%s,%s/shop?sslmode=disable&target_session_attrs=read-write", at, at))
		wantRefused(t, "Open with several hosts, "+c.code, err, c.reason, c.text)
		pool, err := pgxpool.New(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		_, err = postgres.New(pool)
		wantRefused(t, "New, "+c.code, err, c.reason, c.text)
		pool.Close()
	}
}

// If nothing listens at the address, the error says that the store could not connect, and how to fix it.
func TestOpenWithoutAServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	at := l.Addr().String()
	_, err = postgres.Open(t.Context(), "postgres://app:s3cret@"+at+"/shop")
	_, errOfTwo := postgres.Open(t.Context(), fmt.Sprintf("postgres://app:s3cret@%s,%s/shop?target_session_attrs=read-write", at, at))
	for what, err := range map[string]error{"one host": err, "two hosts": errOfTwo} {
		const begin, end = "postgres: connect to the database: ", ": start the server, or correct the host and the port of the URL"
		if !errors.Is(err, durable.ErrUnavailable) || !strings.HasPrefix(err.Error(), begin) || !strings.HasSuffix(err.Error(), end) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q and %q", what, err, begin, end)
		}
	}
}

// A real server returns the same errors.
func TestAnUnknownDatabaseOrRole(t *testing.T) {
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	other := *u
	other.Path = "/nowhere"
	_, err = postgres.Open(t.Context(), other.String())
	wantRefused(t, "database", err, postgres.UnknownDatabase, `database "nowhere" does not exist`)
	other = *u
	other.User = url.User("nobody at all")
	_, err = postgres.Open(t.Context(), other.String())
	if refused := new(postgres.AccessError); !errors.As(err, &refused) || refused.Role != "nobody at all" {
		t.Errorf("role: %v", err)
	}
}

// A store whose role is refused later retries, and its errors contain the reason.
func TestRefusedLater(t *testing.T) {
	dsn := pgtest.URL(t)
	admin, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	role := "app_" + strings.ToLower(rand.Text())
	do := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(context.Background(), sql); err != nil {
			t.Error(err)
		}
	}
	do("CREATE ROLE " + role + " LOGIN SUPERUSER PASSWORD 's3cret'")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "s3cret")
	s, err := postgres.Open(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		do("DROP OWNED BY " + role + " CASCADE")
		do("DROP ROLE " + role)
	})
	do("ALTER ROLE " + role + " NOLOGIN")
	do("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '" + role + "'")
	refused := new(postgres.AccessError)
	for range 10 { // the first calls find their connections closed
		if _, err = s.Workers(t.Context()); errors.As(err, &refused) {
			break
		}
	}
	if !errors.Is(err, durable.ErrUnavailable) || refused.Reason != postgres.RefusedRole || refused.Role != role || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want ErrUnavailable and an AccessError about the role %s", err, role)
	}
	do("ALTER ROLE " + role + " LOGIN")
	if _, err := s.Workers(t.Context()); err != nil {
		t.Errorf("when it may connect again: %v", err)
	}
}
