package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	dialTimeout  = 5 * time.Second
	probeTimeout = 2 * time.Second  // for a notification to come back
	pingAfter    = 30 * time.Second // of silence
	firstReturn  = 20 * time.Millisecond
	slowReturn   = time.Second     // below the grace of presence_dead.sql
	poolerReturn = 5 * time.Minute // until a pooler is tried again
)

// errPooled says that the session is not ours alone, so that neither notifications nor
// locks work in it.
var errPooled = errors.New("a pooler is in between that shares sessions")

// Attend implements store.Store on a connection of its own: it listens for hints, and
// holds a lock that the server frees the moment this process dies, which is how others
// see it (Dead). It first proves that the session is real, by a notification to
// itself from another connection. Where that does not arrive, a pooler shares the
// session; then it holds nothing and waits, and polling and lease expiry do the work.
func (s *database) Listen(ctx context.Context, worker uuid.UUID, hear func(store.Hint)) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
	}
	s.attending.Add(1)
	s.mu.Unlock()
	defer s.attending.Done()
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	for wait := firstReturn; ; {
		if s.deaf {
			<-ctx.Done()
			if outer.Err() == nil {
				return fmt.Errorf("postgres: attend: %w", store.ErrClosed)
			}
			return nil
		}
		began := time.Now()
		err := s.attend(ctx, worker, hear)
		switch {
		case errors.Is(err, errPooled):
			wait = poolerReturn
		case time.Since(began) > slowReturn || wait > slowReturn:
			wait = firstReturn // it worked for a while: come back at once
		default:
			wait = min(2*wait, slowReturn)
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

// attend does one session's worth. It returns an error whenever the session ends.
func (s *database) attend(ctx context.Context, worker uuid.UUID, hear func(store.Hint)) error {
	heard := func(payload string) { pass(payload, worker, hear) }
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The lock goes with the session. Closed with time of its own: ctx may have ended.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(bye) // the socket is closed in any case
	}()
	outer := ctx
	ctx, leave := s.timeline.within(ctx)
	defer leave()
	ctx, landed := s.hosts.track(ctx, s.hosts.whereIs(conn), true)
	defer landed()
	if err := s.listen(ctx, conn, heard); err != nil {
		return err
	}
	if err := s.takePresence(ctx, conn, worker); err != nil {
		return err
	}
	defer s.dropPresence(outer, worker)
	hear(store.HintClaim) // what was notified before is lost
	hear(store.HintNotification)
	for {
		if err := s.wait(ctx, conn, heard); err != nil {
			return err
		}
	}
}

// pass says what a notification means to the worker: an empty text, that a run may be
// claimable; its own ID, that it has news. Others' proofs and news carry other texts.
func pass(payload string, worker uuid.UUID, hear func(store.Hint)) {
	switch payload {
	case "":
		hear(store.HintClaim)
	case worker.String():
		hear(store.HintNotification)
	}
}

// dial makes the session. The server is told to probe for a dead client, since the lock
// of a machine that lost its power would be held for hours otherwise.
func (s *database) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return s.connect(ctx)
}

// listen listens, and proves that notifications arrive.
func (s *database) listen(ctx context.Context, conn *pgx.Conn, heard func(payload string)) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+probeTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, s.sql.listen, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	nonce := uuid.NewString()
	err := s.once(ctx, s.engine, "notify", func(batch *pgx.Batch) { batch.Queue(s.sql.notify, channel(s.schema), nonce) },
		func(res results) error {
			_, err := res.Exec()
			return err
		})
	if err != nil {
		return err
	}
	patience, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	for {
		n, err := conn.WaitForNotification(patience)
		switch {
		case err == nil && n.Payload == nonce:
			return nil
		case err == nil:
			heard(n.Payload)
		case patience.Err() != nil && ctx.Err() == nil:
			return errPooled
		default:
			return err
		}
	}
}

// presence is a lock that shows that a worker lives.
type presence struct {
	since  time.Time
	server time.Time // when the server started that keeps the lock
}

// takePresence takes the lock, and lets it be known. A lock timeout means that the
// server still keeps a session of ours that is dead; another try follows.
func (s *database) takePresence(ctx context.Context, conn *pgx.Conn, worker uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, s.sql.attendance, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	var held presence
	err := conn.QueryRow(ctx, s.sql.presenceTake, pgx.QueryExecModeExec, one(worker)).Scan(nil, (*timeValue)(&held.since), (*timeValue)(&held.server))
	if err != nil {
		return err
	}
	s.setPresence(worker, held)
	return s.notePresence(ctx, worker, held)
}

// dropPresence is called when the session is gone. If the worker goes on, others must
// not take it for dead while it makes another; if it leaves, they may.
func (s *database) dropPresence(ctx context.Context, worker uuid.UUID) {
	s.setPresence(worker, presence{})
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_ = s.notePresence(ctx, worker, presence{}) // the next heartbeat says it again
}

func (s *database) notePresence(ctx context.Context, worker uuid.UUID, held presence) error {
	return s.once(ctx, s.engine, "note presence",
		func(batch *pgx.Batch) {
			batch.Queue(s.sql.presenceNote, one(worker), instant(held.since), instant(held.server))
		},
		func(res results) error {
			_, err := res.Exec()
			return err
		})
}

func (s *database) setPresence(worker uuid.UUID, held presence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held.since.IsZero() {
		delete(s.presence, worker)
	} else {
		s.presence[worker] = held
	}
}

// presenceOf is the worker's lock, zero if it does not hold it.
func (s *database) presenceOf(worker uuid.UUID) presence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presence[worker]
}

// wait passes one notification on, or pings after a long silence.
func (s *database) wait(ctx context.Context, conn *pgx.Conn, heard func(payload string)) error {
	quiet, cancel := context.WithTimeout(ctx, pingAfter)
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

// Dead implements store.Store. A worker whose session has just broken off may be back in
// a moment, so the caller takes for dead only what two calls, about 100 ms apart, name.
func (s *database) Dead(ctx context.Context, self uuid.UUID) ([]uuid.UUID, error) {
	var dead []uuid.UUID
	err := s.once(ctx, s.engine, "look for dead workers", func(batch *pgx.Batch) { batch.Queue(s.sql.presenceDead, one(self)) },
		func(res results) error {
			return each(res, func(rows pgx.Rows) error {
				var id uuid.UUID
				err := rows.Scan((*uuidValue)(&id))
				dead = append(dead, id)
				return err
			})
		})
	if err != nil {
		return nil, err
	}
	return dead, nil
}
