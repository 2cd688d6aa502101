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

// Store is one PostgreSQL database, or one schema of it. Make it with Open or New. It is
// safe for concurrent use.
type Store struct {
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

var _ store.Store = (*Store)(nil)

// Open connects to the database at url, a PostgreSQL URL or key=value string, applies
// the migrations that are missing, and answers the store. Close closes everything.
//
// It returns an error if the server is older than PostgreSQL 15, or the schema is newer
// than this code; an [*OwnerError] if a stranger owns the schema; an [*AccessError] if the server refuses the
// password, the role or the database; and one that is
// durable.ErrInvalidConfig if url is empty, or the database keeps text in another encoding than UTF-8.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
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

// New makes a store of the database that pool connects to, and applies the migrations
// that are missing. The store makes its own few connections with the pool's
// configuration; the pool itself serves transactional steps only, and stays the
// caller's to close, after the store.
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
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
func newStore(ctx context.Context, user *pgxpool.Pool, several *hosts, owned bool, o options) (*Store, error) {
	s := &Store{
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
func (s *Store) Name() string { return "postgres" }

// Close ends Attend and closes all connections that the store opened itself. It waits
// for calls in flight. A second Close does nothing.
func (s *Store) Close() error {
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
func (s *Store) reconnect() {
	s.engine.Reset()
	s.pulse.Reset()
	if s.owned {
		s.user.Reset()
	}
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// userPool is where transactions of the user's begin.
func (s *Store) userPool() *pgxpool.Pool { return s.user }
