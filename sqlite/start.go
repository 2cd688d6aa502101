package sqlite

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeStart(x *writing, w *store.Start) error {
	w.Outcome, w.Existing, w.State = store.Written, nil, store.RunState{}
	n, err := insertRun(x, w)
	if err != nil {
		return err
	}
	if n == 1 {
		err = setTags(x, w)
	} else {
		err = settleStart(x, w)
	}
	if err == nil && w.Outcome == store.Written && w.Run.Status == store.Pending {
		x.tell(store.HintClaim)
	}
	return err
}

// insertRun answers 0 if the run, or its name, is there already, or if a child's parent
// may have none.
func insertRun(x session, w *store.Start) (int64, error) {
	r := &w.Run
	if !r.Parent.Valid {
		return x.exec(
			qRunInsert, shardOf(r.ID), key(r.ID), r.Name, r.Workflow, r.Version, r.Queue,
			int64(r.Status), r.Epoch.Number(), keyOrNull(r.Owner), blob(r.Input), r.Trace, flag(r.Detached),
			micros(r.CreatedAt), micros(r.StartedAt), micros(r.WakeAt), micros(r.Deadline),
		)
	}
	if store.ShardOf(r.ID) != store.ShardOf(r.Parent.UUID) {
		return 0, fmt.Errorf("%w: run %s is not of the shard of its parent %s", store.ErrBadData, r.ID, r.Parent.UUID)
	}
	return x.exec(
		qRunInsertChild, key(r.ID), r.Name, r.Workflow, r.Version, r.Queue,
		int64(r.Status), r.Epoch.Number(), keyOrNull(r.Owner), blob(r.Input), r.Trace, flag(r.Detached),
		micros(r.CreatedAt), micros(r.StartedAt), micros(r.WakeAt), micros(r.Deadline),
		shardOf(r.Parent.UUID), key(r.Parent.UUID), w.ParentEpoch.Number(),
	)
}

// setTags gives a new run its tags.
func setTags(x session, w *store.Start) error {
	for _, tag := range w.Tags {
		if tag.Value == "" {
			continue // an empty value is no tag
		}
		if n, err := x.exec(qTagSet, tag.Key, tag.Value, shardOf(w.Run.ID), key(w.Run.ID)); err != nil || n != 1 {
			return changed("tagging run", w.Run.ID, n, err)
		}
	}
	return nil
}

// settleStart says why a start took no row: its name is used, be it by this very start,
// or a child's parent has been left, or is to be. A superseded writer adopts nothing.
func settleStart(x session, w *store.Start) error {
	r := &w.Run
	had, ok, err := runByName(x, r.Name, r.Parent, store.ShardOf(r.ID), store.AllPayloads)
	if err != nil || ok && had.ID == r.ID {
		return err
	}
	if r.Parent.Valid {
		parent, err := runState(x, r.Parent.UUID)
		if err != nil {
			return err
		}
		if !runsAt(parent, w.ParentEpoch) || !ok && parent.Control != 0 {
			w.Outcome, w.State = store.Fenced, parent
			return nil
		}
	}
	if ok {
		w.Outcome, w.Existing = store.Adopted, &had.Run
		return nil
	}
	// Nothing but the ID can have been in the way.
	return fmt.Errorf("%w: run ID %s belongs to a run of another name", store.ErrBadData, r.ID)
}
