package sqlite

import (
	"database/sql/driver"

	"github.com/seed8ec063be/durable/internal/store"
)

// anyBits and noBits are what keeps a write of a run out that is still the writer's: all
// that was asked of the run, at the first try, and nothing once that is told.
const (
	anyBits = int64(255)
	noBits  = int64(0)
)

func writeStep(x *writing, w *store.StepWrite) error {
	w.Outcome, w.Recorded, w.State = store.Written, nil, store.RunState{}
	if n, err := putStep(x, &w.Step, w.Exists, anyBits); err != nil || n == 1 {
		return err
	}
	return settleStep(x, w)
}

// settleStep says why a step's write took no row, or finds that the row was the
// other way (there, or not there) than the writer knew, or that something was asked of
// the run, and writes it again.
func settleStep(x session, w *store.StepWrite) error {
	state, err := runState(x, w.Step.RunID)
	if err != nil {
		return err
	}
	row, recorded, err := stepByName(x, &w.Step)
	if err != nil {
		return err
	}
	own := runsAt(state, w.Step.Epoch)
	if own && state.Control != 0 {
		w.State = state // this is how a worker hears of it first
	}
	switch {
	case recorded && w.AlreadyWritten(&row):
		return nil // a replay: this very write was committed before
	case !own:
		w.Outcome, w.State = store.Fenced, state
		return nil
	case recorded && row.Status.Terminal():
		w.Outcome, w.Recorded = store.Adopted, &row
		return nil
	case state.Control != 0 && w.Step.Kind == store.KindChild && !w.Step.Status.Terminal():
		w.Outcome = store.Fenced // with the child that it marks
		return nil
	}
	// No row now either means that this epoch itself has got further meanwhile: a
	// marker that comes late has nothing left to say.
	_, err = putStep(x, &w.Step, recorded, noBits)
	return err
}

// putStep writes a step's row, unless one of the bits is set on the run.
func putStep(x session, p *store.Step, exists bool, bits int64) (int64, error) {
	if exists {
		return x.exec(
			qStepUpdate, int64(p.Status), int64(p.Attempt), p.Epoch.Number(),
			micros(p.StartedAt), micros(p.EndedAt), micros(p.NextAt), blob(p.Output), blob(p.Error),
			shardOf(p.RunID), key(p.RunID), p.Name, bits, blob(p.Failures),
		)
	}
	if p.Status == store.StepCompleted && bits == anyBits && p.Error == nil && p.Failures == nil && p.NextAt.IsZero() {
		return x.exec(
			qStepInsertDone, p.Name, int64(p.Kind), int64(p.Attempt), micros(p.StartedAt), micros(p.EndedAt), blob(p.Output), int64(p.Seq),
			shardOf(p.RunID), key(p.RunID), p.Epoch.Number(),
		)
	}
	return x.exec(
		qStepInsert, p.Name, int64(p.Kind), int64(p.Status), int64(p.Attempt),
		micros(p.StartedAt), micros(p.EndedAt), micros(p.NextAt), blob(p.Output), blob(p.Error), int64(p.Seq), blob(p.Failures),
		shardOf(p.RunID), key(p.RunID), p.Epoch.Number(), bits,
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

// runsAt reports whether the run is still running in that ownership.
func runsAt(state store.RunState, epoch store.Epoch) bool {
	return state.Found && state.Status == store.Running && state.Epoch == epoch
}
