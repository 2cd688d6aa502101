package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// ControlRuns implements store.Store. It holds the write lock while it reads the trees of the runs, so that no child can be
// added meanwhile.
func (s *database) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	return s.writeAndNotify(ctx, "control", func(x *writeTx) error { return applyControlRequest(ctx, x, o) })
}

// applyControlRequest plans and writes the changes of a control request.
func applyControlRequest(ctx context.Context, x *writeTx, o *store.ControlRequest) error {
	nodes, paused, err := loadRunsToControl(ctx, x, o.Runs)
	if err != nil {
		return err
	}
	changes, parents := o.Plan(nodes)
	for i := range changes {
		if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := applyControlChange(x, o, &changes[i], paused[changes[i].Before.UUID]); err != nil {
			return err
		}
	}
	act := o.ActorAndReason()
	for _, e := range o.ActorEvents(changes) {
		if err := writeEventWithActor(x, &act, &e); err != nil {
			return err
		}
	}
	for _, parent := range parents {
		if err := wakeRun(x, parent, o.Now); err != nil {
			return err
		}
	}
	return nil
}

// loadRunsToControl returns the runs, their descendants and their ancestors, each once. It also returns the times at which the paused
// runs among them were paused.
func loadRunsToControl(ctx context.Context, x executor, runs []uuid.UUID) (nodes []store.RunToControl, paused map[uuid.UUID]time.Time, err error) {
	paused = make(map[uuid.UUID]time.Time)
	seen := make(map[uuid.UUID]uuid.NullUUID) // the parents of the runs read so far
	look := func(q queryID, run uuid.UUID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.query(q, func(v []driver.Value) error {
			c := columnReader{values: v}
			n := store.RunToControl{
				UUID: c.uuid(), Parent: c.nullUUID(), Status: store.Status(c.int()), Epoch: store.DecodeEpoch(c.int()), Control: store.ControlBits(c.int()),
				Owner: c.nullUUID(), Detached: c.int() != 0,
			}
			since := c.time()
			if _, again := seen[n.UUID]; again {
				return c.err
			}
			seen[n.UUID] = n.Parent
			nodes = append(nodes, n)
			if !since.IsZero() {
				paused[n.UUID] = since
			}
			return c.err
		}, bindShard(run), bindUUID(run))
	}
	for _, run := range runs {
		if _, beneath := seen[run]; !beneath { // otherwise it is a descendant of another run of the request
			if err := look(qControlRunTreeRead, run); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, run := range runs {
		for above := seen[run]; above.Valid; above = seen[above.UUID] {
			if _, known := seen[above.UUID]; known {
				continue
			}
			if err := look(qControlAncestorRead, above.UUID); err != nil {
				return nil, nil, err
			}
		}
	}
	return nodes, paused, nil
}

// applyControlChange writes one change of a control request. The time since is when the run was paused, or zero.
func applyControlChange(x *writeTx, o *store.ControlRequest, c *store.ControlChange, since time.Time) error {
	run := c.Before.UUID
	if o.ShiftTimers && c.AuditColumns == store.AuditColumnsClearPause && c.Before.Status == store.Paused && since.Before(o.Now) && !since.IsZero() {
		if err := shiftTimers(x, run, since, o.Now); err != nil {
			return err
		}
	}
	n, lane := int64(0), store.ClaimLane(0)
	err := x.query(
		qControlApply, func(v []driver.Value) error {
			c := columnReader{values: v}
			n, lane = n+1, store.ClaimLane(c.int())
			return c.err
		}, bindTime(o.Now), bindText(o.Reason), bindText(o.Actor), bindShard(run), bindUUID(run),
		int64(c.Before.Status), c.Before.Epoch.EncodeInt64(), int64(c.Status), int64(c.Control), int64(c.WakeAt), int64(c.AuditColumns),
		bindBytes(o.Error), int64(c.Before.Control), bindBool(c.Detached), int64(store.UnreleasedLane),
	)
	if err != nil || n != 1 {
		return checkOneRow("an order for run", run, n, err)
	}
	unreleased := c.EndsRun() && lane == store.UnreleasedLane.WithAdmission(store.AdmissionNotNeeded) // the run waited for its start key
	if unreleased || c.Before.Control&^c.Control&store.HasStartBy != 0 {                              // its place only keeps StartBy
		if _, err := x.exec(qQueuePlaceDeleteUnneeded, bindShard(run), bindUUID(run), int64(store.UnreleasedLane)); err != nil {
			return err
		}
	}
	switch {
	case c.Before.Status == store.Running:
		x.addHint(store.HintOwnedRunChange)
	case c.Status == store.Pending:
		x.addHint(store.HintClaim)
	}
	if c.EndsRun() && c.Before.Status == store.Running { // the request ends the owner's lease
		if c.Before.Owner.Valid {
			if _, err := x.exec(qTerminationNoticeInsert, bindUUID(c.Before.Owner.UUID), bindUUID(run), c.Before.Epoch.EncodeInt64(), bindTime(o.Now)); err != nil {
				return err
			}
		}
		if err := writeEvent(x, run, store.EventLeaseLost, o.Now); err != nil {
			return err
		}
	}
	switch {
	case c.Status == store.Cancelled && c.Status != c.Before.Status:
		return writeCancelledEvent(x, run, o.Now)
	case c.Status >= store.Paused && c.Status != c.Before.Status:
		act := store.ActorAndReason{At: o.Now}
		if c.Status == store.Paused {
			act = o.ActorAndReason()
		}
		return writeEventWithActor(x, &act, &store.Event{Type: store.EventTypeOfStatus(c.Status), Run: run})
	}
	return nil
}

// shiftTimers moves the deadline and the timers of a paused run by the time for which it was paused.
func shiftTimers(x executor, run uuid.UUID, since, until time.Time) error {
	if _, err := x.exec(qControlShiftRunDeadline, bindTime(until), bindShard(run), bindUUID(run)); err != nil {
		return err
	}
	for _, q := range []queryID{qControlShiftStepWakeTimes, qControlShiftStepStartTimes} {
		if _, err := x.exec(q, bindTime(until), bindTime(since), bindShard(run), bindUUID(run)); err != nil {
			return err
		}
	}
	return nil
}
