package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// writeStepInTx writes one step in the caller's transaction, so that it commits together with the other
// writes of that transaction. It sets the outcome in w, which holds if and when the transaction commits.
// Until then no other worker can claim the run. If marked is true and the transaction is no longer the
// one that tx_step_begin.sql began, checkpoint returns errEndedItself.
func (s *database) writeStepInTx(ctx context.Context, tx pgx.Tx, w *store.StepWrite, marked bool) error {
	ask := s.roundTripFuncInUserTx(ctx, tx)
	var took, mark int64
	err := s.roundTripFuncWithSyncCommit(ask)("checkpoint", func(batch *pgx.Batch) {
		if marked {
			batch.Queue(s.statements.txStepCheckBegun)
		}
		batch.Queue(s.statements.txStepCheckpoint, append(singleStepArgs(&w.Step), w.Step.Failures)...)
	}, func(res statementResults) error {
		if marked {
			if err := readRowCount(res, 1, &mark); err != nil {
				return err
			}
		}
		return readRowCount(res, 1, &took)
	})
	switch {
	case err != nil:
		return err
	case marked && mark == 0: // the checkpoint that was just written is rolled back
		return errEndedItself
	}
	if took == 1 {
		w.Outcome = store.Written
		return nil
	}
	states, err := s.readBackStepWrites(ask, []*store.StepWrite{w})
	if err != nil {
		return err
	}
	w.RunState, w.RecordedStep = states[0].runState, nil
	switch w.Outcome = w.OutcomeFromRows(states[0].runState, states[0].row); w.Outcome {
	case 0:
		w.Outcome = store.Locked
	case store.AlreadyRecorded, store.Written:
		// Another transaction wrote the checkpoint, perhaps an earlier transaction of this attempt. If this transaction committed
		// too, the caller's own writes would take effect twice.
		w.Outcome, w.RecordedStep = store.AlreadyRecorded, states[0].row
	}
	return nil
}

// startRunsInTx creates runs in the caller's transaction. Workers are notified if and when that transaction commits. The outcomes in
// the items are valid from then on.
func (s *database) startRunsInTx(ctx context.Context, tx pgx.Tx, starts []*store.StartWrite) error {
	if len(starts) == 0 {
		return nil
	}
	w := &sortedBatch{newRowsMayExist: true} // so that an existing row is no error, which would abort the caller's transaction
	w.addBatch(&store.Batch{Starts: starts})
	ask := s.roundTripFuncInUserTx(ctx, tx)
	var took changedRowCounts
	err := s.roundTripFuncWithSyncCommit(ask)("start", func(batch *pgx.Batch) { s.addStatements(batch, w) },
		func(res statementResults) error { return w.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	if took.starts < int64(len(starts)) {
		left, err := s.setStartOutcomes(ask, w.starts)
		if err == nil && len(left) > 0 {
			err = startConflictGoneError(left[0])
		}
		return err
	}
	for _, item := range starts {
		item.Outcome = store.Written
	}
	return nil
}

// signalInTx sends a signal in the caller's transaction to the run that ref names. If and when the
// transaction commits, the run is woken and workers are notified. Until then the row of the run is
// locked. The outcome in the signal is valid from the commit on.
func (s *database) signalInTx(ctx context.Context, tx pgx.Tx, ref store.RunRef, signal *store.SignalWrite) error {
	ask := s.roundTripFuncInUserTx(ctx, tx)
	runs, err := s.findRuns(ask, []store.RunRef{ref}, store.NoPayloads)
	if err != nil {
		return err
	}
	if runs[0] == nil {
		signal.Outcome, signal.ExistingSignal, signal.RunState = store.Fenced, nil, store.RunState{}
		return nil
	}
	if err := signal.SetRunAndEncodePayload(runs[0].UUID); err != nil {
		return err
	}
	w := &sortedBatch{}
	w.addBatch(&store.Batch{Signals: []*store.SignalWrite{signal}})
	var took changedRowCounts
	err = s.roundTripFuncWithSyncCommit(ask)("signal", func(batch *pgx.Batch) { s.addStatements(batch, w) },
		func(res statementResults) error { return w.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	if took.signals == 0 {
		return s.setSignalOutcomes(ask, w.signals)
	}
	signal.Outcome, signal.ExistingSignal, signal.RunState = store.Written, nil, store.RunState{}
	return nil
}
