package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// sharedHeartbeats sends the heartbeats of workers without leases in common transactions. The workers of one process without leases
// send their heartbeats at the same times: while one heartbeat is in flight, the others wait, and then one worker sends all of them.
// So many heartbeats, even of many schemas, cost about as much as two.
//
// Heartbeats with leases are sent alone, so that no other worker can delay them.
type sharedHeartbeats struct {
	phase   time.Duration // see HeartbeatPhase; set when the connections are opened
	mu      sync.Mutex
	sending bool // a heartbeat is in flight, or a waiting caller was told to send
	waiting []*sharedHeartbeat
}

// sharedHeartbeat is one heartbeat, and then its result.
type sharedHeartbeat struct {
	database       *database
	heartbeat      store.Heartbeat
	positionBefore seenLogPosition
	result         store.RenewResult
	delivered      bool      // result is valid; false: the caller must send the heartbeat alone
	turn           chan bool // receives true if the caller must send, and false after another caller has sent
	ctx            context.Context
}

// send sends the heartbeat, perhaps with others. It reports whether there is a result. If not, the caller sends the heartbeat alone.
func (b *sharedHeartbeats) send(ctx context.Context, s *database, h store.Heartbeat) (store.RenewResult, bool) {
	own := &sharedHeartbeat{database: s, heartbeat: h, turn: make(chan bool, 1), ctx: ctx}
	b.mu.Lock()
	b.waiting = append(b.waiting, own)
	first := !b.sending
	b.sending = true
	b.mu.Unlock()
	if first || own.await(ctx, b) {
		b.sendWaiting(ctx)
	}
	return own.result, own.delivered
}

// await waits until another caller has sent the heartbeat, and returns false then. It returns true if this caller must send the
// waiting heartbeats. When ctx ends, it stops waiting, unless another caller is sending the heartbeat.
func (own *sharedHeartbeat) await(ctx context.Context, b *sharedHeartbeats) (send bool) {
	select {
	case send := <-own.turn:
		return send
	case <-ctx.Done():
	}
	b.mu.Lock()
	at := slices.Index(b.waiting, own)
	if at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
		if len(own.turn) > 0 { // this caller was told to send
			b.wakeNextSender()
		}
	}
	b.mu.Unlock()
	return at < 0 && <-own.turn // another caller is sending the heartbeat, at most until the earliest deadline of all
}

// wakeNextSender tells the first waiting caller to send. b.mu is held.
func (b *sharedHeartbeats) wakeNextSender() {
	if b.sending = len(b.waiting) > 0; b.sending {
		b.waiting[0].turn <- true
	}
}

// sendWaiting sends the waiting heartbeats, and then tells the first of the callers that have arrived meanwhile to send.
func (b *sharedHeartbeats) sendWaiting(ctx context.Context) {
	b.mu.Lock()
	all := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	ctx, cancel := withEarliestDeadline(ctx, all)
	defer cancel()
	if len(all) > 0 && all[0].database.sendHeartbeatsTogether(ctx, all) != nil {
		for _, one := range all { // each caller sends alone: perhaps the schema of one of them was dropped
			one.result, one.delivered = store.RenewResult{}, false
		}
	}
	for _, one := range all {
		one.turn <- false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeNextSender()
}

// withEarliestDeadline returns ctx with the earliest deadline of the callers, so that no caller waits longer than its own deadline.
func withEarliestDeadline(ctx context.Context, all []*sharedHeartbeat) (context.Context, context.CancelFunc) {
	var first time.Time
	for _, one := range all {
		if until, ok := one.ctx.Deadline(); ok && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	if first.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, first)
}

// maxHeartbeatPhase is longer than the interval of heartbeats usually is.
const maxHeartbeatPhase = time.Hour

// HeartbeatPhase implements store.HeartbeatSharer.
func (s *database) HeartbeatPhase() time.Duration { return s.heartbeats.phase }

// canShareHeartbeat reports whether the heartbeat may be sent with others: it must renew no lease, and must not need a connection of
// its own to find out the database's position.
func (s *database) canShareHeartbeat(h *store.Heartbeat) bool {
	return len(h.Leases) == 0 && !s.citus.isSchemaDistributed() && (s.rewindDetector.disabled || s.rewindDetector.withoutPooler.Load())
}

// sendHeartbeatsTogether sends the heartbeats in one transaction.
func (s *database) sendHeartbeatsTogether(ctx context.Context, all []*sharedHeartbeat) error {
	var at logPosition
	var now time.Time
	err := s.runBatch(ctx, s.poolForHeartbeatWithoutLeases(), "renew", func(batch *pgx.Batch) {
		for _, one := range all {
			one.positionBefore = one.database.rewindDetector.lastPosition()
			one.database.addHeartbeatToBatch(batch, &one.heartbeat)
		}
		if !s.rewindDetector.disabled {
			batch.Queue(s.statements.walPosition)
		}
		batch.Queue(s.statements.now)
	}, func(res statementResults) error {
		for _, one := range all {
			if err := one.database.readHeartbeatResult(res, &one.result); err != nil {
				return err
			}
		}
		if !s.rewindDetector.disabled {
			if err := readLogPosition(res, &at); err != nil {
				return err
			}
		}
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&now)) })
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		one.database.rewindDetector.advancePosition(at, one.positionBefore)
		one.result.Now, one.delivered = now, true
		one.database.addRewindsAndWarning(&one.result)
	}
	return nil
}

// addHeartbeatToBatch adds the statement that records the heartbeat of a worker.
func (s *database) addHeartbeatToBatch(batch *pgx.Batch, h *store.Heartbeat) {
	w, held := &h.Worker, s.presenceLockOf(h.Worker.ID)
	batch.Queue(s.statements.workerUpsert, append(make([]any, 0, 16), textsOrNull(w.Queues), textsOrNull(w.Workflows), pgUUID(w.ID), w.Name, w.Version, w.Capacity, w.ActiveRuns, pgTime(w.StartedAt),
		pgTime(held.takenAt), pgTime(held.serverStartedAt), int16(w.State), pgTime(h.LeaseUntil), w.SchemaVersion, w.Quiet, w.LastChange.EncodeJSONOrNil(), w.ClockAhead.Microseconds())...)
}

// readHeartbeatResult reads the result of addHeartbeatToBatch.
func (s *database) readHeartbeatResult(res statementResults, result *store.RenewResult) error {
	return eachRow(res, func(rows pgx.Rows) error {
		var change pgtype.Text
		err := rows.Scan(&result.Quiet, &change)
		result.LastChange, _ = store.DecodeOperatorChange(change.String) // the leases are renewed even if the text cannot be decoded
		return err
	})
}

// addRewindsAndWarning adds the rewinds and the warning that the store has recorded to a result. The caller calls it last, because a
// result is dropped if an error follows.
func (s *database) addRewindsAndWarning(result *store.RenewResult) {
	result.DatabaseRewinds = s.rewindDetector.takeRewinds()
	result.Warning = s.tooManyConnsWarning.takeWarning(time.Now())
}
