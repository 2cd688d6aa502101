package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/store"
)

// A standby that was behind can become the primary, and a database can be restored to an earlier
// time, under processes that live on. What they hold in memory is then ahead of the database: a
// run that went on would mix two histories. So each new connection says where the database is in its
// history. On another timeline, or at a position before one that was seen, the connection is given to
// nobody until the acknowledged checkpoints of all runs that are held were looked for. A run that
// lacks one is released, and replayed from what is there.

// place is where a database is in its history.
type place struct {
	timeline uint32 // zero: it does not say
	position int64  // bytes of log
}

func (p place) String() string {
	return fmt.Sprintf("timeline %d, position %X/%08X", p.timeline, uint64(p.position)>>32, uint32(p.position))
}

// stillUsed is how long ago a primary may have been heard of for one on an older timeline to be refused:
// it was superseded, and does not know it yet.
const stillUsed = 10 * time.Second

// mostRewinds are kept for a heartbeat to tell.
const mostRewinds = 16

// searchTimeout bounds the search for what was acknowledged.
const searchTimeout = 30 * time.Second

// errRewound says that what a call came to is not certain: the database goes on from an earlier
// state than the one that the call was made in.
var errRewound = errors.New("the database went on from another point of its history meanwhile")

// errSuperseded says that a server was a primary once.
var errSuperseded = errors.New("the server is an old primary: another one has been promoted")

// timeline is what a store knows of its database's history, and what it was acknowledged. A store
// whose database tells nothing, or that only reads, keeps nothing.
type timeline struct {
	off    bool // the database does not say; set when the store is opened
	known  atomic.Bool
	direct atomic.Bool   // sessions are the store's own; no pooler stands between
	eras   atomic.Uint64 // how often the database has gone back
	used   atomic.Int64  // nanoseconds since 1970: when a call last succeeded

	mu      sync.Mutex
	now     place
	held    map[uuid.UUID]*holding
	spare   []*holding // see mostSpare
	rewinds []store.Rewind
	era     context.Context // ends when the database goes back
	endEra  context.CancelFunc
}

func (l *timeline) init() {
	l.held = make(map[uuid.UUID]*holding)
	l.era, l.endEra = context.WithCancel(context.Background())
}

