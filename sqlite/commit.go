package sqlite

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// itemsPerContextCheck is the number of items that are written between two checks of the context. They take about a
// millisecond.
const itemsPerContextCheck = 64

// Commit implements store.Store. It executes one IMMEDIATE transaction with one prepared statement for each item. A
// statement in SQLite is a function call, so statements for many rows would save no round trips; docs/decisions.md has
// the measurements.
func (s *database) Commit(ctx context.Context, b *store.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	if written, err := s.commitWithOneStatement(ctx, b); written || err != nil {
		return err
	}
	return s.writeAndNotify(ctx, "commit", func(x *writeTx) error { return writeBatch(ctx, x, b) })
}

// commitWithOneStatement writes a batch of one item that needs only one statement. Without BEGIN and COMMIT that statement is a
// transaction of its own. commitWithOneStatement reports whether it wrote the item; if not, it changed nothing.
func (s *database) commitWithOneStatement(ctx context.Context, b *store.Batch) (written bool, err error) {
	switch {
	case b.Len() != 1:
		return false, nil
	case len(b.Steps) == 1:
		w := b.Steps[0]
		if written, err = s.writeWithoutTx(ctx, "commit", func(x executor) (int64, error) { return upsertStep(x, &w.Step, w.RowExists, allControlBits) }); written {
			w.Outcome, w.RecordedStep, w.RunState = store.Written, nil, store.RunState{}
		}
	case len(b.Starts) == 1 && b.Starts[0].Run.Status == store.Running && len(b.Starts[0].Tags) == 0 && b.Starts[0].Place == nil:
		w := b.Starts[0]
		if written, err = s.writeWithoutTx(ctx, "commit", func(x executor) (int64, error) { return insertRun(x, w) }); written {
			w.Outcome, w.ExistingRun, w.RunState = store.Written, nil, store.RunState{}
		}
	}
	return written, err
}

// writeTx is a write transaction that collects the hints to give after its commit.
type writeTx struct {
	executor
	hints store.WakeHint
}

// addHint adds a hint, which the listeners get when the transaction has committed.
func (x *writeTx) addHint(what store.WakeHint) { x.hints |= what }

// writeAndNotify does the same as write, and after the commit gives the collected hints to the listeners of this store.
func (s *database) writeAndNotify(ctx context.Context, what string, fn func(*writeTx) error) error {
	var heard store.WakeHint
	err := s.withWriteTx(ctx, what, func(in executor) error {
		x := writeTx{executor: in}
		err := fn(&x)
		heard = x.hints
		return err
	})
	if err == nil {
		s.notifyListeners(heard)
	}
	return err
}

// writeBatch writes the items in key order, so that rows on the same page are written together. Starts of one shard
// stay in the order of the batch, because the first of two starts with one name wins. The signals of one run stay in
// order too, because two of them may have the same key.
func writeBatch(ctx context.Context, x *writeTx, b *store.Batch) error {
	starts := sortedCopy(b.Starts, func(l, r *store.StartWrite) int {
		return cmp.Compare(store.ShardOf(l.Run.UUID), store.ShardOf(r.Run.UUID))
	})
	steps := sortedCopy(b.Steps, func(l, r *store.StepWrite) int { return store.CompareSteps(&l.Step, &r.Step) })
	receives := sortedCopy(b.Receives, func(l, r *store.ReceiveWrite) int { return store.CompareSteps(&l.Step, &r.Step) })
	signals := sortedCopy(b.Signals, func(l, r *store.SignalWrite) int { return store.CompareUUIDsByShard(l.Run, r.Run) })
	runs := sortedCopy(b.OwnershipEnds, func(l, r *store.OwnershipEnd) int { return store.CompareUUIDsByShard(l.UUID, r.UUID) })
	if err := writeAll(ctx, x, starts, writeStart); err != nil {
		return err
	}
	if err := writeAll(ctx, x, steps, writeStep); err != nil {
		return err
	}
	if err := writeAll(ctx, x, receives, writeReceive); err != nil {
		return err
	}
	if err := writeAll(ctx, x, signals, writeSignal); err != nil {
		return err
	}
	return writeAll(ctx, x, runs, writeOwnershipEnd)
}

func writeAll[W any](ctx context.Context, x *writeTx, items []W, write func(*writeTx, W) error) error {
	for i, item := range items {
		if i%itemsPerContextCheck == 0 {
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

// sortedCopy returns a sorted copy of items.
func sortedCopy[W any](items []W, order func(l, r W) int) []W {
	if len(items) < 2 {
		return items
	}
	items = slices.Clone(items)
	slices.SortStableFunc(items, order)
	return items
}
