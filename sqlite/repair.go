package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// FenceRun implements store.RepairStore. The write lock excludes writes under way, so there is nothing to wait for.
func (s *database) FenceRun(ctx context.Context, f *store.FenceRequest) error {
	return s.writeAndNotify(ctx, "fence a run", func(x *writeTx) error {
		n, err := x.exec(qRepairFence, bindShard(f.Run), bindUUID(f.Run), int64(f.StateBefore.Status), f.StateBefore.Epoch.EncodeInt64(), int64(f.StateBefore.Control),
			f.EpochAfterFence().EncodeInt64(), bindTime(f.Now), bindText(f.Reason), bindText(f.Actor))
		if err != nil {
			return err
		}
		if n == 0 {
			f.RunState, err = readRunState(x, f.Run)
			f.Outcome = f.OutcomeFromState(f.RunState)
			return err
		}
		f.Outcome = store.Written
		if f.StateBefore.Status != store.Running {
			return nil
		}
		if err := writeEvent(x, f.Run, store.EventLeaseLost, f.Now); err != nil {
			return err
		}
		return writeEvent(x, f.Run, store.EventPaused, f.Now)
	})
}

// ApplyRepair implements store.RepairStore.
func (s *database) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	err := s.writeAndNotify(ctx, "repair runs", func(x *writeTx) error {
		states := make(map[uuid.UUID]store.RunState, len(r.Runs))
		for _, run := range r.RunsInLockOrder() {
			state, err := readRunState(x, run)
			if err != nil {
				return err
			}
			states[run] = state
		}
		done := false
		err := x.query(qRepairIsDone, func([]driver.Value) error {
			done = true
			return nil
		}, bindUUID(r.Runs[0].Run), int64(r.Runs[0].SupersededNumber), bindUUID(r.RequestID))
		if err != nil {
			return err
		}
		if r.Outcome = r.OutcomeFromStates(states, done); r.Outcome != 0 {
			return nil
		}
		if r.CancelRequest != nil {
			if err := applyControlRequest(ctx, x, r.CancelRequest); err != nil {
				return err
			}
		}
		for i := range r.Runs {
			if err := repairRun(ctx, x, r, &r.Runs[i]); err != nil {
				return err
			}
		}
		if r.ResumeRequest != nil {
			if err := applyControlRequest(ctx, x, r.ResumeRequest); err != nil {
				return err
			}
		}
		r.Outcome = store.Written
		x.addHint(store.HintClaim)
		return nil
	})
	if errors.Is(err, store.ErrRepairOutdated) {
		r.Outcome, err = store.Fenced, nil
	}
	return err
}

// repairRun writes the next generation of one run. It returns ErrRepairOutdated if a row is not as the repair expects.
func repairRun(ctx context.Context, x executor, r *store.RepairRequest, run *store.RunRepair) error {
	shard, id, archive, epoch := bindShard(run.Run), bindUUID(run.Run), bindUUID(run.ArchiveID()), run.Epoch.EncodeInt64()
	writes := 0
	write := func(what string, want int, q queryID, args ...driver.Value) error {
		if writes++; writes%itemsPerContextCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := x.exec(q, args...)
		if err == nil && want >= 0 && n != int64(want) {
			err = fmt.Errorf("%w: run %s: %d %s instead of %d", store.ErrRepairOutdated, run.Run, n, what, want)
		}
		return err
	}
	err := write("generations", 1, qRepairOldGenerationInsert, shard, id, int64(run.SupersededNumber), archive, bindUUID(r.RequestID), bindTime(r.Now), r.Verb, bindText(r.Actor),
		bindText(r.Reason), bindText(run.FromStep), bindBytes(run.Detail))
	if err == nil {
		err = write("checkpoints", expectedCheckpointCount(run), qRepairStepsMoveToGeneration, archive, shard, id)
	}
	for i := 0; err == nil && i < len(run.KeptSteps); i++ {
		err = write("kept checkpoints", 1, qRepairKeptStepCopy, id, epoch, shard, archive, run.KeptSteps[i], int64(run.FirstChangedSeq))
	}
	for i := 0; err == nil && i < len(run.NewSteps); i++ {
		p := &run.NewSteps[i]
		err = write("further checkpoints", 1, qRepairNewStepInsert, shard, id, epoch, p.Name, int64(p.Kind), int64(p.Status), int64(p.Attempt), bindBytes(p.Output),
			bindBytes(p.Error), bindTime(p.StartedAt), bindTime(p.EndedAt), bindTime(p.NextAt), int64(p.Seq), bindBytes(p.Failures))
	}
	if err == nil && run.ContinuesAsNew {
		err = write("", -1, qRepairChildrenMoveToGeneration, archive, shard, id)
	}
	for i := 0; err == nil && i < len(run.DetachedChildren); i++ {
		err = write("children", 1, qRepairChildMoveToGeneration, archive, shard, bindUUID(run.DetachedChildren[i]), id)
	}
	for i := 0; err == nil && i < len(run.ReleasedReceivers); i++ {
		err = write("", -1, qRepairSignalsMarkUnreceived, shard, id, run.ReleasedReceivers[i])
	}
	if err == nil {
		err = write("runs", 1, qRepairBeginNextGeneration, shard, id, int64(run.StateBefore.Status), run.StateBefore.Epoch.EncodeInt64(), int64(run.StateBefore.Control),
			epoch, int64(run.Status), int64(run.Control), bindTime(run.WakeAt), bindTime(run.Deadline), int64(run.Progress),
			bindNullUUID(run.Owner), bindBool(run.ContinuesAsNew), bindBytes(run.Input), bindTime(r.Now), bindBytes(run.FirstInputHash))
	}
	if err == nil && run.ReleasesHold() {
		err = write("", -1, qDivergencesOfRunDelete, id)
	}
	if err == nil && !run.ContinuesAsNew {
		err = write("", -1, qRepairPlaceClearStartByDeadline, shard, id)
	}
	if err != nil {
		return err
	}
	return writeEventWithActor(x, &store.ActorAndReason{Actor: r.Actor, Reason: r.Reason, At: r.Now},
		&store.Event{Type: r.EventType(), Run: run.Run, OldValue: strconv.Itoa(int(run.SupersededNumber)), NewValue: strconv.Itoa(int(run.SupersededNumber) + 1)})
}

