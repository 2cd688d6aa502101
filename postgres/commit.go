package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// sorted is a batch in the order in which its rows are locked, steps apart by whether
// they have a row. It belongs to one Commit and goes back to the pool after it.
type sorted struct {
	starts       []*store.Start
	fresh, known []*store.StepWrite
	runs         []*store.RunWrite
	wakes        bool // something becomes claimable, perhaps by others
}

func (w *sorted) fill(b *store.Batch) {
	w.starts = append(w.starts, b.Starts...)
	w.runs = append(w.runs, b.Runs...)
	for _, item := range b.Steps {
		if item.Exists {
			w.known = append(w.known, item)
		} else {
			w.fresh = append(w.fresh, item)
		}
	}
	w.wakes = slices.ContainsFunc(b.Starts, func(s *store.Start) bool { return s.Run.Status == store.Pending }) ||
		slices.ContainsFunc(b.Runs, func(r *store.RunWrite) bool { return r.Status == store.Pending })
	slices.SortFunc(w.starts, byStart)
	slices.SortFunc(w.fresh, byStep)
	slices.SortFunc(w.known, byStep)
	slices.SortFunc(w.runs, func(a, b *store.RunWrite) int { return byID(a.ID, b.ID) })
}

// empty forgets the items, so that the pool keeps no payload alive.
func (w *sorted) empty() {
	clear(w.starts)
	clear(w.fresh)
	clear(w.known)
	clear(w.runs)
	w.starts, w.fresh, w.known, w.runs = w.starts[:0], w.fresh[:0], w.known[:0], w.runs[:0]
}

func byID(a, b uuid.UUID) int {
	if c := cmp.Compare(store.ShardOf(a), store.ShardOf(b)); c != 0 {
		return c
	}
	return bytes.Compare(a[:], b[:])
}

// byStart orders by the key on which two starts can meet. Their IDs never do.
func byStart(a, b *store.Start) int {
	if c := cmp.Compare(store.ShardOf(a.Run.ID), store.ShardOf(b.Run.ID)); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Run.Parent.UUID[:], b.Run.Parent.UUID[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.Run.Name, b.Run.Name)
}

func byStep(a, b *store.StepWrite) int {
	if c := byID(a.Step.RunID, b.Step.RunID); c != 0 {
		return c
	}
	return cmp.Compare(a.Step.Name, b.Step.Name)
}

// counts are the rows that each section took.
type counts struct{ starts, fresh, known, runs int64 }

// Commit implements store.Store. When nothing is in the way it is one round trip, and
// the row counts of the command tags say so; what fell short is read back with a
// fresh snapshot in another.
func (s *Store) Commit(ctx context.Context, b *store.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	w := s.scratch.Get().(*sorted)
	defer func() {
		w.empty()
		s.scratch.Put(w)
	}()
	w.fill(b)
	var took counts
	err := s.once(ctx, s.engine, "commit", func(batch *pgx.Batch) { s.queue(batch, w) },
		func(res pgx.BatchResults) error { return w.count(res, &took) })
	if err != nil {
		return s.refused(b, err)
	}
	return s.answer(ctx, w, took)
}

// queue puts the statements of the sections that are not empty into the pipeline.
func (s *Store) queue(batch *pgx.Batch, w *sorted) {
	if len(w.starts) > 0 {
		batch.Queue(s.sql.start, startColumns(w.starts)...)
	}
	if len(w.fresh) > 0 {
		batch.Queue(s.sql.stepInsert, stepColumns(w.fresh)...)
	}
	if len(w.known) > 0 {
		batch.Queue(s.sql.stepUpdate, stepColumns(w.known)...)
	}
	if len(w.runs) > 0 {
		batch.Queue(s.sql.runFinish, finishColumns(w.runs)...)
	}
	if w.wakes {
		batch.Queue(s.sql.notify, channel(s.schema), "")
	}
}

// count takes the results of queue.
func (w *sorted) count(res pgx.BatchResults, took *counts) error {
	for _, section := range []struct {
		items int
		took  *int64
	}{
		{len(w.starts), &took.starts}, {len(w.fresh), &took.fresh}, {len(w.known), &took.known}, {len(w.runs), &took.runs},
	} {
		if section.items == 0 {
			continue
		}
		tag, err := res.Exec()
		if err != nil {
			return err
		}
		*section.took = tag.RowsAffected()
	}
	if w.wakes {
		_, err := res.Exec()
		return err
	}
	return nil
}

// refused answers for a batch that was rolled back. A wait that was too long must not
// be one for everybody: a journal splits the batch, and what is alone then gets the
// answer that fits it.
func (s *Store) refused(b *store.Batch, err error) error {
	switch {
	case !held(err):
		return err
	case b.Len() == 1 && len(b.Steps) == 1:
		b.Steps[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Runs) == 1:
		return err
	case b.Len() == 1:
		return fmt.Errorf("postgres: start %q: %w", shown(b.Starts[0].Run.Name), errHeld)
	default:
		return fmt.Errorf("postgres: commit: %w", errHeld)
	}
}

// answer answers every item of a committed batch.
func (s *Store) answer(ctx context.Context, w *sorted, took counts) error {
	ask := s.onEngine(ctx)
	if took.starts == int64(len(w.starts)) {
		for _, item := range w.starts {
			item.Outcome, item.Existing = store.Written, nil
		}
	} else if err := s.settleStarts(ask, w.starts); err != nil {
		return err
	}
	var short []*store.StepWrite
	for _, part := range []struct {
		items []*store.StepWrite
		took  int64
	}{{w.fresh, took.fresh}, {w.known, took.known}} {
		if part.took == int64(len(part.items)) {
			for _, item := range part.items {
				item.Outcome, item.Recorded, item.State = store.Written, nil, store.RunState{}
			}
		} else {
			short = append(short, part.items...)
		}
	}
	if err := s.settleSteps(ask, short, true); err != nil {
		return err
	}
	if took.runs == int64(len(w.runs)) {
		for _, item := range w.runs {
			item.Outcome, item.State = store.Written, store.RunState{}
		}
		return nil
	}
	return s.settleRuns(ask, w.runs)
}

// shown keeps a name of any length and content fit for an error.
func shown(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}
