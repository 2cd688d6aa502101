package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable/internal/store"
)

// sharedListenSession is the session in which workers listen and hold their presence locks: all workers of the stores of OpenSchema, and all
// but the first worker of any other store. The session exists while there is such a worker. Its goroutine, which owns the connection, begins
// with the first of these workers and ends with the last.
type sharedListenSession struct {
	mu        sync.Mutex
	members   []*listenSessionMember
	cancel    context.CancelFunc // ends the goroutine; nil: there is none
	done      chan struct{}      // closed when the goroutine has ended
	interrupt context.CancelFunc // ends the goroutine's wait for a notification
}

// sessionCallTimeout bounds each call in the session, so that a server that does not reply does not prevent workers from stopping.
// After a timeout, the session ends.
const sessionCallTimeout = 3 * time.Second

// serveMember makes m a member until ctx ends, and returns when the session holds nothing for it any more.
func (h *sharedListenSession) serveMember(ctx context.Context, m *listenSessionMember) {
	m.released = make(chan struct{})
	h.mu.Lock()
	if h.members = append(h.members, m); h.cancel == nil {
		if h.done != nil {
			previous := h.done
			h.mu.Unlock()
			<-previous
			h.mu.Lock()
		}
		if h.cancel == nil {
			var session context.Context
			session, h.cancel = context.WithCancel(context.Background())
			h.done = make(chan struct{})
			go h.keepOpen(session, m.database.sharedConns, h.done)
		}
	}
	h.interruptWait()
	h.mu.Unlock()
	<-ctx.Done()
	h.mu.Lock()
	m.leaving = true
	if !m.attached {
		h.removeMember(m)
	}
	h.interruptWait()
	h.mu.Unlock()
	<-m.released
	h.mu.Lock()
	var ended chan struct{}
	if len(h.members) == 0 {
		if h.cancel != nil {
			h.cancel()
			h.cancel = nil
		}
		ended = h.done
	}
	h.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// keepOpen keeps a session until ctx ends.
func (h *sharedListenSession) keepOpen(ctx context.Context, sv *sharedConns, done chan struct{}) {
	defer close(done)
	for wait := firstReconnectDelay; ctx.Err() == nil; {
		began := time.Now()
		err := h.serveUntilBroken(ctx)
		switch {
		case errors.Is(err, errSessionShared):
			wait = poolerReconnectDelay
		case time.Since(began) > maxReconnectDelay || wait > maxReconnectDelay:
			wait = firstReconnectDelay
		default:
			wait = min(2*wait, maxReconnectDelay)
		}
		sleepCtx(ctx, wait/2+rand.N(wait/2))
	}
}

// serveUntilBroken opens a session and serves the members in it until it breaks or ctx ends.
func (h *sharedListenSession) serveUntilBroken(ctx context.Context) error {
	m := h.firstMember()
	if m == nil {
		return nil
	}
	conn, err := m.database.dialListenSession(ctx)
	if err != nil {
		return err
	}
	session, cancel := context.WithCancel(ctx)
	session, landed := m.database.hosts.trackCall(session, m.database.hosts.addressOf(conn), true)
	defer h.detachAll(ctx)
	defer func() {
		landed()
		cancel()
		// The end of the session releases the locks. Close has a timeout of its own, because ctx may have ended.
		bye, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = conn.Close(bye) // the socket is closed in any case
	}()
	for proven := false; ; {
		waiting, stop := context.WithCancel(session)
		h.mu.Lock()
		h.interrupt = stop
		h.mu.Unlock()
		retryAt, err := h.updateMembers(session, cancel, conn, &proven)
		if err == nil {
			err = h.awaitNotification(session, waiting, retryAt, conn)
		}
		stop()
		if err != nil {
			return err
		}
	}
}

// updateMembers releases the members that leave and attaches new ones. If a member cannot be attached, the others are not affected; retryAt
// is when the first of the failed members is tried again. updateMembers returns an error if the session has ended.
func (h *sharedListenSession) updateMembers(ctx context.Context, end func(), conn *pgx.Conn, proven *bool) (retryAt time.Time, err error) {
	for {
		m, leaving := h.nextMemberToUpdate()
		if m == nil {
			return h.nextRetryTime(), nil
		}
		if leaving {
			if err := h.detachMember(ctx, conn, m); err != nil {
				return time.Time{}, err
			}
			continue
		}
		err := h.attachMember(ctx, end, conn, m, *proven)
		switch {
		case err == nil:
			*proven = true
		case ctx.Err() != nil || conn.IsClosed() || errors.Is(err, errSessionShared):
			return time.Time{}, err
		default:
			if err := h.recordAttachFailure(ctx, conn, m); err != nil {
				return time.Time{}, err
			}
		}
	}
}

// attachMember listens to the channel of a member's schema, and takes its presence lock. Attaching the first member proves that
// notifications arrive.
func (h *sharedListenSession) attachMember(ctx context.Context, end func(), conn *pgx.Conn, m *listenSessionMember, proven bool) error {
	era, leave := m.database.rewindDetector.contextUntilRewind(ctx)
	stop := context.AfterFunc(era, end) // the database has gone back: this session belongs to its former history
	m.stopWatchingTimeline = func() {
		stop()
		leave()
	}
	var err error
	if proven {
		err = execWithTimeout(ctx, conn, m.database.statements.listen, pgx.QueryExecModeSimpleProtocol)
	} else {
		err = m.database.subscribe(ctx, conn, func(string) {}) // the hints below make the member query everything
	}
	if err == nil {
		err = m.database.takePresenceLock(ctx, conn, m.worker)
	}
	if err != nil {
		return err
	}
	h.mu.Lock()
	m.failureCount = 0
	h.mu.Unlock()
	m.retryAt = time.Time{}
	m.listening = true
	m.onHint(store.HintListenBegan)
	m.onHint(store.HintQueues) // notifications from before LISTEN are lost
	m.onHint(store.HintClaim)
	m.onHint(store.HintOwnedRunChange)
	return nil
}

// execWithTimeout executes a statement that the server executes at once.
func execWithTimeout(ctx context.Context, conn *pgx.Conn, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, sessionCallTimeout)
	defer cancel()
	_, err := conn.Exec(ctx, sql, args...)
	return err
}