// expectedCheckpointCount returns how many checkpoints the run must have, or -1 if any number is right.
func expectedCheckpointCount(run *store.RunRepair) int {
	if run.ContinuesAsNew {
		return -1
	}
	return run.CheckpointCount
}

// FindGenerations implements store.RepairStore.
func (s *database) FindGenerations(ctx context.Context, archives []uuid.UUID) (found []store.GenerationKey, err error) {
	err = s.withReadConn(ctx, "find generations", func(x executor) error {
		found = nil
		for _, id := range archives {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := x.query(qGenerationByArchiveID, func(v []driver.Value) error {
				c := columnReader{values: v}
				found = append(found, store.GenerationKey{ArchiveID: id, Run: c.uuid(), Number: int32(c.int())})
				return c.err
			}, bindUUID(id))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// SupersededGenerations implements store.RepairStore.
func (s *database) SupersededGenerations(ctx context.Context, run uuid.UUID, q store.GenerationsQuery) (all []store.SupersededGeneration, err error) {
	before, limit, maxBytes := q.BoundsOrMax()
	err = s.withReadConn(ctx, "generations", func(x executor) error {
		all = nil
		bytesBeforeLast, lastBytes := int64(0), int64(0) // the bytes of the generations before the last one that was read, and of that one
		err := x.query(qSupersededGenerations, func(v []driver.Value) error {
			if bytesBeforeLast >= maxBytes {
				return errStopRows
			}
			c := columnReader{values: v}
			g := store.SupersededGeneration{Run: store.Run{UUID: run}}
			r := &g.Run
			g.Number, g.ArchiveID, g.RequestID = int32(c.int()), c.uuid(), c.uuid()
			r.Status, r.Control, r.Priority, r.Epoch = store.Status(c.int()), store.ControlBits(c.int()), int16(c.int()), store.DecodeEpoch(c.int())
			g.Verb, g.Actor, g.Reason, g.FromStep, g.At = c.text(), c.text(), c.text(), c.text(), c.time()
			for _, at := range []*time.Time{&r.CreatedAt, &r.StartedAt, &r.EndedAt, &r.Deadline, &r.PausedAt, &r.CancelledAt} {
				*at = c.time()
			}
			for _, text := range []*string{&r.Workflow, &r.Queue, &r.Version, &r.Trace, &r.PauseOrHoldReason, &r.PausedBy, &r.CancelledBy, &r.CancelReason} {
				*text = c.text()
			}
			r.Input, r.Output, r.Error, g.Detail = c.bytes(), c.bytes(), c.bytes(), c.bytes()
			g.StoredBytes = int(c.int())
			bytesBeforeLast, lastBytes = bytesBeforeLast+lastBytes, int64(g.StoredBytes)
			all = append(all, g)
			return c.err
		}, int64(q.Payloads), bindUUID(run), int64(before), int64(limit))
		if errors.Is(err, errStopRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}
