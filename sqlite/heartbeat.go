package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// terminationNoticeRetention is how long the database keeps the notice to a worker that one of its runs was terminated. The
// worker reads the notices at each heartbeat.
const terminationNoticeRetention = time.Minute

// RenewLeases implements store.Store.
func (s *database) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	var pulse store.RenewResult
	err := s.withWriteTx(ctx, "renew", func(x executor) error {
		pulse.Now = now()
		w := &h.Worker
		started := w.StartedAt
		if started.IsZero() {
			started = pulse.Now
		}
		silent := h.LeaseUntil
		if silent.IsZero() {
			silent = pulse.Now
		}
		workflows, err := encodeTexts(w.Workflows)
		queues, errQueues := encodeTexts(w.Queues)
		if err := cmp.Or(err, errQueues); err != nil {
			return err
		}
		err = x.query(qWorkerUpsert, func(v []driver.Value) error {
			c := columnReader{values: v}
			pulse.Quiet = c.int() != 0
			pulse.LastChange, _ = store.DecodeOperatorChange(c.text()) // the leases are renewed even if the text cannot be decoded
			return c.err
		}, bindUUID(w.ID), w.Name, w.Version, int64(w.Capacity), int64(w.ActiveRuns), int64(w.State),
			bindTime(started), bindTime(pulse.Now), bindTime(silent), workflows, queues, int64(w.SchemaVersion), bindBool(w.Quiet), w.LastChange.EncodeJSONOrNil(), w.ClockAhead.Microseconds())
		if err != nil {
			return err
		}
		leases := slices.Clone(h.Leases)
		slices.SortFunc(leases, func(l, r store.Lease) int { return store.CompareUUIDsByShard(l.Run, r.Run) })
		for i, l := range leases {
			if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			n, err := x.exec(qLeaseExtend, bindTime(h.LeaseUntil), bindShard(l.Run), bindUUID(l.Run), l.Epoch.EncodeInt64(), bindUUID(w.ID))
			if err != nil {
				return err
			}
			if n == 0 {
				pulse.LostRuns = append(pulse.LostRuns, l.Run)
			}
		}
		if len(pulse.LostRuns) > 0 {
			return nil // the notices stay, because the worker then reads which of the runs were terminated
		}
		_, err = x.exec(qTerminationNoticesDelete, bindUUID(w.ID), bindTime(pulse.Now.Add(-terminationNoticeRetention)))
		return err
	})
	if err != nil {
		return store.RenewResult{}, err
	}
	return pulse, nil
}

// EndLeases implements store.Store.
func (s *database) EndLeases(ctx context.Context, workers []uuid.UUID, q store.ClaimQuery) (int, error) {
	if len(workers) == 0 {
		return 0, nil
	}
	at := q.Now
	if at.IsZero() {
		at = now()
	}
	freed := 0
	err := s.withWriteTx(ctx, "expire", func(x executor) error {
		for _, w := range workers {
			n, err := x.exec(qLeasesOfDeadWorkerExpire, bindTime(at), bindUUID(w))
			if err != nil {
				return err
			}
			freed += int(n)
			if _, err := x.exec(qWorkerDelete, bindUUID(w)); err != nil {
				return err
			}
		}
		long := bindTime(now().Add(-time.Hour))
		if _, err := x.exec(qWorkerDeleteOld, long); err != nil {
			return err
		}
		_, err := x.exec(qTerminationNoticesDeleteOld, long)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, w := range workers {
		s.workerLocks.removeFileOfDeadWorker(w)
	}
	if freed > 0 {
		s.notifyListeners(store.HintClaim)
	}
	return freed, nil
}
