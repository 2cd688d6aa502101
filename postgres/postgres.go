package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// openTimeout bounds New, which has no context of its own.
const openTimeout = time.Minute

// database is the implementation of a [Store].
type database struct {
	schema  string
	sql     statements
	user    *pgxpool.Pool // transactional steps, StartTx and SignalTx only
	owned   bool          // user was made by Open, so Close closes it
	async   bool          // see AllowAsyncCommit
	deaf    bool          // see WithoutListen
	owners  []string      // see OwnedBy
	engine  *pgxpool.Pool
	pulse   *pgxpool.Pool
	connect func(context.Context) (*pgx.Conn, error) // for Attend
	hosts   *hosts                                   // nil if the URL names one

	scratch  sync.Pool // of *sorted
	unmarked bool      // transactions cannot take the mark of writer_local.sql; set when the store is opened

	life context.Context // ends with Close
	kill context.CancelFunc

	mu        sync.Mutex
	closed    bool
	attending sync.WaitGroup // calls of Attend; added to under mu while not closed
	timeline  timeline
	presence  map[uuid.UUID]presence // the locks that workers of this process hold
}

var _ store.Store = (*database)(nil)

// openDatabase is [Open] without the wrapper.
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
		// Not wrapped: the text of what cannot be parsed may hold a password anywhere.
		return nil, errors.New("postgres: the connection string cannot be parsed: write it as postgres://user@host:5432/database, and percent-encode special characters")
	}
	cfg.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // pgx knows no other
	heedNotices(&cfg.ConnConfig.Config)
	several := newHosts(cfg)
	several.join(cfg)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: make a pool: %w", err)
	}
	s, err := newStore(ctx, pool, several, true, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// newDatabase is [New] without the wrapper.
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
	return newStore(ctx, pool, newHosts(pool.Config()), false, o)
}

// newStore makes the store over the user's pool, which is its own to close if it is owned.
func newStore(ctx context.Context, user *pgxpool.Pool, several *hosts, owned bool, o options) (*database, error) {
	s := &database{
		schema: o.schema, sql: load(o.schema), user: user, owned: owned, hosts: several, async: o.async, deaf: o.deaf, owners: o.owners,
		presence: make(map[uuid.UUID]presence),
	}
	s.scratch.New = func() any { return new(sorted) }
	s.life, s.kill = context.WithCancel(context.Background())
	s.timeline.init()
	several.begin(s.life, s.reconnect)
	if err := s.openPools(ctx); err != nil {
		s.kill()
		return nil, err
	}
	if err := s.prepare(ctx, o.migrate); err != nil {
		_ = s.Close() // nothing but closing pools
		if refused := new(AccessError); errors.As(err, &refused) {
			return nil, fmt.Errorf("postgres: %w: the server refuses the connection: %w", durable.ErrInvalidConfig, refused)
		}
		return nil, err
	}
	return s, nil
}

// Name is "postgres".
func (s *database) Name() string { return "postgres" }

// Close ends Attend and closes all connections that the store opened itself. It waits
// for calls in flight. A second Close does nothing.
func (s *database) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.kill()
	s.attending.Wait()
	s.engine.Close()
	s.pulse.Close()
	if s.owned {
		s.user.Close()
	}
	s.hosts.close()
	return nil
}

// reconnect drops the connections that nothing is under way on, and the others once nothing is.
func (s *database) reconnect() {
	s.engine.Reset()
	s.pulse.Reset()
	if s.owned {
		s.user.Reset()
	}
}

func (s *database) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// userPool is where transactions of the user's begin.
func (s *database) userPool() *pgxpool.Pool { return s.user }
