package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	dialTimeout          = 5 * time.Second
	listenProbeTimeout   = 2 * time.Second  // bounds the wait for the notification that subscribe sends to its own session
	pingInterval         = 30 * time.Second // how long a silent session goes without a ping
	firstReconnectDelay  = 20 * time.Millisecond
	maxReconnectDelay    = time.Second     // longest wait before a reconnect, shorter than the 2 s of presence_dead_workers.sql
	poolerReconnectDelay = 5 * time.Minute // wait before a session behind a pooler is tried again
)

// errSessionShared is returned when a pooler shares the session with other clients, so that neither
// notifications nor session locks work in it.
var errSessionShared = errors.New("a pooler is in between that shares sessions")

// Listen implements store.Store with a connection of its own, or with one that all further workers of this process share. On this
// connection it receives notifications, and holds a lock that the server releases as soon as this process dies; other workers detect
// the death by the free lock (see DeadWorkers). Listen first checks that no pooler shares the session: it sends a notification to
// itself from another connection. If this notification does not arrive, Listen takes no lock, and tries again after up to
// poolerReconnectDelay; meanwhile workers rely on polling and on the expiry of leases.
func (s *database) Listen(ctx context.Context, worker uuid.UUID, onHint func(store.WakeHint)) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
	}
	s.activeListeners.Add(1)
	s.listenerCount++
	shared := s.isFromOpenSchema || s.listenerCount > 1 && !s.onCitus
	s.mu.Unlock()
	defer s.stopListening()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.storeCtx, cancel)()

	if shared && !s.withoutListen {
		s.session.serveMember(ctx, &listenSessionMember{database: s, worker: worker, onHint: onHint})
		if outer.Err() == nil {
			return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
		}
		return nil
	}
	for wait := firstReconnectDelay; ; {
		if s.withoutListen {
			<-ctx.Done()
			if outer.Err() == nil {
				return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
			}
			return nil
		}
		began := time.Now()
		err := s.listenUntilFailure(ctx, worker, onHint)
		switch {
		case errors.Is(err, errSessionShared):
			wait = poolerReconnectDelay
		case time.Since(began) > maxReconnectDelay || wait > maxReconnectDelay:
			wait = firstReconnectDelay // the session worked for a while: reconnect soon
		default:
			wait = min(2*wait, maxReconnectDelay)
		}
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			pause.Stop()
			if outer.Err() == nil {
				return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
			}
			return nil
		case <-pause.C:
		}
	}
}

// stopListening ends a call of Listen.
func (s *database) stopListening() {
	s.mu.Lock()
	s.listenerCount--
	s.mu.Unlock()
	s.activeListeners.Done()
}

// listenUntilFailure connects, listens, and holds the presence lock until the session ends. It never returns nil.
func (s *database) listenUntilFailure(ctx context.Context, worker uuid.UUID, onHint func(store.WakeHint)) error {
	heard := func(payload string) { sendHint(payload, worker, onHint) }
	conn, err := s.dialListenSession(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The end of the session releases the lock. Close has a timeout of its own, because ctx may have
		// ended.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bye) // the socket is closed in any case
	}()
	outer := ctx
	ctx, leave := s.rewindDetector.contextUntilRewind(ctx)
	defer leave()
	ctx, landed := s.hosts.trackCall(ctx, s.hosts.addressOf(conn), true)
	defer landed()
	ctx, stay := s.citus.contextUntilSchemaMove(ctx)
	defer stay()
	if err := s.checkHomeNode(ctx, conn); err != nil {
		return err
	}
	if isOffHomeNode(conn) {
		return s.citus.notOnHomeNodeError()
	}
	if err := s.subscribe(ctx, conn, heard); err != nil {
		return err
	}
	defer s.clearPresenceLock(outer, worker) // also after an error: the lock may be taken or recorded
	if err := s.takePresenceLock(ctx, conn, worker); err != nil {
		return err
	}
	onHint(store.HintListenBegan)
	defer onHint(store.HintListenLost)
	onHint(store.HintQueues) // notifications from before LISTEN are lost
	onHint(store.HintClaim)
	onHint(store.HintOwnedRunChange)
	for {
		if err := s.awaitNotification(ctx, conn, heard); err != nil {
			return err
		}
	}
}

// admittedPayload is the payload of the notification that runs were admitted to their queue.
const admittedPayload = "admitted"

// queuesPayload is the payload of the notification that a row of a queue was changed.
const queuesPayload = "queues"

// sendHint converts a notification to a hint. An empty payload means that a run may be claimable. The
// worker's own ID means that one of its runs has changed. All other payloads are for other workers.
func sendHint(payload string, worker uuid.UUID, onHint func(store.WakeHint)) {
	switch payload {
	case "":
		onHint(store.HintClaim)
	case admittedPayload:
		onHint(store.HintAdmitted)
	case queuesPayload:
		onHint(store.HintQueues)
		onHint(store.HintClaim) // a queue may have been resumed
	case worker.String():
		onHint(store.HintOwnedRunChange)
	}
}

// dialListenSession opens the session. The settings of listen_session_settings.sql make the server detect a dead client; without
// them, the server would keep the lock of a machine that has lost power for hours.
func (s *database) dialListenSession(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := s.connectListener(ctx)
	if hasSQLState(err, sqlStateTooManyConns) {
		s.tooManyConnsWarning.recordRefusal("no session listens, so workers poll, and a dead worker is noticed when its leases end")
	}
	return conn, err
}

