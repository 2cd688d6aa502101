package sqlite

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeStart(x *writeTx, w *store.StartWrite) error {
	w.Outcome, w.ExistingRun, w.RunState = store.Written, nil, store.RunState{}
	n, err := insertRun(x, w)
	if err != nil {
		return err
	}
	if n == 1 {
		if err = setTags(x, w); err == nil {
			err = insertQueuePlace(x, w)
		}
	} else {
		err = setStartOutcome(x, w)
	}
	if err == nil && w.Outcome == store.Written && w.Run.Status == store.Pending {
		x.addHint(store.HintClaim)
	}
	return err
}

// insertRun inserts a run. It returns 0 if the run or its name exists, or if the parent is not running or has a control
// request.
func insertRun(x executor, w *store.StartWrite) (int64, error) {
	r := &w.Run
	if !r.Parent.Valid {
		return x.exec(
			qRunInsert, bindShard(r.UUID), bindUUID(r.UUID), r.Name, r.Workflow, r.Version, r.Queue, int64(r.Priority), int64(r.ClaimLane()),
			int64(r.Status), r.Epoch.EncodeInt64(), bindNullUUID(r.Owner), bindBytes(r.Input), r.Trace, bindBool(r.Detached),
			bindTime(r.CreatedAt), bindTime(r.StartedAt), bindTime(r.WakeAt), bindTime(r.Deadline), w.Timeout.Microseconds(),
		)
	}
	if store.ShardOf(r.UUID) != store.ShardOf(r.Parent.UUID) {
		return 0, fmt.Errorf("%w: run %s is not in the shard of its parent %s", store.ErrBadData, r.UUID, r.Parent.UUID)
	}
	return x.exec(
		qRunInsertChild, bindUUID(r.UUID), r.Name, r.Workflow, r.Version, r.Queue, int64(r.Priority), int64(r.ClaimLane()),
		int64(r.Status), r.Epoch.EncodeInt64(), bindNullUUID(r.Owner), bindBytes(r.Input), r.Trace, bindBool(r.Detached),
		bindTime(r.CreatedAt), bindTime(r.StartedAt), bindTime(r.WakeAt), bindTime(r.Deadline), w.Timeout.Microseconds(),
		bindShard(r.Parent.UUID), bindUUID(r.Parent.UUID), w.ParentEpoch.EncodeInt64(),
	)
}

// setTags sets the tags of a new run.
func setTags(x executor, w *store.StartWrite) error {
	for _, tag := range w.Tags {
		if tag.Value == "" {
			continue // an empty value means no tag
		}
		if n, err := x.exec(qTagSet, tag.Key, tag.Value, bindShard(w.Run.UUID), bindUUID(w.Run.UUID)); err != nil || n != 1 {
			return checkOneRow("tagging run", w.Run.UUID, n, err)
		}
	}
	return nil
}

// setStartOutcome sets the outcome of a start that changed no row: the name is used, by this start or another one, or the
// parent is no longer running or has a control request.
func setStartOutcome(x executor, w *store.StartWrite) error {
	r := &w.Run
	existing, err := findRunWithSameName(x, r)
	if err != nil {
		return err
	}
	var parent store.RunState
	if r.Parent.Valid {
		if parent, err = readRunState(x, r.Parent.UUID); err != nil {
			return err
		}
	}
	switch w.Outcome = w.OutcomeFromRows(parent, existing); w.Outcome {
	case store.AlreadyRecorded:
		w.ExistingRun = existing
	case store.Fenced:
		w.RunState = parent
	case 0: // only a conflict of the ID is left as the cause
		return fmt.Errorf("%w: run ID %s belongs to a run with another name", store.ErrBadData, r.UUID)
	}
	return nil
}

// findRunWithSameName returns the run with the name and the parent of r, or nil.
func findRunWithSameName(x executor, r *store.Run) (*store.Run, error) {
	row, found, err := runByName(x, r.Name, r.Parent, store.ShardOf(r.UUID), store.AllPayloads)
	if err != nil || !found {
		return nil, err
	}
	return &row.Run, nil
}
