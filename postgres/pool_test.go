package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestExhaustedPoolKeepsLeases is Row 15 of package faults for the store.
func TestExhaustedPoolKeepsLeases(t *testing.T) {
	s := open(t, "cache_statement")
	for range s.userPool.Config().MaxConns {
		conn, err := s.userPool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	for range maxEngineConns {
		conn, err := s.enginePool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	beat(t, s, uuid.New())
}

// TestPoolerIsFoundOut uses a connection that behaves like one of a pooler in transaction mode: the
// announced process ID is not the server's, and notifications do not arrive. The store leaves no setting
// and no lock in the session, and everything else works.
func TestPoolerIsFoundOut(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openPooled(t, mode)
			b, _ := whole(t, s)
			commit(t, s, b)
			claims, err := s.Claim(t.Context(), store.ClaimQuery{
				Worker: uuid.New(), Filter: flow, Limit: 10, Now: now(t, s), LeaseUntil: now(t, s).Add(1e9), MaxCrashes: 5,
			})
			if err != nil || len(claims.Runs) != 1 {
				t.Errorf("the claim is %v, %v", claims, err)
			}
			worker := uuid.New()
			err = s.listenUntilFailure(t.Context(), worker, func(store.WakeHint) {})
			if !errors.Is(err, errSessionShared) || !s.presenceLockOf(worker).takenAt.IsZero() {
				t.Errorf("attendance ended with %v", err)
			}
			err = s.enginePool.AcquireFunc(t.Context(), func(conn *pgxpool.Conn) error {
				var left int
				err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_settings WHERE source = 'session' AND name LIKE 'enable%'").Scan(&left)
				if left != 0 {
					t.Errorf("%d settings stayed in the session", left)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// openPooled opens a store behind a pooler.
func openPooled(t *testing.T, mode string) *database {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(with(migratedURL(t), "sslmode=disable&default_query_exec_mode="+mode))
	if err != nil {
		t.Fatal(err)
	}
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &pooler{Conn: conn}, err
	}
	return openOver(t, cfg)
}

// pooler changes the messages of the server.
type pooler struct {
	net.Conn
	in, out []byte
}

func (p *pooler) Read(b []byte) (int, error) {
	for len(p.out) == 0 {
		var chunk [8192]byte
		n, err := p.Conn.Read(chunk[:])
		p.in = append(p.in, chunk[:n]...)
		p.pass()
		if err != nil && len(p.out) == 0 {
			return 0, err
		}
	}
	n := copy(b, p.out)
	p.out = p.out[n:]
	return n, nil
}

// pass forwards whole messages: a type byte, then a length that includes itself.
func (p *pooler) pass() {
	for len(p.in) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(p.in[1:]))
		if len(p.in) < size {
			return
		}
		switch message := p.in[:size]; message[0] {
		case 'A': // a notification, which is dropped
		case 'K': // BackendKeyData, which begins with the process ID
			message[8] ^= 0x55
			fallthrough
		default:
			p.out = append(p.out, message...)
		}
		p.in = p.in[size:]
	}
}

// TestUsersPoolIsLeftOpen: only the caller closes its pool.
func TestUsersPoolIsLeftOpen(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := newDatabase(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), pool, func(pgx.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}
