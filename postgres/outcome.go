package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// asker sends statements in one round trip: in a transaction of their own, or in the caller's.
type asker func(what string, fill func(*pgx.Batch), read func(results) error) error

// onEngine returns an asker that uses a new transaction, whose snapshot sees the writes that caused a
// conflict.
func (s *database) onEngine(ctx context.Context) asker {
	return func(what string, fill func(*pgx.Batch), read func(results) error) error {
		return s.once(ctx, s.engine, what, fill, read)
	}
}

// inTx returns an asker that uses a given transaction. Each call is one round trip.
func (s *database) inTx(ctx context.Context, tx pgx.Tx) asker {
	return func(what string, fill func(*pgx.Batch), read func(results) error) error {
		var batch pgx.Batch
		fill(&batch)
		return s.wrap(ctx, what, take(tx.SendBatch(ctx, &batch), read))
	}
}

// settleStarts sets the outcomes of starts, some of which created no run because their name existed or
// their parent no longer accepts children. It returns the starts that have to be retried, because nothing
// prevents them any more: the parent was resumed since, or the run of that name was removed.
func (s *database) settleStarts(ask asker, items []*store.Start) (left []*store.Start, err error) {
	for _, item := range items {
		item.Outcome, item.Existing, item.State = 0, nil, store.RunState{}
	}
	parents := make([]store.RunState, len(items))
	err = s.readBack(ask, "read back starts", func(batch *pgx.Batch) {
		batch.Queue(s.sql.parentState, parentKeys(items)...) // first: a run that is created after this is still found by name
		batch.Queue(s.sql.runByName, startKeys(items)...)
	}, func(res results) error {
		var ordinal int64
		err := each(res, func(rows pgx.Rows) error {
			state := store.RunState{Found: true}
			err := rows.Scan(&ordinal, (*int16)(&state.Status), (*epochValue)(&state.Epoch), (*int16)(&state.Control))
			parents[ordinal-1] = state
			return err
		})
		if err != nil {
			return err
		}
		return each(res, func(rows pgx.Rows) error {
			run, err := scanRun(rows, &ordinal)
			if err != nil {
				return err
			}
			item := items[ordinal-1]
			switch parent := parents[ordinal-1]; {
			case run.UUID == item.Run.UUID:
				item.Outcome = store.Written
			case item.Run.Parent.Valid && !owned(parent, item.ParentEpoch): // a superseded writer adopts nothing
				item.Outcome, item.State = store.Fenced, parent
			default:
				item.Outcome, item.Existing = store.Adopted, run
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		switch parent := parents[i]; {
		case item.Outcome != 0:
		case !item.Run.Parent.Valid, owned(parent, item.ParentEpoch) && parent.Control == 0:
			left = append(left, item)
		default:
			item.Outcome, item.State = store.Fenced, parent
		}
	}
	return left, nil
}

// errGone returns the error of a start that failed several times, although nothing prevents it any more.
func errGone(item *store.Start) error {
	return fmt.Errorf("postgres: start %q: %w: what was in its way was gone just now", shown(item.Run.Name), store.ErrUnavailable)
}

// owned reports whether the run is still running at the writer's epoch.
func owned(run store.RunState, epoch store.Epoch) bool {
	return run.Found && run.Epoch == epoch && run.Status == store.Running
}

// found is the result of step_state.sql for one step write.
type found struct {
	state store.RunState
	step  *store.Step // nil: no row
}

// settleSteps sets the outcomes of step writes, some of which changed no row. If again is true, it
// retries the writes that were wrong about whether their row exists. It also retries the writes to a run
// that is to be paused or cancelled; the second try ignores that request. But the marker of a child's
// start is then refused, together with the child.
func (s *database) settleSteps(ask asker, items []*store.StepWrite, again bool) error {
	if len(items) == 0 {
		return nil
	}
	states, err := s.readSteps(ask, items)
	if err != nil {
		return err
	}
	var fresh, known []*store.StepWrite
	for i, item := range items {
		switch outcome := judge(item, &states[i]); {
		case outcome != 0:
			item.Outcome = outcome
		case !again:
			item.Outcome = store.Locked
		case item.State.Control != 0 && mark(item):
			item.Outcome = store.Fenced
		case states[i].step != nil && (!item.Exists || item.State.Control != 0):
			known = append(known, item)
		case states[i].step == nil && (item.Exists || item.State.Control != 0):
			fresh = append(fresh, item)
		default:
			item.Outcome = store.Locked
		}
	}
	if len(fresh)+len(known) == 0 {
		return nil
	}
	w := sorted{fresh: fresh, known: known, despiteControl: true, met: true}
	var took changedRows
	err = ask("write steps once more", func(batch *pgx.Batch) { s.queue(batch, &w) },
		func(res results) error { return w.count(res, &took) })
	if err != nil {
		return err
	}
	return s.settleSteps(ask, append(fresh, known...), false)
}

// judge returns the outcome of one step write according to the rows found, or 0 if they do not decide it.
// It sets the item's State and Recorded.
func judge(item *store.StepWrite, f *found) store.Outcome {
	item.State, item.Recorded = f.state, nil
	want := &item.Step
	have := f.step
	if have != nil && item.AlreadyWritten(have) {
		return store.Written // a repeated write whose first result was lost
	}
	if !owned(f.state, want.Epoch) {
		return store.Fenced
	}
	switch {
	case have == nil:
		return 0
	case have.Status.Terminal():
		item.Recorded = have
		return store.Adopted
	case behind(want, have):
		return store.Written // the same epoch has written a later state since
	}
	return 0
}

// behind reports whether a state that is not terminal comes too late, because the same epoch has written
// a later one. step_update.sql has the same rule.
func behind(want, have *store.Step) bool {
	if want.Status.Terminal() || have.Epoch != want.Epoch {
		return false
	}
	return have.Attempt > want.Attempt || (have.Attempt == want.Attempt && have.Status > want.Status)
}

func (s *database) readSteps(ask asker, items []*store.StepWrite) ([]found, error) {
	states := make([]found, len(items))
	err := s.readBack(ask, "read back steps", func(batch *pgx.Batch) {
		batch.Queue(s.sql.stepState, stepKeys(items)...)
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var ordinal int64
			var status, control, kind, stepStatus pgtype.Int2
			var attempt, seq pgtype.Int4
			var epoch, stepEpoch store.Epoch
			var step store.Step
			err := rows.Scan(&ordinal, &status, (*epochValue)(&epoch), &control, &kind, &stepStatus, &attempt, (*epochValue)(&stepEpoch), &step.Output, &step.Error,
				(*timeValue)(&step.StartedAt), (*timeValue)(&step.EndedAt), (*timeValue)(&step.NextAt), &seq, &step.Failures)
			if err != nil {
				return err
			}
			f := &states[ordinal-1]
			f.state = store.RunState{Found: status.Valid, Status: store.Status(status.Int16), Epoch: epoch, Control: store.ControlBits(control.Int16)}
			if stepStatus.Valid {
				item := &items[ordinal-1].Step
				step.Run, step.Name = item.Run, item.Name
				step.Kind, step.Status = store.Kind(kind.Int16), store.StepStatus(stepStatus.Int16)
				step.Attempt, step.Epoch, step.Seq = attempt.Int32, stepEpoch, seq.Int32
				f.step = &step
			}
			return nil
		})
	})
	return states, err
}

// settleRuns sets the outcomes of run writes, some of which changed no row.
func (s *database) settleRuns(ask asker, items []*store.RunWrite) error {
	for _, item := range items {
		item.Outcome, item.State = store.Fenced, store.RunState{}
	}
	undecided := -1
	err := s.readBack(ask, "read back runs", func(batch *pgx.Batch) {
		batch.Queue(s.sql.runState, runKeys(items)...)
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var ordinal int64
			var row store.Run
			if err := rows.Scan(&ordinal, (*int16)(&row.Status), (*epochValue)(&row.Epoch), (*int16)(&row.Control), &row.Output, &row.Error); err != nil {
				return err
			}
			item := items[ordinal-1]
			item.State = store.RunState{Found: true, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
			switch {
			case item.AlreadyWritten(&row), overruled(item, &row):
				item.Outcome = store.Written
			case owned(item.State, item.Epoch) && !item.CancelForbids(row.Control):
				undecided = int(ordinal - 1)
			}
			return nil
		})
	})
	if err == nil && undecided >= 0 {
		// The write should have changed this row. Only another write in between explains that it did not.
		err = fmt.Errorf("postgres: finish run %s: %w: it was changed at the same time", items[undecided].UUID, store.ErrUnavailable)
	}
	return err
}

// overruled reports whether the row has the state into which a request to pause or cancel the run has
// turned this write; see run_leave.sql. Then the write was committed before, and its result was lost.
func overruled(w *store.RunWrite, row *store.Run) bool {
	if w.Status.Terminal() || row.Epoch != w.Epoch {
		return false
	}
	return row.Status == store.Pending && row.Control&store.CancelRequested != 0 ||
		row.Status == store.Paused && (row.Control&store.PausedMask != 0 || w.Held)
}
