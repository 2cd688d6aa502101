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

// A standby that lags behind can become the primary, and a database can be restored to an earlier time,
// while processes continue. What they have in memory is then ahead of the database, and a run that
// continued would mix two histories. So each new connection reads the database's position in its history.
// If the timeline is another one, or the position is before a position seen earlier, no call gets the connection until the store has
// searched for the acknowledged checkpoints of all owned runs. A run that lacks a checkpoint is released, and is replayed from the
// recorded history.

// logPosition is a position in the history of a database.
type logPosition struct {
	timeline uint32 // zero: unknown
	position int64  // bytes of WAL
}

func (p logPosition) String() string {
	return fmt.Sprintf("timeline %d, position %X/%08X", p.timeline, uint64(p.position)>>32, uint32(p.position))
}

// seenLogPosition is the last position that was seen, and the era in which it was.
type seenLogPosition struct {
	logPosition
	era uint64
}

// refuseOldPrimaryFor is how long after a successful call a server on an older timeline is refused: another server
// was promoted, and the old primary does not know it yet.
const refuseOldPrimaryFor = 10 * time.Second

// maxUnreportedRewinds bounds the rewinds that are kept until a heartbeat returns them.
const maxUnreportedRewinds = 16

// checkpointSearchTimeout bounds the search for acknowledged checkpoints.
const checkpointSearchTimeout = 30 * time.Second

// errRewound is returned when the result of a call is uncertain, because the database went back to an
// earlier state during the call.
var errRewound = errors.New("the database went on from another point of its history meanwhile")

// errOldPrimary is returned for a server that was the primary before another one was promoted.
var errOldPrimary = errors.New("the server is an old primary: another one has been promoted")

// rewindDetector records the database's position in its history, and the acknowledged checkpoints of the runs that this process owns.
// A new era begins whenever the database goes back. The rewindDetector records nothing if the database does not report its position,
// or if the store only reads.
type rewindDetector struct {
	disabled      bool // the database does not report its position; set when the store is opened
	positionKnown atomic.Bool
	withoutPooler atomic.Bool   // no pooler shares the store's sessions
	rewindCount   atomic.Uint64 // how often the database has gone back
	lastReplyAt   atomic.Int64  // nanoseconds since 1970: when a call last succeeded

	mu                sync.Mutex
	position          logPosition
	ownedRuns         map[uuid.UUID]*acknowledgedHistory
	spareRunHistories []*acknowledgedHistory // see maxSpareRuns
	rewinds           []store.DatabaseRewind
	eraCtx            context.Context // ends when the database goes back
	endEra            context.CancelFunc
}

func (l *rewindDetector) init() {
	l.ownedRuns = make(map[uuid.UUID]*acknowledgedHistory)
	l.eraCtx, l.endEra = context.WithCancel(context.Background())
}

// contextUntilRewind returns a context that ends with ctx, or when the database goes back.
func (l *rewindDetector) contextUntilRewind(ctx context.Context) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	era := l.eraCtx
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(era, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// timelineText returns the timeline of the database, or an empty text if the database does not report it.
func (l *rewindDetector) timelineText() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.position.timeline == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(l.position.timeline), 10)
}

// noteReply records that the database has replied.
func (l *rewindDetector) noteReply() {
	if l.positionKnown.Load() {
		l.lastReplyAt.Store(time.Now().UnixNano())
	}
}

// isLogPositionUnavailable reports whether the database does not report its position, at least not to this role.
func isLogPositionUnavailable(err error) bool { return hasSQLState(err, "42883", "0A000", "42501") }

// probeLogPosition finds out whether the database reports its position. If not, a heartbeat that reads it
// would fail.
func (s *database) probeLogPosition(ctx context.Context) {
	conn, err := s.acquireConn(ctx, s.enginePool)
	if err != nil {
		return // the next call returns the error
	}
	defer s.releaseConn(s.enginePool, conn)
	var name pgtype.Text
	err = conn.QueryRow(ctx, s.statements.walPosition, pgx.QueryExecModeExec).Scan(&name, nil)
	s.rewindDetector.disabled = isLogPositionUnavailable(err)
}

