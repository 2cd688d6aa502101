package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// Renew implements store.Store, on a connection that nothing else can occupy.
func (s *Store) Renew(ctx context.Context, h store.Heartbeat) (store.Pulse, error) {
	var pulse store.Pulse
	extended := int64(0)
	w := &h.Worker
	err := s.once(ctx, s.pulse, "renew", func(batch *pgx.Batch) {
		batch.Queue(s.sql.workerBeat, one(w.ID), w.Name, w.Version, w.Capacity, w.Active, instant(w.StartedAt), instant(s.presentSince(w.ID)))
		if len(h.Leases) > 0 {
			batch.Queue(s.sql.lease, append(leaseColumns(h.Leases, w.ID), instant(h.LeaseUntil))...)
		}
		batch.Queue(s.sql.now)
	}, func(res results) error {
		if _, err := res.Exec(); err != nil {
			return err
		}
		if len(h.Leases) > 0 {
			tag, err := res.Exec()
			if err != nil {
				return err
			}
			extended = tag.RowsAffected()
		}
		return each(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&pulse.Now)) })
	})
	if err != nil {
		return store.Pulse{}, err
	}
	if extended < int64(len(h.Leases)) {
		if pulse.Lost, err = s.lost(ctx, h); err != nil {
			return store.Pulse{}, err
		}
	}
	return pulse, nil
}

// lost asks which leases are gone, with a snapshot of its own.
func (s *Store) lost(ctx context.Context, h store.Heartbeat) ([]uuid.UUID, error) {
	var gone []uuid.UUID
	err := s.once(ctx, s.pulse, "read back leases", func(batch *pgx.Batch) {
		batch.Queue(s.sql.leaseLost, leaseColumns(h.Leases, h.Worker.ID)...)
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			err := rows.Scan((*uuidValue)(&id))
			gone = append(gone, id)
			return err
		})
	})
	return gone, err
}

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := s.once(ctx, s.pulse, "read the clock", func(batch *pgx.Batch) { batch.Queue(s.sql.now) },
		func(res results) error {
			return each(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&now)) })
		})
	return now, err
}
