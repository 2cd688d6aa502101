package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// openTimeout bounds New, which takes no context.
const openTimeout = time.Minute

// database is the implementation of a [Store].
type database struct {
	store.SharedValues
	schema     string
	statements statements
	*sharedConns
	isFromOpenSchema bool // OpenSchema returned it
	onCitus          bool
	allowAsyncCommit bool                                     // see AllowAsyncCommit
	withoutListen    bool                                     // see WithoutListen
	trustedOwners    []string                                 // see OwnedBy
	connectListener  func(context.Context) (*pgx.Conn, error) // opens the session of Listen

	batchPool            sync.Pool // of *sortedBatch
	cannotTakeWriterLock bool      // transactions cannot take the lock of shared_writer_lock_tx.sql; set when the store is opened

	storeCtx    context.Context // ends with Close
	endStoreCtx context.CancelFunc
	userEraKey  string // see connEraDataKey

	mu                 sync.Mutex
	closed             bool
	activeListeners    sync.WaitGroup // calls of Listen; added to under mu while not closed
	listenerCount      int            // how many calls of Listen are in progress
	activeCalls        sync.WaitGroup // calls that use the engine's connections; added to under mu while not closed
	rewindDetector     rewindDetector
	citus              citusLocation
	limitTimelineCache limitTimelineCache
	knownLanes         knownLanes
	presenceLocks      map[uuid.UUID]presenceLock    // the presence locks of this process's workers
	peers              map[uuid.UUID]deadWorkersView // the cached views of a store of OpenSchema, by the calling worker
}

var _ store.Store = (*database)(nil)

// openDatabase does the same as [Open], but returns the implementation.
func openDatabase(ctx context.Context, url string, opts ...Option) (*database, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, fmt.Errorf("postgres: %w: the context is nil: pass the caller's own, or context.Background()", durable.ErrInvalidConfig)
	}
	if url == "" {
		return nil, fmt.Errorf("postgres: %w: the connection string is empty: is the environment variable set that it comes from? Write postgres:// to mean the defaults of libpq", durable.ErrInvalidConfig)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The error is not wrapped, because its text may contain a password.
		return nil, fmt.Errorf("postgres: %w: the connection string cannot be parsed: write it as postgres://user@host:5432/database, and percent-encode special characters", durable.ErrInvalidConfig)
	}
	cfg.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // pgx supports no other encoding
	return openFromConfig(ctx, cfg, o)
}

// openFromConfig opens a store and creates the user's pool, whose connections also lead to the home of the schema on Citus.
func openFromConfig(ctx context.Context, cfg *pgxpool.Config, o openOptions) (*database, error) {
	o.userConfig = cfg.Copy()
	o.homeToFollow = new(atomic.Pointer[citusLocation])
	home := o.homeToFollow
	cfg.BeforeConnect = func(_ context.Context, one *pgx.ConnConfig) error {
		if c := home.Load(); c != nil {
			c.setHomeNodeAddress(one)
		}
		return nil
	}
	detectCancelledSyncWaits(&cfg.ConnConfig.Config)
	several := newHostSelectorIfSeveralHosts(cfg)
	several.configurePool(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: make a pool: %w", err)
	}
	s, err := newDatabaseWithPool(ctx, pool, several, true, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// newDatabase does the same as [New], but returns the implementation.
func newDatabase(pool *pgxpool.Pool, opts ...Option) (*database, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if pool == nil {
		return nil, fmt.Errorf("postgres: %w: the pool is nil: make one with pgxpool.New, or use Open", durable.ErrInvalidConfig)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return newDatabaseWithPool(ctx, pool, newHostSelectorIfSeveralHosts(pool.Config()), false, o)
}

// newDatabaseWithPool creates a database with the user's pool. If owned is true, Close closes the pool.
func newDatabaseWithPool(ctx context.Context, user *pgxpool.Pool, several *hostSelector, owned bool, o openOptions) (*database, error) {
	sv := &sharedConns{userPool: user, ownsUserPool: owned, hosts: several, openStoreCount: 1, heartbeats: sharedHeartbeats{phase: rand.N(maxHeartbeatPhase)}}
	sv.presenceView.readSemaphore = make(chan struct{}, 1)
	sv.userConfig = o.userConfig
	sv.lifeCtx, sv.endLifeCtx = context.WithCancel(context.Background())
	s := newDatabaseOnConns(sv, o)
	several.allowSearches(sv.lifeCtx, sv.reconnect)
	if err := s.openPools(ctx); err != nil {
		s.endStoreCtx()
		sv.endLifeCtx()
		return nil, err
	}
	if err := s.prepareSchema(ctx, o.migrate); err != nil {
		_ = s.Close() // it only closes pools
		if refused := new(AccessError); errors.As(err, &refused) {
			return nil, fmt.Errorf("postgres: %w: the server refuses the connection: %w", durable.ErrInvalidConfig, refused)
		}
		if unreached := asUnreachableError(err); unreached != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("postgres: connect to the database: %w: %w: start the server, or correct the host and the port of the URL", durable.ErrUnavailable, unreached)
		}
		return nil, err
	}
	return s, nil
}

// newDatabaseOnConns creates a database on a server.
func newDatabaseOnConns(sv *sharedConns, o openOptions) *database {
	s := &database{
		sharedConns: sv, schema: o.schema, statements: loadStatements(o.schema), allowAsyncCommit: o.allowAsyncCommit, withoutListen: o.withoutListen, trustedOwners: o.trustedOwners,
		presenceLocks: make(map[uuid.UUID]presenceLock), peers: make(map[uuid.UUID]deadWorkersView), userEraKey: connEraDataKey + "." + o.schema,
	}
	if o.homeToFollow != nil {
		o.homeToFollow.Store(&s.citus)
	}
	s.batchPool.New = func() any { return new(sortedBatch) }
	s.storeCtx, s.endStoreCtx = context.WithCancel(sv.lifeCtx)
	s.rewindDetector.init()
	return s
}

// Name returns "postgres".
func (s *database) Name() string { return "postgres" }

// Close ends Listen, waits for calls in progress, and closes all connections that the store opened. A
// second Close does nothing.
func (s *database) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.endStoreCtx()
	s.activeListeners.Wait()
	s.activeCalls.Wait()
	s.sharedConns.release()
	return nil
}

// reconnect closes the idle connections now, and the others as soon as they are released.
func (sv *sharedConns) reconnect() {
	sv.enginePool.Reset()
	sv.heartbeatPool.Reset()
	if sv.ownsUserPool {
		sv.userPool.Reset()
	}
}

func (s *database) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