// within is a context that ends with ctx, and when the database goes back.
func (l *timeline) within(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	era := l.era
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(era, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// alive notes that the database has answered.
func (l *timeline) alive() {
	if l.known.Load() {
		l.used.Store(time.Now().UnixNano())
	}
}

// unplaced reports whether the database does not tell where it is, or not to us.
func unplaced(err error) bool { return hasState(err, "42883", "0A000", "42501") }

// tryTimeline finds out whether the database tells where it is: a heartbeat that asked in vain would fail.
func (s *database) tryTimeline(ctx context.Context) {
	conn, err := s.acquire(ctx, s.engine)
	if err != nil {
		return // the next call says what is wrong
	}
	defer conn.Release()
	var name pgtype.Text
	err = conn.QueryRow(ctx, s.sql.timeline, pgx.QueryExecModeExec).Scan(&name, nil)
	s.timeline.off = unplaced(err)
}

// scanPlace reads a row of timeline.sql. The first eight digits of a log file's name are the timeline.
func scanPlace(row pgx.Row) (place, error) {
	var name pgtype.Text
	var position pgtype.Int8
	if err := row.Scan(&name, &position); err != nil || len(name.String) < 8 {
		return place{}, err
	}
	number, err := strconv.ParseUint(name.String[:8], 16, 32)
	return place{timeline: uint32(number), position: position.Int64}, err
}

// admit asks a new connection where its database is, and returns the era that it belongs to.
func (s *database) admit(ctx context.Context, conn *pgx.Conn) (era uint64, err error) {
	l := &s.timeline
	if l.off {
		return l.eras.Load(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	floor := l.floor()
	at, err := scanPlace(conn.QueryRow(ctx, s.sql.timeline, pgx.QueryExecModeExec))
	if unplaced(err) {
		return l.eras.Load(), nil
	}
	if err != nil {
		return 0, err
	}
	err = s.arrive(ctx, at, floor, func(what string, fill func(*pgx.Batch), read func(results) error) error {
		var batch pgx.Batch
		fill(&batch)
		return take(conn.SendBatch(ctx, &batch), read)
	})
	return l.eras.Load(), err
}

// eraKey is where a connection of the user's pool has the era that it was admitted in, in its own data.
const eraKey = "durable.era"

// admitUsers finds out, when a connection of the user's pool is used for the first time, whether it leads to
// where the store's own do. What is to be looked for is looked for on one of those, whose settings are known.
func (s *database) admitUsers(ctx context.Context, conn *pgx.Conn) (present bool, err error) {
	l := &s.timeline
	if l.off || !l.direct.Load() {
		return true, nil
	}
	data := conn.PgConn().CustomData()
	if era, known := data[eraKey].(uint64); known {
		return era == l.eras.Load(), nil
	}
	for try := 1; ; try++ {
		at, err := scanPlace(conn.QueryRow(ctx, s.sql.timeline, pgx.QueryExecModeExec))
		if err != nil {
			return false, s.wrap(ctx, "look where the database is", err)
		}
		era, now := l.eras.Load(), l.floor()
		if at.timeline == now.timeline {
			data[eraKey] = era
			return true, nil
		}
		if try == 2 {
			return false, fmt.Errorf("postgres: begin: %w: %w: it is at %v, and the database has been at %v", store.ErrUnavailable, errRewound, at, now)
		}
		s.reconnect() // one of the own connections is made anew, and admitted
		if _, err := s.Now(ctx); err != nil {
			return false, err
		}
	}
}

// present reports whether the connection is of the present era, as far as that can be told.
func (s *database) present(conn *pgx.Conn) bool {
	own := sessionOf(conn)
	return own == nil || own.era == s.timeline.eras.Load()
}

// acquireUsers takes a connection of the user's pool that belongs to the present.
func (s *database) acquireUsers(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		conn, err := s.acquire(ctx, s.userPool())
		if err != nil {
			return nil, err
		}
		present, err := s.admitUsers(ctx, conn.Conn())
		if err == nil && present {
			return conn, nil
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = conn.Conn().Close(ended) // at once
		conn.Release()
		if err != nil {
			return nil, err
		}
	}
}

// floor is the last place that was seen: whoever asks from now on must not be told an earlier position on
// the same timeline.
func (l *timeline) floor() place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// advance notes where a database was found to be on a connection that was admitted before.
func (l *timeline) advance(at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.timeline != 0 && at.timeline == l.now.timeline {
		l.now.position = max(l.now.position, at.position)
		l.used.Store(time.Now().UnixNano())
	}
}

// arrive judges where a database was found to be by somebody who asked after floor had been seen. If it has gone
// back, what was acknowledged is looked for by ask, and nothing is acknowledged meanwhile.
func (s *database) arrive(ctx context.Context, at, floor place, ask asker) error {
	l := &s.timeline
	if at.timeline == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.now
	switch {
	case was.timeline == 0:
	case at.timeline < was.timeline && time.Since(time.Unix(0, l.used.Load())) < stillUsed:
		return fmt.Errorf("%w: %w: it is at %v, and the database has been at %v", store.ErrUnavailable, errSuperseded, at, was)
	case at.timeline != was.timeline || at.timeline == floor.timeline && at.position < floor.position:
		rewind := store.Rewind{From: was.String(), To: at.String(), OwnedRuns: len(l.held)}
		lost, err := s.search(ctx, ask)
		if err != nil {
			return err
		}
		if rewind.Lost = lost; len(l.rewinds) < mostRewinds {
			l.rewinds = append(l.rewinds, rewind)
		}
		l.eras.Add(1)
		l.endEra()
		l.era, l.endEra = context.WithCancel(context.Background())
		l.now = at
		s.reconnect()
	}
	if l.now.timeline != at.timeline || l.now.position < at.position {
		l.now = at
	}
	l.used.Store(time.Now().UnixNano())
	l.known.Store(true)
	return nil
}

// told takes the rewinds that no heartbeat has told yet.
func (l *timeline) told() []store.Rewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.rewinds
	l.rewinds = nil
	return all
}
