package sqlite

import (
	"database/sql/driver"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// writeReceive records that the step received the oldest signal, or, if there is none, that it waits or has timed out.
// The transaction holds the write lock, so nothing that it reads can change meanwhile.
func writeReceive(x *writeTx, w *store.Receive) error {
	w.Outcome, w.Recorded, w.State = store.Written, nil, store.RunState{}
	had, recorded, err := queryStep(x, &w.Step)
	if err != nil {
		return err
	}
	if recorded && had.Status.Terminal() {
		return resolveEndedReceive(x, w, &had)
	}
	var bound driver.Value // a wait that begins now accepts every signal that has arrived
	if recorded && had.Attempt >= w.Step.Attempt {
		bound = bindTime(had.NextAt)
	}
	signal, waits, err := querySignal(x, w.Step.Run, qSignalNext, w.Signal, bound)
	if err != nil {
		return err
	}
	step := w.Step
	if !waits && !step.Status.Terminal() {
		step.EndedAt = time.Time{} // the wait continues
	}
	if recorded {
		step.Failures = had.Failures
	}
	if recorded && had.Attempt == step.Attempt {
		step.StartedAt, step.NextAt = had.StartedAt, had.NextAt // the wait continues, with its original end
	}
	if waits {
		step.Status, step.Output, step.Error = store.StepCompleted, signal.Payload, nil
		if step.EndedAt.IsZero() {
			step.EndedAt = latest(signal.CreatedAt, step.StartedAt)
		}
	}
	n, err := upsertStep(x, &step, recorded, blockedByControl)
	if err != nil {
		return err
	}
	if n == 0 {
		state, err := readRunState(x, step.Run)
		if err != nil {
			return err
		}
		if !runsAt(state, step.Epoch) {
			w.Outcome, w.State = store.Fenced, state
			return nil
		}
		if state.Control != 0 {
			w.State = state
		}
		if n, err = upsertStep(x, &step, recorded, ignoreControl); err != nil {
			return err
		}
	}
	if waits {
		if n != 1 {
			return checkOneRow("receiving in run", step.Run, n, nil)
		}
		n, err := x.exec(qSignalTake, step.Name, bindShard(step.Run), bindUUID(step.Run), bindUUID(signal.ID))
		if err != nil || n != 1 {
			return checkOneRow("taking a signal of run", step.Run, n, err)
		}
	}
	// Without a signal, no changed row means that a later write of this epoch was committed first.
	row, _, err := queryStep(x, &w.Step)
	w.Recorded = &row
	return err
}

// resolveEndedReceive handles a receive whose step has an outcome already. If this ownership wrote the outcome, its
// reply may have been lost, and the outcome is returned even if the ownership has ended since.
func resolveEndedReceive(x session, w *store.Receive, had *store.Step) error {
	state, err := readRunState(x, w.Step.Run)
	if err != nil {
		return err
	}
	own := runsAt(state, w.Step.Epoch)
	if !own && (had.Epoch != w.Step.Epoch || had.Attempt != w.Step.Attempt) {
		w.Outcome, w.State = store.Fenced, state
		return nil
	}
	w.Outcome, w.Recorded = store.Adopted, had
	if own && state.Control != 0 {
		w.State = state
	}
	return nil
}

// latest returns the later of two times.
func latest(l, r time.Time) time.Time {
	if r.After(l) {
		return r
	}
	return l
}
