package postgres

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// setStartOutcomes sets the outcomes of starts, some of which created no run. It returns the starts that have to
// be retried, because nothing prevents them any more: the parent was resumed since, or the run of that name
// was removed.
func (s *database) setStartOutcomes(ask roundTripFunc, items []*store.StartWrite) (left []*store.StartWrite, err error) {
	parents := make([]store.RunState, len(items))
	existing := make([]*store.Run, len(items))
	err = s.runAndAwaitStandbys(ask, "read back starts", func(batch *pgx.Batch) {
		batch.Queue(s.statements.statesOfParents, parentIDArgs(items)...) // read the parents first: a run that is created after this is still found by name
		batch.Queue(s.statements.runByName, startNameArgs(items)...)
	}, func(res statementResults) error {
		var ordinal int64
		err := eachRow(res, func(rows pgx.Rows) error {
			state := store.RunState{Found: true}
			err := rows.Scan(&ordinal, (*int16)(&state.Status), (*epochValue)(&state.Epoch), (*int16)(&state.Control))
			parents[ordinal-1] = state
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			run, err := scanRun(rows, &ordinal)
			if err == nil {
				existing[ordinal-1] = run
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		item.ExistingRun, item.RunState = nil, store.RunState{}
		switch item.Outcome = item.OutcomeFromRows(parents[i], existing[i]); item.Outcome {
		case store.AlreadyRecorded:
			item.ExistingRun = existing[i]
		case store.Fenced:
			item.RunState = parents[i]
		case 0:
			left = append(left, item)
		}
	}
	return left, nil
}

// startConflictGoneError returns the error of a start that failed several times, although nothing prevents it any more.
func startConflictGoneError(item *store.StartWrite) error {
	return fmt.Errorf("postgres: start %q: %w: what was in its way was gone just now", shortenName(item.Run.Name), store.ErrUnavailable)
}

// existingStep is the result of step_not_written_reasons.sql for one step.
type existingStep struct {
	runState store.RunState
	row      *store.Step // nil: no row
}

// setStepOutcomesOrRetry sets the outcomes of step writes, some of which changed no row. It writes the writes that need a second try
// once more.
func (s *database) setStepOutcomesOrRetry(ask roundTripFunc, items []*store.StepWrite) error {
	if len(items) == 0 {
		return nil
	}
	second, err := s.setStepOutcomes(ask, items)
	if err != nil || len(second.newSteps)+len(second.existingSteps) == 0 {
		return err
	}
	var took changedRowCounts
	err = ask("write steps once more", func(batch *pgx.Batch) { s.addStatements(batch, second) },
		func(res statementResults) error { return second.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	_, err = s.setStepOutcomes(ask, slices.Concat(second.newSteps, second.existingSteps))
	return err
}

// setStepOutcomes sets the outcomes of step writes by the rows that it reads. If the rows do not decide the outcome of a write, the
// outcome is Locked. setStepOutcomes returns the undecided writes that need a second try.
func (s *database) setStepOutcomes(ask roundTripFunc, items []*store.StepWrite) (second *sortedBatch, err error) {
	states, err := s.readBackStepWrites(ask, items)
	if err != nil {
		return nil, err
	}
	second = &sortedBatch{despiteControl: true, newRowsMayExist: true}
	for i, item := range items {
		run, row := states[i].runState, states[i].row
		item.RunState, item.RecordedStep = run, nil
		switch item.Outcome = item.OutcomeFromRows(run, row); {
		case item.Outcome == store.AlreadyRecorded:
			item.RecordedStep = row
		case item.Outcome != 0:
		case !item.NeedsSecondTry(run, row):
			item.Outcome = store.Locked
		case row != nil:
			item.Outcome, second.existingSteps = store.Locked, append(second.existingSteps, item)
		default:
			item.Outcome, second.newSteps = store.Locked, append(second.newSteps, item)
		}
	}
	slices.SortFunc(second.newSteps, compareSteps)
	slices.SortFunc(second.existingSteps, compareSteps)
	return second, nil
}

func (s *database) readBackStepWrites(ask roundTripFunc, items []*store.StepWrite) ([]existingStep, error) {
	states := make([]existingStep, len(items))
	err := s.runAndAwaitStandbys(ask, "read back steps", func(batch *pgx.Batch) {
		batch.Queue(s.statements.stepNotWrittenReasons, stepKeyArgs(items)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
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
			f.runState = runStateFromColumns(status, epoch, control)
			if stepStatus.Valid {
				item := &items[ordinal-1].Step
				step.Run, step.Name = item.Run, item.Name
				step.Kind, step.Status = store.StepKind(kind.Int16), store.StepStatus(stepStatus.Int16)
				step.Attempt, step.Epoch, step.Seq = attempt.Int32, stepEpoch, seq.Int32
				f.row = &step
			}
			return nil
		})
	})
	return states, err
}

// setOwnershipEndOutcomes sets the outcomes of run writes, some of which changed no row.
func (s *database) setOwnershipEndOutcomes(ask roundTripFunc, items []*store.OwnershipEnd) error {
	if len(items) == 0 {
		return nil
	}
	for _, item := range items {
		item.Outcome, item.RunState = store.Fenced, store.RunState{} // no row is found
	}
	var undecided *store.OwnershipEnd
	err := s.runAndAwaitStandbys(ask, "read back runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runState, ownershipEndIDArgs(items)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var ordinal int64
			var row store.Run
			if err := rows.Scan(&ordinal, (*int16)(&row.Status), (*epochValue)(&row.Epoch), (*int16)(&row.Control), &row.Output, &row.Error); err != nil {
				return err
			}
			item := items[ordinal-1]
			item.RunState = store.RunState{Found: true, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
			if item.Outcome = item.OutcomeFromRows(item.RunState, &row); item.Outcome == 0 {
				undecided = item
			}
			return nil
		})
	})
	if err == nil && undecided != nil {
		// The write should have changed this row. That it did not can only be due to another write in between.
		err = fmt.Errorf("postgres: finish run %s: %w: it was changed at the same time", undecided.UUID, store.ErrUnavailable)
	}
	return err
}
