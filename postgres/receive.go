package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// readReceiveResult reads the result of signal_receive.sql for one item. Without a row the item gets no outcome.
func readReceiveResult(res statementResults, item *store.ReceiveWrite) error {
	item.Outcome, item.RecordedStep, item.RunState = 0, nil, store.RunState{}
	return eachRow(res, func(rows pgx.Rows) error {
		var asked store.ControlBits
		step, err := scanStep(rows, (*int16)(&asked))
		if err != nil {
			return err
		}
		item.Outcome, item.RecordedStep = store.Written, &step
		if asked != 0 {
			item.RunState = store.RunState{Found: true, Status: store.Running, Epoch: item.Step.Epoch, Control: asked}
		}
		return nil
	})
}

// setReceiveOutcomes sets the outcomes of receives that changed no row. Either another write, or an earlier try of this write, has
// ended the step; or the writer no longer owns the run.
func (s *database) setReceiveOutcomes(ask roundTripFunc, items []*store.ReceiveWrite) error {
	var open []*store.ReceiveWrite
	var steps []*store.StepWrite
	for _, item := range items {
		if item.Outcome == 0 {
			open = append(open, item)
			steps = append(steps, &store.StepWrite{Step: item.Step})
		}
	}
	if len(open) == 0 {
		return nil
	}
	states, err := s.readBackStepWrites(ask, steps)
	if err != nil {
		return err
	}
	for i, item := range open {
		item.RunState = states[i].runState
		switch item.Outcome = item.OutcomeFromRows(states[i].runState, states[i].row); item.Outcome {
		case store.AlreadyRecorded:
			item.RecordedStep = states[i].row
		case 0:
			// The run was locked when the receive changed no row. Only a change since then explains that.
			return fmt.Errorf("postgres: receive %q: %w: its run was changed at the same time", shortenName(item.Step.Name), store.ErrUnavailable)
		}
	}
	return nil
}