// readLogPosition reads the result of wal_position.sql.
func readLogPosition(res statementResults, at *logPosition) error {
	return eachRow(res, func(rows pgx.Rows) (err error) {
		*at, err = scanLogPosition(rows)
		return err
	})
}

// scanLogPosition scans a row of wal_position.sql. The first eight digits of a WAL file's name are the timeline.
func scanLogPosition(row pgx.Row) (logPosition, error) {
	var name pgtype.Text
	var position pgtype.Int8
	if err := row.Scan(&name, &position); err != nil || len(name.String) < 8 {
		return logPosition{}, err
	}
	number, err := strconv.ParseUint(name.String[:8], 16, 32)
	return logPosition{timeline: uint32(number), position: position.Int64}, err
}

// detectRewindOnConn reads the database's position on a new connection, and returns the era of the connection.
func (s *database) detectRewindOnConn(ctx context.Context, conn *pgx.Conn) (era uint64, err error) {
	l := &s.rewindDetector
	if l.disabled {
		return l.rewindCount.Load(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointSearchTimeout)
	defer cancel()
	for {
		floor := l.lastPosition()
		at, err := scanLogPosition(conn.QueryRow(ctx, s.statements.walPosition, pgx.QueryExecModeExec))
		if isLogPositionUnavailable(err) {
			return l.rewindCount.Load(), nil
		}
		if err != nil {
			return 0, err
		}
		err = s.checkForRewind(ctx, at, floor, func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
			var batch pgx.Batch
			fill(&batch)
			return readAndClose(conn.SendBatch(ctx, &batch), read)
		})
		if !errors.Is(err, errRewound) { // otherwise another connection has found a rewind meanwhile: read the position again
			return l.rewindCount.Load(), err
		}
	}
}

// connEraDataKey is the key under which a connection of the user's pool keeps the era in which it was admitted.
const connEraDataKey = "durable.era"

// checkUserConnTimeline reports whether a connection of the user's pool leads to the same timeline as the store's
// own connections. It checks that when the connection is used for the first time. If the timelines
// differ, the store opens a connection of its own, whose settings are known, and searches for
// acknowledged checkpoints there.
func (s *database) checkUserConnTimeline(ctx context.Context, conn *pgx.Conn) (present bool, err error) {
	l := &s.rewindDetector
	if l.disabled || !l.withoutPooler.Load() {
		return true, nil
	}
	data := conn.PgConn().CustomData()
	if era, known := data[s.userEraKey].(uint64); known {
		return era == l.rewindCount.Load(), nil
	}
	if err := s.checkUserConnOnHomeNode(ctx, conn); err != nil {
		return false, err
	}
	for try := 1; ; try++ {
		at, err := scanLogPosition(conn.QueryRow(ctx, s.statements.walPosition, pgx.QueryExecModeExec))
		if err != nil {
			return false, s.wrapError(ctx, "look where the database is", err)
		}
		era, now := l.rewindCount.Load(), l.lastPosition()
		if at.timeline == now.timeline {
			data[s.userEraKey] = era
			return true, nil
		}
		if try == 2 {
			return false, fmt.Errorf("postgres: begin: %w: %w: it is at %v, and the database has been at %v", store.ErrUnavailable, errRewound, at, now)
		}
		s.reconnect() // Now then opens a new connection, on which detectRewindOnConn reads the position
		if _, err := s.Now(ctx); err != nil {
			return false, err
		}
	}
}

// wasOpenedSinceRewind reports whether the connection belongs to the current era. It returns true if that is unknown.
func (s *database) wasOpenedSinceRewind(conn *pgx.Conn) bool {
	own := connStateOf(conn)
	return own == nil || own.eras[&s.rewindDetector] == s.rewindDetector.rewindCount.Load()
}

