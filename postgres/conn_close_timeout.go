package postgres

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// closeTimeout bounds the messages at the end of a connection.
const closeTimeout = 250 * time.Millisecond

// shortDeadlineConn is a socket with deadlines of at most 250 ms. pgx sets a deadline in the past to end a call, and
// one of 15 seconds when it abandons a connection and waits for the server's last messages.
type shortDeadlineConn struct{ net.Conn }

// SetDeadline implements net.Conn.
func (c shortDeadlineConn) SetDeadline(t time.Time) error {
	if soon := time.Now().Add(closeTimeout); t.After(soon) {
		t = soon
	}
	return c.Conn.SetDeadline(t)
}

// NetConn returns the wrapped socket.
func (c shortDeadlineConn) NetConn() net.Conn { return c.Conn }

// boundCloseTime bounds the time to abandon a connection whose host may hang: pgx then opens another connection
// to cancel the statement, and waits for the reply.
func boundCloseTime(cfg *pgx.ConnConfig) {
	dial, after := cfg.DialFunc, cfg.AfterConnect
	var made atomic.Bool
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !made.Load() {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return shortDeadlineConn{conn}, nil
		}
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		conn, err := dial(ctx, network, addr)
		if err == nil {
			err = conn.SetDeadline(time.Now().Add(closeTimeout))
		}
		return conn, err
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		made.Store(true)
		if after != nil {
			return after(ctx, conn)
		}
		return nil
	}
}
