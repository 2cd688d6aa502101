package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// checkEvery is how many items are written between two looks at the context:
// about a millisecond's worth.
const checkEvery = 64

// Commit implements store.Store: one IMMEDIATE transaction, one prepared statement
// per item. In SQLite a statement is a function call, so there is no round trip that a
// plural statement would save; docs/decisions.md has what this reaches.
func (s *Store) Commit(ctx context.Context, b *store.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	err := s.write(ctx, "commit", func(x session) error { return writeBatch(ctx, x, b) })
	if err == nil && wakes(b) {
		s.hint()
	}
	return err
}

// wakes reports whether the batch made a run claimable.
func wakes(b *store.Batch) bool {
	for _, w := range b.Starts {
		if w.Outcome == store.Written && w.Run.Status == store.Pending {
			return true
		}
	}
	for _, w := range b.Runs {
		if w.Outcome == store.Written && w.Status == store.Pending {
			return true
		}
	}
	return false
}

// writeBatch writes in key order, which keeps neighbours on the same pages. The
// order of Starts within a shard is the batch's: of two with one name the first
// one wins.
func writeBatch(ctx context.Context, x session, b *store.Batch) error {
	starts := sorted(b.Starts, func(l, r *store.Start) int {
		return cmp.Compare(store.ShardOf(l.Run.ID), store.ShardOf(r.Run.ID))
	})
	steps := sorted(b.Steps, func(l, r *store.StepWrite) int {
		return cmp.Or(compareIDs(&l.Step.RunID, &r.Step.RunID), cmp.Compare(l.Step.Name, r.Step.Name))
	})
	runs := sorted(b.Runs, func(l, r *store.RunWrite) int { return compareIDs(&l.ID, &r.ID) })
	if err := writeAll(ctx, x, starts, writeStart); err != nil {
		return err
	}
	if err := writeAll(ctx, x, steps, writeStep); err != nil {
		return err
	}
	return writeAll(ctx, x, runs, writeRun)
}

func writeAll[W any](ctx context.Context, x session, items []W, write func(session, W) error) error {
	for i, item := range items {
		if i%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := write(x, item); err != nil {
			return err
		}
	}
	return nil
}

// sorted leaves the caller's slice as it is.
func sorted[W any](items []W, order func(l, r W) int) []W {
	if len(items) < 2 {
		return items
	}
	items = slices.Clone(items)
	slices.SortStableFunc(items, order)
	return items
}

func compareIDs(l, r *uuid.UUID) int {
	return cmp.Or(cmp.Compare(store.ShardOf(*l), store.ShardOf(*r)), bytes.Compare(l[:], r[:]))
}

func writeStart(x session, w *store.Start) error {
	r := &w.Run
	w.Outcome, w.Existing = store.Written, nil
	n, err := x.exec(
		qRunInsert, shardOf(r.ID), key(r.ID), keyOrNull(r.Parent), r.Name, r.Workflow, r.Version, r.Queue,
		int64(r.Status), int64(r.Epoch), keyOrNull(r.Owner), blob(r.Input), r.Trace,
		micros(r.CreatedAt), micros(r.StartedAt), micros(r.WakeAt), micros(r.Deadline),
	)
	if err != nil || n == 1 {
		return err
	}
	had, ok, err := runByName(x, r.Name, r.Parent, store.ShardOf(r.ID))
	switch {
	case err != nil:
		return err
	case !ok: // so it is the ID that is taken
		return fmt.Errorf("%w: run ID %s belongs to a run of another name", store.ErrBadData, r.ID)
	case had.ID != r.ID:
		w.Outcome, w.Existing = store.Adopted, &had.Run
	}
	return nil
}

func writeStep(x session, w *store.StepWrite) error {
	w.Outcome, w.Recorded, w.State = store.Written, nil, store.RunState{}
	write := insertStep
	if w.Exists {
		write = updateStep
	}
	if n, err := write(x, &w.Step); err != nil || n == 1 {
		return err
	}
	return settleStep(x, w)
}

// settleStep says why a step's write took no row, or finds that the row was the
// other way (there, or not there) than the writer knew, and writes it that way.
func settleStep(x session, w *store.StepWrite) error {
	state, err := runState(x, w.Step.RunID)
	if err != nil {
		return err
	}
	row, recorded, err := stepByName(x, &w.Step)
	if err != nil {
		return err
	}
	switch {
	case recorded && w.Made(&row):
		return nil // a replay: this very write was committed before
	case state.Status != store.Running || state.Epoch != w.Step.Epoch:
		w.Outcome, w.State = store.Fenced, state
		return nil
	case recorded && row.Status.Terminal():
		w.Outcome, w.Recorded = store.Adopted, &row
		return nil
	}
	write := insertStep
	if recorded {
		write = updateStep
	}
	// No row now either means that this epoch itself has got further meanwhile: a
	// marker that comes late has nothing left to say.
	_, err = write(x, &w.Step)
	return err
}

func insertStep(x session, p *store.Step) (int64, error) {
	return x.exec(
		qStepInsert, p.Name, int64(p.Kind), int64(p.Status), int64(p.Attempt),
		micros(p.StartedAt), micros(p.EndedAt), micros(p.NextAt), blob(p.Output), blob(p.Error),
		shardOf(p.RunID), key(p.RunID), int64(p.Epoch),
	)
}

func updateStep(x session, p *store.Step) (int64, error) {
	return x.exec(
		qStepUpdate, int64(p.Status), int64(p.Attempt), int64(p.Epoch),
		micros(p.StartedAt), micros(p.EndedAt), micros(p.NextAt), blob(p.Output), blob(p.Error),
		shardOf(p.RunID), key(p.RunID), p.Name,
	)
}

func stepByName(x session, p *store.Step) (row store.Step, ok bool, err error) {
	err = x.each(qStepByName, func(v []driver.Value) (err error) {
		row, err = scanStep(v)
		ok = true
		return err
	}, shardOf(p.RunID), key(p.RunID), p.Name)
	return row, ok, err
}

func writeRun(x session, w *store.RunWrite) error {
	w.Outcome, w.State = store.Written, store.RunState{}
	n, err := x.exec(
		qRunFinish, int64(w.Status), blob(w.Output), blob(w.Error), textOrNull(w.Reason), textOrNull(w.Trace),
		micros(w.WakeAt), micros(w.EndedAt), shardOf(w.ID), key(w.ID), int64(w.Epoch),
	)
	if err != nil || n == 1 {
		return err
	}
	row, ok, err := runByID(x, w.ID)
	if err != nil {
		return err
	}
	if !ok || !w.Made(&row.Run) {
		w.Outcome = store.Fenced
		w.State = store.RunState{Found: ok, Status: row.Status, Epoch: row.Epoch}
	}
	return nil
}
