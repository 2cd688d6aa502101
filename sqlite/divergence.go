package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// holdRunForDrift pauses a run whose code does not fit its history, and records the divergence.
func holdRunForDrift(x *writeTx, w *store.OwnershipEnd, row *runRow) error {
	n, err := x.exec(qRunHoldForDrift, bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.EncodeInt64(), bindTime(ownershipEndTime(w)), w.HoldReason, bindText(w.Trace))
	if err != nil || n != 1 {
		return checkOneRow("holding run", w.UUID, n, err)
	}
	d := w.Divergence
	if _, err := x.exec(qDivergenceUpsert, bindUUID(w.UUID), d.Version, bindTime(d.At), d.Call, d.Detail); err != nil {
		return err
	}
	w.RunState = store.RunState{Found: true, Status: store.Paused, Epoch: w.Epoch, Control: row.Control | store.HeldForDrift}
	return announceOwnershipEnd(x, w, store.Paused, w.PauseActorAndReason(row.Control, row.PausedBy, row.PauseOrHoldReason), eventHoldReason(row, w.HoldReason))
}

// RunsHeldForDrift implements store.DivergenceStore.
func (s *database) RunsHeldForDrift(ctx context.Context, version string, f *store.ClaimFilter, after uuid.UUID, limit int) (runs []uuid.UUID, err error) {
	err = s.withReadConn(ctx, "read held runs", func(x executor) error {
		runs = nil // discard the rows of a failed try
		return x.query(qRunsHeldForDrift, func(v []driver.Value) error {
			c := columnReader{values: v}
			id, queue, workflow := c.uuid(), c.text(), c.text()
			if len(runs) < limit && f.Includes(queue, workflow) {
				runs = append(runs, id)
			}
			return c.err
		}, version, bindUUID(after))
	})
	return runs, err
}

// ClaimRunHeldForDrift implements store.DivergenceStore.
func (s *database) ClaimRunHeldForDrift(ctx context.Context, run *store.Run, diverged store.DivergedVersions, q store.ClaimQuery) (claimed *store.Run, err error) {
	lane, version := q.Versions.LaneOfHeldRun(run, diverged)
	err = s.writeAndNotify(ctx, "claim a held run", func(x *writeTx) error {
		claimed = nil
		n, err := x.exec(qClaimRunHeldForDrift, bindShard(run.UUID), bindUUID(run.UUID), int64(q.EpochNonce), bindUUID(q.Worker), bindTime(q.LeaseUntil), bindTime(q.Now),
			int64(lane), version, run.Queue, int64(run.Priority), run.Version, bindText(string(diverged)))
		if err != nil || n == 0 {
			return err
		}
		if _, err := x.exec(qDivergencesMarkContinued, version, bindUUID(run.UUID)); err != nil {
			return err
		}
		if version != run.Version {
			if err := writeVersionEvent(x, run, version, q.Now); err != nil {
				return err
			}
		}
		row, _, err := runByUUID(x, run.UUID, store.AllPayloads)
		claimed = &row.Run
		if row.Status == store.Pending {
			x.addHint(store.HintClaim)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// Divergences implements store.DivergenceStore.
func (s *database) Divergences(ctx context.Context, run uuid.UUID) (all []store.Divergence, err error) {
	err = s.withReadConn(ctx, "read divergences", func(x executor) error {
		all = nil // discard the rows of a failed try
		return x.query(qDivergencesOfRun, func(v []driver.Value) error {
			c := columnReader{values: v}
			all = append(all, store.Divergence{Version: c.text(), At: c.time(), Call: c.text(), Detail: c.text(), ContinuedBy: c.text()})
			return c.err
		}, bindUUID(run))
	})
	return all, err
}

// DeleteDivergences implements store.DivergenceStore.
func (s *database) DeleteDivergences(ctx context.Context) error {
	return s.withWriteTx(ctx, "delete divergences", func(x executor) error {
		_, err := x.exec(qDivergencesDeleteObsolete)
		return err
	})
}

// Histories implements store.DivergenceStore.
func (s *database) Histories(ctx context.Context, runs []uuid.UUID) (steps []store.Step, err error) {
	runs = slices.SortedFunc(slices.Values(runs), store.CompareUUIDsByShard)
	err = s.withReadConn(ctx, "read histories", func(x executor) error {
		steps = nil // discard the rows of a failed try
		for _, id := range runs {
			if err := ctx.Err(); err != nil {
				return err
			}
			some, err := readHistory(x, id)
			if err != nil {
				return err
			}
			steps = append(steps, some...)
		}
		return nil
	})
	return steps, err
}