// checkConnOnFirstUse checks the database's position on a connection that another store has opened, before this store uses the
// connection for the first time.
func (s *database) checkConnOnFirstUse(ctx context.Context, conn *pgx.Conn) error {
	own := connStateOf(conn)
	if own == nil {
		return nil
	}
	if _, admitted := own.eras[&s.rewindDetector]; admitted {
		return nil
	}
	s.rewindDetector.withoutPooler.Store(true)
	ctx, landed := s.hosts.trackCall(ctx, s.hosts.addressOf(conn), false)
	era, err := s.detectRewindOnConn(ctx, conn)
	if landed() && err != nil {
		err = hostChangedError(err)
	}
	if err == nil {
		own.eras[&s.rewindDetector] = era
	}
	return err
}

// acquireUserConn takes a connection of the user's pool that belongs to the current era.
func (s *database) acquireUserConn(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		conn, err := s.acquireConn(ctx, s.userPool)
		if err != nil {
			return nil, err
		}
		present, err := s.checkUserConnTimeline(ctx, conn.Conn())
		if err == nil && present {
			return conn, nil
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = conn.Conn().Close(ended) // returns at once
		conn.Release()
		if err != nil {
			return nil, err
		}
	}
}

// lastPosition returns the last position that was seen. A position that is read later, on the same timeline,
// must not be before it.
func (l *rewindDetector) lastPosition() seenLogPosition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seenLogPosition{l.position, l.rewindCount.Load()}
}

// forgetPosition is called when the schema has moved to another server. The next position that is read is the first of that server.
func (l *rewindDetector) forgetPosition() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.position = logPosition{}
}

// advancePosition records a position that was read on an admitted connection after floor was returned. It ignores a position that may
// have been read before the database went back.
func (l *rewindDetector) advancePosition(at logPosition, floor seenLogPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if floor.era == l.rewindCount.Load() && at.timeline != 0 && at.timeline == l.position.timeline {
		l.position.position = max(l.position.position, at.position)
		l.lastReplyAt.Store(time.Now().UnixNano())
	}
}

// checkForRewind evaluates a position that was read after floor was returned. If the database has gone back, checkForRewind uses
// ask to search for the acknowledged checkpoints. Nothing is acknowledged meanwhile, because recordAcknowledgedBatch takes l.mu. It returns
// errRewound if the database has gone back since floor was returned: the position may be from before the rewind, and must be read again.
func (s *database) checkForRewind(ctx context.Context, at logPosition, floor seenLogPosition, ask roundTripFunc) error {
	l := &s.rewindDetector
	if at.timeline == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if floor.era != l.rewindCount.Load() {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, errRewound)
	}
	was := l.position
	switch {
	case was.timeline == 0:
	case at.timeline < was.timeline && time.Since(time.Unix(0, l.lastReplyAt.Load())) < refuseOldPrimaryFor:
		return fmt.Errorf("%w: %w: it is at %v, and the database has been at %v", store.ErrUnavailable, errOldPrimary, at, was)
	case at.timeline != was.timeline || at.timeline == floor.timeline && at.position < floor.position:
		rewind := store.DatabaseRewind{PositionBefore: was.String(), PositionAfter: at.String(), OwnedRunCount: len(l.ownedRuns)}
		lost, err := s.findRunsLostInRewind(ctx, ask)
		if err != nil {
			return err
		}
		if rewind.LostRuns = lost; len(l.rewinds) < maxUnreportedRewinds {
			l.rewinds = append(l.rewinds, rewind)
		}
		l.rewindCount.Add(1)
		l.endEra()
		l.eraCtx, l.endEra = context.WithCancel(context.Background())
		l.position = at
		s.reconnectAfterRewind(was, at)
	}
	if l.position.timeline != at.timeline || l.position.position < at.position {
		l.position = at
	}
	l.lastReplyAt.Store(time.Now().UnixNano())
	l.positionKnown.Store(true)
	return nil
}

// takeRewinds returns the rewinds since its last call.
func (l *rewindDetector) takeRewinds() []store.DatabaseRewind {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.rewinds
	l.rewinds = nil
	return all
}
