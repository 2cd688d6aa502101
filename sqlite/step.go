package sqlite

import (
	"database/sql/driver"

	"github.com/seed8ec063be/durable/internal/store"
)

// allControlBits and noControlBits are the control bits that block a write of a run's owner. The first attempt
// is blocked by any control request, so that the owner learns of it. The second attempt is blocked by none.
const (
	allControlBits = int64(255)
	noControlBits  = int64(0)
)

func writeStep(x *writeTx, w *store.StepWrite) error {
	w.Outcome, w.RecordedStep, w.RunState = store.Written, nil, store.RunState{}
	if n, err := upsertStep(x, &w.Step, w.RowExists, allControlBits); err != nil || n == 1 {
		return err
	}
	return setStepOutcomeOrRetry(x, w)
}

// setStepOutcomeOrRetry handles a write of a step that changed no row. It writes again if the row exists although the writer
// did not know it, or the other way round, or if only a control request blocked the write.
func setStepOutcomeOrRetry(x executor, w *store.StepWrite) error {
	state, err := readRunState(x, w.Step.Run)
	if err != nil {
		return err
	}
	row, err := queryStep(x, &w.Step)
	if err != nil {
		return err
	}
	w.RunState = stateIfControlRequested(state, w.Step.Epoch)
	switch w.Outcome = w.OutcomeFromRows(state, row); w.Outcome {
	case store.Fenced:
		w.RunState = state
	case store.AlreadyRecorded:
		w.RecordedStep = row
	case 0:
		w.Outcome = store.Written
		n, err := upsertStep(x, &w.Step, row != nil, noControlBits)
		if err != nil || n != 1 {
			return checkOneRow("writing a step of run", w.Step.Run, n, err)
		}
	}
	return nil
}

// stateIfControlRequested returns the state if its owner learns of a control request by it, and else the zero state.
func stateIfControlRequested(state store.RunState, owner store.Epoch) store.RunState {
	if state.IsOwnedAt(owner) && state.Control != 0 {
		return state
	}
	return store.RunState{}
}

// upsertStep inserts or updates a step, unless one of the control bits is set on the run.
func upsertStep(x executor, p *store.Step, exists bool, bits int64) (int64, error) {
	if exists {
		return x.exec(
			qStepUpdate, int64(p.Status), int64(p.Attempt), p.Epoch.EncodeInt64(),
			bindTime(p.StartedAt), bindTime(p.EndedAt), bindTime(p.NextAt), bindBytes(p.Output), bindBytes(p.Error),
			bindShard(p.Run), bindUUID(p.Run), p.Name, bits, bindBytes(p.Failures),
		)
	}
	if p.Status == store.StepCompleted && bits == allControlBits && p.Error == nil && p.Failures == nil && p.NextAt.IsZero() {
		return x.exec(
			qStepInsertCompleted, p.Name, int64(p.Kind), int64(p.Attempt), bindTime(p.StartedAt), bindTime(p.EndedAt), bindBytes(p.Output), int64(p.Seq),
			bindShard(p.Run), bindUUID(p.Run), p.Epoch.EncodeInt64(),
		)
	}
	return x.exec(
		qStepInsert, p.Name, int64(p.Kind), int64(p.Status), int64(p.Attempt),
		bindTime(p.StartedAt), bindTime(p.EndedAt), bindTime(p.NextAt), bindBytes(p.Output), bindBytes(p.Error), int64(p.Seq), bindBytes(p.Failures),
		bindShard(p.Run), bindUUID(p.Run), p.Epoch.EncodeInt64(), bits,
	)
}

// queryStep returns the row of a step, or nil.
func queryStep(x executor, p *store.Step) (row *store.Step, err error) {
	err = x.query(qStepByName, func(v []driver.Value) error {
		found, err := scanStep(v)
		row = &found
		return err
	}, bindShard(p.Run), bindUUID(p.Run), p.Name)
	return row, err
}