// recordAttachFailure releases what the session holds for a member that could not be attached. The member is tried again after a
// while.
func (h *sharedListenSession) recordAttachFailure(ctx context.Context, conn *pgx.Conn, m *listenSessionMember) error {
	m.database.clearPresenceLock(ctx, m.worker)
	if err := h.releaseMember(ctx, conn, m); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	wait := min(firstReconnectDelay<<min(m.failureCount, 10), maxReconnectDelay)
	m.retryAt = time.Now().Add(wait/2 + rand.N(wait/2))
	m.failureCount++
	if m.attached = false; m.leaving {
		h.removeMember(m)
	}
	return nil
}

// releaseMember ends what the session does for a member.
func (h *sharedListenSession) releaseMember(ctx context.Context, conn *pgx.Conn, m *listenSessionMember) error {
	if m.stopWatchingTimeline != nil {
		m.stopWatchingTimeline()
		m.stopWatchingTimeline = nil
	}
	h.mu.Lock()
	alone := !slices.ContainsFunc(h.members, func(other *listenSessionMember) bool {
		return other != m && other.attached && other.database.schema == m.database.schema
	})
	h.mu.Unlock()
	if alone {
		if err := execWithTimeout(ctx, conn, m.database.statements.unlisten, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
	}
	return execWithTimeout(ctx, conn, m.database.statements.presenceUnlock, pgx.QueryExecModeExec, pgUUID(m.worker))
}

// detachMember releases what the session holds for a member that leaves.
func (h *sharedListenSession) detachMember(ctx context.Context, conn *pgx.Conn, m *listenSessionMember) error {
	if err := h.releaseMember(ctx, conn, m); err != nil {
		return err
	}
	m.database.setPresenceLock(m.worker, presenceLock{})
	if m.listening {
		m.listening = false
		m.onHint(store.HintListenLost)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeMember(m)
	return nil
}

// detachAll is called after the session has ended. The records of the locks are removed, as in clearPresenceLock, before another
// session begins.
func (h *sharedListenSession) detachAll(ctx context.Context) {
	h.mu.Lock()
	members := slices.Clone(h.members)
	h.interrupt = nil
	h.mu.Unlock()
	var records sync.WaitGroup
	for _, m := range members {
		if m.stopWatchingTimeline != nil {
			m.stopWatchingTimeline()
			m.stopWatchingTimeline = nil
		}
		if m.listening {
			m.listening = false
			m.onHint(store.HintListenLost)
		}
		records.Go(func() { m.database.clearPresenceLock(ctx, m.worker) })
	}
	records.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range members {
		if m.attached = false; m.leaving {
			h.removeMember(m)
		}
	}
}

// awaitNotification waits for one notification and passes it on. It returns nil if the context waiting ends, or at the time retryAt if that is
// not zero. If none arrives within pingInterval, it pings the server.
func (h *sharedListenSession) awaitNotification(ctx, waiting context.Context, retryAt time.Time, conn *pgx.Conn) error {
	if !retryAt.IsZero() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(waiting, retryAt)
		defer cancel()
	}
	quiet, cancel := context.WithTimeout(waiting, pingInterval)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	switch {
	case err == nil:
		h.passNotification(n)
		return nil
	case ctx.Err() != nil || quiet.Err() == nil || conn.IsClosed():
		return err
	case waiting.Err() != nil:
		return nil
	}
	alive, stop := context.WithTimeout(ctx, dialTimeout)
	defer stop()
	return conn.Ping(alive)
}

// passNotification passes a notification to the members of its schema.
func (h *sharedListenSession) passNotification(n *pgconn.Notification) {
	h.mu.Lock()
	members := slices.Clone(h.members)
	h.mu.Unlock()
	for _, m := range members {
		if m.listening && notifyChannel(m.database.schema) == n.Channel {
			sendHint(n.Payload, m.worker, m.onHint)
		}
	}
}