// subscribe subscribes to the channel. It returns errSessionShared if its own notification does not arrive.
func (s *database) subscribe(ctx context.Context, conn *pgx.Conn, heard func(payload string)) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+listenProbeTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, s.statements.listen, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	nonce := uuid.NewString()
	err := s.runBatch(ctx, s.enginePool, "notify", func(batch *pgx.Batch) { batch.Queue(s.statements.notify, notifyChannel(s.schema), nonce) },
		func(res statementResults) error {
			_, err := res.Exec()
			return err
		})
	if err != nil {
		return err
	}
	patience, stop := context.WithTimeout(ctx, listenProbeTimeout)
	defer stop()
	for {
		n, err := conn.WaitForNotification(patience)
		switch {
		case err == nil && n.Payload == nonce:
			return nil
		case err == nil:
			heard(n.Payload)
		case patience.Err() != nil && ctx.Err() == nil:
			return errSessionShared
		default:
			return err
		}
	}
}

// presenceLock is the lock that shows that a worker is alive.
type presenceLock struct {
	takenAt         time.Time
	serverStartedAt time.Time // when the server that keeps the lock started
}

// takePresenceLock takes the presence lock and records it in the worker's row. A lock timeout means that the
// server still keeps a dead session of this worker; Listen then reconnects and tries again. After an error the caller calls
// clearPresenceLock, because heartbeats record the lock too.
func (s *database) takePresenceLock(ctx context.Context, conn *pgx.Conn, worker uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, s.statements.listenSessionSettings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	var held presenceLock
	err := conn.QueryRow(ctx, s.statements.presenceLock, pgx.QueryExecModeExec, pgUUID(worker)).Scan(nil, (*timeValue)(&held.takenAt), (*timeValue)(&held.serverStartedAt))
	if err != nil {
		return err
	}
	s.setPresenceLock(worker, held)
	return s.recordPresenceLock(ctx, worker, held)
}

// clearPresenceLock is called after the session has ended or failed to take the lock. If the worker continues, clearPresenceLock
// removes the record of the lock, so that other workers do not consider it dead while it reconnects. If ctx has ended, the worker
// stops, and the record stays.
func (s *database) clearPresenceLock(ctx context.Context, worker uuid.UUID) {
	held := s.presenceLockOf(worker)
	s.setPresenceLock(worker, presenceLock{})
	if ctx.Err() != nil || held == (presenceLock{}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_ = s.recordPresenceLock(ctx, worker, presenceLock{}) // if the call fails, the next heartbeat records it
}

func (s *database) recordPresenceLock(ctx context.Context, worker uuid.UUID, held presenceLock) error {
	return s.runBatch(ctx, s.enginePool, "note presence",
		func(batch *pgx.Batch) {
			batch.Queue(s.statements.presenceLockRecord, pgUUID(worker), pgTime(held.takenAt), pgTime(held.serverStartedAt))
		},
		func(res statementResults) error {
			_, err := res.Exec()
			return err
		})
}

func (s *database) setPresenceLock(worker uuid.UUID, held presenceLock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held.takenAt.IsZero() {
		delete(s.presenceLocks, worker)
	} else {
		s.presenceLocks[worker] = held
	}
}

// presenceLockOf returns the worker's lock, or zero if the worker does not hold it.
func (s *database) presenceLockOf(worker uuid.UUID) presenceLock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presenceLocks[worker]
}

// awaitNotification waits for one notification and passes it on. If none arrives within pingInterval, it pings the
// server.
func (s *database) awaitNotification(ctx context.Context, conn *pgx.Conn, heard func(payload string)) error {
	quiet, cancel := context.WithTimeout(ctx, pingInterval)
	defer cancel()
	n, err := conn.WaitForNotification(quiet)
	if err == nil {
		heard(n.Payload)
		return nil
	}
	if quiet.Err() == nil || ctx.Err() != nil {
		return err
	}
	alive, stop := context.WithTimeout(ctx, dialTimeout)
	defer stop()
	return conn.Ping(alive)
}

// DeadWorkers implements store.Store. A worker whose session has just ended may reconnect in a moment. So the
// caller considers a worker dead only if two calls, about 100 ms apart, return it.
func (s *database) DeadWorkers(ctx context.Context, self uuid.UUID, known []uuid.UUID) (store.DeadWorkersResult, error) {
	if !s.isFromOpenSchema {
		return s.queryDeadWorkers(ctx, self, known)
	}
	view, valid, err := s.cachedDeadWorkers(ctx, self)
	if err == nil && (!valid || len(known) > 0) {
		view.peers, err = s.queryDeadWorkers(ctx, self, known)
	}
	if err != nil {
		return store.DeadWorkersResult{}, err
	}
	s.cacheDeadWorkers(view)
	view.peers.WorkersSharingConns = max(0, s.session.memberCount()-1)
	return view.peers, nil
}

// queryDeadWorkers queries the workers of the schema and their presence locks.
func (s *database) queryDeadWorkers(ctx context.Context, self uuid.UUID, known []uuid.UUID) (store.DeadWorkersResult, error) {
	var peers store.DeadWorkersResult
	err := s.runBatchOnHomeNode(ctx, "look for dead workers", func(batch *pgx.Batch) {
		batch.Queue(s.statements.presenceDeadWorkers, pgUUID(self), newUUIDArray(known), int32(store.MinDeadWorkerChecks))
	},
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				var id pgtype.UUID
				var live, before int32
				err := rows.Scan(&id, &live, &before)
				if id.Valid {
					peers.Dead = append(peers.Dead, id.Bytes)
				} else {
					peers.LiveCount, peers.LiveWithLowerIDCount = int(live), int(before)
				}
				return err
			})
		})
	if errors.Is(err, errNotAtHome) { // the locks of this node say nothing about the workers
		return store.DeadWorkersResult{}, nil
	}
	if err != nil {
		return store.DeadWorkersResult{}, err
	}
	return peers, nil
}
