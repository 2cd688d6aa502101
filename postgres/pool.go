package postgres

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxEngineConns = 6
	// Heartbeats use one connection. A connection that hangs counts until pgx has closed it, which takes
	// longer than most leases last; the next heartbeat needs another one.
	maxHeartbeatConns = 3
)

// MaxOwnConns is how many connections the store of a process with one worker opens at most, besides the pool for [Tx]. MaxOwnConns counts
// the connections for statements and heartbeats, and one connection for notifications. If several engines of a process work on one store,
// the store opens one more connection for notifications. Stores that [Store.OpenSchema] returns share the connections of the first store.
// Compare the server's max_connections with MaxOwnConns times the number of processes.
const MaxOwnConns = maxEngineConns + maxHeartbeatConns + 1

// openPools creates the store's own pools with the configuration of the user's pool. It does not connect.
func (s *database) openPools(ctx context.Context) error {
	var err error
	if s.enginePool, err = s.newPool(ctx, maxEngineConns); err != nil {
		return err
	}
	s.engineGate = newConnGate(maxEngineConns, func() int { return openConnCount(s.enginePool) })
	if s.heartbeatPool, err = s.newPool(ctx, maxHeartbeatConns); err != nil {
		s.enginePool.Close()
		return err
	}
	cfg := s.enginePoolConfig()
	s.connectListener = func(ctx context.Context) (*pgx.Conn, error) {
		one := cfg.ConnConfig.Copy()
		if cfg.BeforeConnect != nil { // the user's hook sets credentials that rotate
			if err := cfg.BeforeConnect(ctx, one); err != nil {
				return nil, err
			}
		}
		boundCloseTime(one) // the server releases the presence locks when the socket is closed
		conn, err := pgx.ConnectConfig(ctx, one)
		if err != nil {
			return nil, err
		}
		enableTCPKeepAlive(conn.PgConn().Conn())
		return conn, nil
	}
	return nil
}

// enginePoolConfig returns the configuration of the store's own connections, which is based on the user's pool.
func (s *database) enginePoolConfig() *pgxpool.Config {
	cfg := s.userPool.Config()
	if !s.ownsUserPool { // Open has already done this for the pool that it creates
		s.hosts.configurePool(cfg)
	}
	if hasNoConnectTimeout(cfg.ConnConfig) {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	before := cfg.BeforeConnect
	cfg.BeforeConnect = func(ctx context.Context, one *pgx.ConnConfig) error {
		if before != nil {
			if err := before(ctx, one); err != nil {
				return err
			}
		}
		s.citus.setHomeNodeAddress(one)
		return nil
	}
	return cfg
}

// hasNoConnectTimeout reports whether nobody has set a timeout for connecting.
func hasNoConnectTimeout(cfg *pgx.ConnConfig) bool {
	return cfg.ConnectTimeout <= 0 || cfg.ConnectTimeout == poolDefaultConnectTimeout
}

func (s *database) newPool(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	cfg := s.enginePoolConfig()
	cfg.MaxConns = conns
	cfg.MinConns = 0
	cfg.MinIdleConns = 0
	cfg.MaxConnIdleTime = min(cfg.MaxConnIdleTime, connIdleTime)
	cfg.HealthCheckPeriod = min(cfg.HealthCheckPeriod, connIdleTime/3)
	// These hooks are meant for the user's sessions.
	cfg.PrepareConn = nil
	cfg.BeforeAcquire = nil //lint:ignore SA1019 deprecated, but still called if it is set
	cfg.AfterRelease = nil
	detectCancelledSyncWaits(&cfg.ConnConfig.Config)
	if params := cfg.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "durable"
	}
	users := cfg.AfterConnect
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if users != nil {
			if err := users(ctx, conn); err != nil {
				return err
			}
		}
		return s.prepareConn(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: make a pool: %w", err)
	}
	return pool, nil
}

// openConnCount returns how many connections a pool has, without those that are being opened.
func openConnCount(pool *pgxpool.Pool) int {
	stat := pool.Stat()
	return int(stat.AcquiredConns() + stat.IdleConns())
}

// prepareConn prepares a new connection of the store's own. It registers the column types. If no pooler shares
// the session, it also makes the settings for the session.
func (s *database) prepareConn(ctx context.Context, conn *pgx.Conn) error {
	registerParameterTypes(conn.TypeMap())
	if err := s.checkHomeNode(ctx, conn); err != nil {
		return err
	}
	if conn.Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	// The statement is not prepared, because it is not known yet whether prepared statements last here.
	tag, err := conn.Exec(ctx, s.statements.setEngineSessionSettings, pgx.QueryExecModeExec, false, int32(conn.PgConn().PID()), !s.allowAsyncCommit, s.citus.planCacheMode())
	if err != nil {
		return err
	}
	if tag.RowsAffected() > 0 {
		s.rewindDetector.withoutPooler.Store(true)
		if err := s.takeSharedWriterLock(ctx, conn); err != nil {
			return err
		}
		eras := make(map[*rewindDetector]uint64)
		if !s.isClosed() { // stores of OpenSchema may outlive this store
			if eras[&s.rewindDetector], err = s.detectRewindOnConn(ctx, conn); err != nil {
				return err
			}
		}
		conn.PgConn().CustomData()[sessionKey] = &connState{eras: eras, sendsBeginCommit: s.citus.isSchemaDistributed(), traced: conn.Config().Tracer != nil, prepared: make(map[string]*preparedStatement)}
	}
	return nil
}

// enableTCPKeepAlive makes the kernel close a silent TCP connection within 30 seconds after the other side is
// gone. It does nothing for connections of other kinds.
func enableTCPKeepAlive(c net.Conn) {
	for wrapped, ok := c.(interface{ NetConn() net.Conn }); ok; wrapped, ok = c.(interface{ NetConn() net.Conn }) { // unwraps TLS
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{ // best effort: a ping follows anyway
			Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
		})
	}
}
