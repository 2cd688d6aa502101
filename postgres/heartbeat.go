package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/store"
)

// poolForHeartbeatWithoutLeases returns the pool for a heartbeat that renews no leases: the pool of the engine or, if all its
// connections are in use, the pool of the heartbeats. So a worker without work needs no second pool.
func (s *database) poolForHeartbeatWithoutLeases() *pgxpool.Pool {
	if at := s.enginePool.Stat(); at.AcquiredConns() < at.MaxConns() {
		return s.enginePool
	}
	return s.heartbeatPool
}

// RenewLeases implements store.Store. It renews leases on the pool of the heartbeats, so that no other work can delay the renewal. If
// the server has no connection left for that pool, it uses the engine's pool.
func (s *database) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	if s.canShareHeartbeat(&h) {
		if result, delivered := s.heartbeats.send(ctx, s, h); delivered {
			return result, nil
		}
	}
	pool := s.heartbeatPool
	if len(h.Leases) == 0 {
		pool = s.poolForHeartbeatWithoutLeases()
	}
	result, err := s.renewLeasesOnPool(ctx, pool, h)
	if pool == s.heartbeatPool && hasSQLState(err, sqlStateTooManyConns) {
		return s.renewLeasesOnPool(ctx, s.enginePool, h)
	}
	return result, err
}

func (s *database) renewLeasesOnPool(ctx context.Context, pool *pgxpool.Pool, h store.Heartbeat) (store.RenewResult, error) {
	var result store.RenewResult
	extended := make(map[uuid.UUID]bool, len(h.Leases))
	var at logPosition
	floor := s.rewindDetector.lastPosition()
	var home schemaPlacement
	var homeErr error
	sharded := s.citus.isSchemaDistributed()
	err := s.runBatch(ctx, pool, "renew", func(batch *pgx.Batch) {
		s.addHeartbeatToBatch(batch, &h)
		if len(h.Leases) > 0 {
			batch.Queue(s.statements.leaseExtend, append(leaseArgs(h.Leases, h.Worker.ID), pgTime(h.LeaseUntil))...)
		}
		if !s.rewindDetector.disabled {
			batch.Queue(s.statements.walPosition)
		}
		if sharded {
			batch.Queue(s.statements.citusHomeNode)
		}
		batch.Queue(s.statements.now)
	}, func(res statementResults) error {
		if err := s.readHeartbeatResult(res, &result); err != nil {
			return err
		}
		if len(h.Leases) > 0 {
			err := eachRow(res, func(rows pgx.Rows) error {
				var id uuid.UUID
				err := rows.Scan((*uuidValue)(&id))
				extended[id] = true
				return err
			})
			if err != nil {
				return err
			}
		}
		if !s.rewindDetector.disabled {
			if err := readLogPosition(res, &at); err != nil {
				return err
			}
		}
		if sharded {
			err := eachRow(res, func(rows pgx.Rows) error {
				home, homeErr = s.scanCitusHomeNode(rows)
				return nil // the leases are extended; the next claim returns the error
			})
			if err != nil {
				return err
			}
		}
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&result.Now)) })
	})
	if err != nil {
		return store.RenewResult{}, err
	}
	if moved := sharded && homeErr == nil && s.reconnectIfSchemaMoved(home); moved {
		at = logPosition{} // the position of the former home
	}
	if s.rewindDetector.withoutPooler.Load() {
		s.rewindDetector.advancePosition(at, floor)
	} else if err := s.checkForRewindOnPool(ctx, pool, at, floor); err != nil { // a pooler may lead to another server now
		return store.RenewResult{}, err
	}
	if len(extended) < len(h.Leases) {
		if result.LostRuns, err = s.readLostLeases(ctx, pool, h); err != nil {
			return store.RenewResult{}, err
		}
		s.rewindDetector.removeLostRuns(h.Leases, result.LostRuns)
		for _, lease := range h.Leases {
			if !extended[lease.Run] && !slices.Contains(result.LostRuns, lease.Run) {
				result.LockedRuns = append(result.LockedRuns, lease.Run)
			}
		}
	}
	s.addRewindsAndWarning(&result)
	return result, nil
}

// checkForRewindOnPool calls checkForRewind with a connection of the pool. It acquires the connection first. Opening a connection
// includes a check for a rewind too, so a check that opened a connection would wait for itself forever.
func (s *database) checkForRewindOnPool(ctx context.Context, pool *pgxpool.Pool, at logPosition, floor seenLogPosition) error {
	conn, err := s.acquireConn(ctx, pool)
	if err != nil {
		return s.wrapError(ctx, "look where the database is", err)
	}
	defer s.releaseConn(pool, conn)
	return s.checkForRewind(ctx, at, floor, func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return s.runBatchOnConn(ctx, conn, what, fill, read)
	})
}

// readLostLeases returns the leases that are no longer held. It reads them with a new snapshot.
func (s *database) readLostLeases(ctx context.Context, pool *pgxpool.Pool, h store.Heartbeat) ([]uuid.UUID, error) {
	var gone []uuid.UUID
	err := s.runBatch(ctx, pool, "read back leases", func(batch *pgx.Batch) {
		batch.Queue(s.statements.leasesLost, leaseArgs(h.Leases, h.Worker.ID)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			err := rows.Scan((*uuidValue)(&id))
			gone = append(gone, id)
			return err
		})
	})
	return gone, err
}

// Now implements store.Store.
func (s *database) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.runBatch(ctx, s.poolForHeartbeatWithoutLeases(), "read the clock", func(batch *pgx.Batch) { batch.Queue(s.statements.now) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&now)) })
		})
	return now, err
}
