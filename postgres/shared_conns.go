package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// sharedConns holds what the stores on several schemas of one database share: the connections, the session of Listen, the view of the presence
// locks, and the heartbeats of workers without leases. The store that Open or New returns has no special role, so the stores may be closed in
// any order.
type sharedConns struct {
	userPool      *pgxpool.Pool
	ownsUserPool  bool // Open created the user's pool, so the last Close closes it
	enginePool    *pgxpool.Pool
	engineGate    *connGate // of enginePool
	heartbeatPool *pgxpool.Pool
	hosts         *hostSelector // nil if the URL names one
	lifeCtx       context.Context
	endLifeCtx    context.CancelFunc

	userConfig          *pgxpool.Config // with which Open created the user's pool
	parent              *sharedConns    // the sharedConns whose user's pool this one uses; nil: this one has its own
	tooManyConnsWarning tooManyConnsWarning

	mu               sync.Mutex
	openStoreCount   int    // how many stores are open
	resetForTimeline uint32 // the timeline for which the pools were last reset

	heartbeats   sharedHeartbeats
	session      sharedListenSession
	presenceView sharedPresenceView // of the stores of OpenSchema
}

// retain adds a store, and reports whether the server is open.
func (sv *sharedConns) retain() bool {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	if sv.openStoreCount == 0 {
		return false
	}
	sv.openStoreCount++
	return true
}

// release removes a store, whose calls have ended. It closes the connections of the last store.
func (sv *sharedConns) release() {
	sv.mu.Lock()
	sv.openStoreCount--
	last := sv.openStoreCount == 0
	sv.mu.Unlock()
	if !last {
		return
	}
	sv.endLifeCtx()
	sv.enginePool.Close()
	sv.heartbeatPool.Close()
	if sv.ownsUserPool {
		sv.userPool.Close()
	}
	sv.hosts.close()
	if sv.parent != nil {
		sv.parent.release()
	}
}

// reconnectAfterRewind calls reconnect once for all stores that notice the change to another timeline. A connection that a store has
// used before the change is closed in any case when the store is about to use it again.
func (sv *sharedConns) reconnectAfterRewind(was, at logPosition) {
	sv.mu.Lock()
	done := was.timeline != at.timeline && sv.resetForTimeline == at.timeline
	sv.resetForTimeline = at.timeline
	sv.mu.Unlock()
	if !done {
		sv.reconnect()
	}
}

// OpenSchema returns a store of another schema of the same database. The returned store shares the connections of s, so that a process can
// execute the runs of many schemas, for example one schema for each tenant. A worker on a further schema opens no connection, and polls
// less often while notifications arrive. OpenSchema applies the missing migrations to the schema. The stores that share connections may be
// closed in any order; the last one to be closed closes the connections. On Citus, where schemas are on different nodes, each store has
// connections of its own. A pool that was given to New leads to one node only, so a Tx step of a schema on another node returns a
// [*WrongCitusNodeError].
//
// OpenSchema accepts only the options WithoutMigrations and OwnedBy. OpenSchema returns the errors of [Open].
func (s *Store) OpenSchema(ctx context.Context, name string, opts ...Option) (*Store, error) {
	var first *database
	if s != nil {
		first, _ = s.storeForEngine.(*database)
	}
	if first == nil {
		return nil, fmt.Errorf("postgres: %w: the store was not returned by Open or New", durable.ErrInvalidConfig)
	}
	db, err := first.openSchema(ctx, name, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// openSchema does the same as [Store.OpenSchema], but returns the implementation.
func (s *database) openSchema(ctx context.Context, name string, opts ...Option) (*database, error) {
	o, err := newOptions(append([]Option{Schema(name)}, opts...))
	if err != nil {
		return nil, err
	}
	for _, option := range []string{"AllowAsyncCommit", "WithoutListen"} {
		if o.givenOptions[option] {
			return nil, fmt.Errorf("postgres: %w: the option %s is given to OpenSchema: give it to Open, for all schemas", durable.ErrInvalidConfig, option)
		}
	}
	o.allowAsyncCommit, o.withoutListen = s.allowAsyncCommit, s.withoutListen
	if !s.sharedConns.retain() {
		return nil, fmt.Errorf("postgres: open schema %q: %w", name, store.ErrClosed)
	}
	if s.onCitus {
		return s.openCitusSchema(ctx, o)
	}
	other := newDatabaseOnConns(s.sharedConns, o)
	other.connectListener, other.isFromOpenSchema = s.connectListener, true
	if err := other.prepareSchema(ctx, o.migrate); err != nil {
		_ = other.Close() // it returns no error
		return nil, err
	}
	return other, nil
}

// openCitusSchema opens another schema with connections of its own, because it may lie on another node. If s was created by New, the
// new store uses the user's pool of s. The caller has called retain.
func (s *database) openCitusSchema(ctx context.Context, o openOptions) (*database, error) {
	if s.userConfig != nil {
		defer s.sharedConns.release()
		return openFromConfig(ctx, s.userConfig.Copy(), o)
	}
	other, err := newDatabaseWithPool(ctx, s.userPool, newHostSelectorIfSeveralHosts(s.userPool.Config()), false, o)
	if err != nil {
		s.sharedConns.release()
		return nil, err
	}
	other.sharedConns.parent = s.sharedConns
	return other, nil
}
