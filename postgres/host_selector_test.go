package postgres

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// A search found a host, and the host is gone before the next connection. Nobody gets its refusal while another
// host takes writes.
func TestFoundHostIsGone(t *testing.T) {
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	network, server := pgconn.NetworkAddress(cfg.ConnConfig.Host, cfg.ConnConfig.Port)
	cfg.ConnConfig.Host, cfg.ConnConfig.Port = "first", 5432
	cfg.ConnConfig.Fallbacks = []*pgconn.FallbackConfig{{Host: "second", Port: 5432}}
	var mu sync.Mutex
	var conns []net.Conn
	up := "first"
	cfg.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	cfg.ConnConfig.DialFunc = func(ctx context.Context, _, addr string) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(addr, up) {
			return nil, fmt.Errorf("%s is down", addr)
		}
		conn, err := new(net.Dialer).DialContext(ctx, network, server)
		if err == nil {
			conns = append(conns, conn)
		}
		return conn, err
	}
	s := openOver(t, cfg)
	if _, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: uuid.NewString()}}); err != nil {
		t.Fatal(err)
	}

	s.hosts.mu.Lock()
	s.hosts.latestSearch.endedAt = time.Now().Add(time.Hour) // it counts as found just now, however slow this machine is
	s.hosts.mu.Unlock()
	mu.Lock()
	up = "second"
	for _, conn := range conns {
		_ = conn.Close()
	}
	mu.Unlock()
	s.enginePool.Reset()
	if _, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: uuid.NewString()}}); err != nil {
		t.Errorf("Get = %v, although the second host takes writes", err)
	}
}
