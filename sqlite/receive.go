package sqlite

import (
	"cmp"
	"database/sql/driver"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// writeReceive records that the step has received the oldest signal or, if there is none, that it waits or has timed out. The
// transaction holds the write lock, so nothing that it reads can change meanwhile.
func writeReceive(x *writeTx, w *store.ReceiveWrite) error {
	w.Outcome, w.RecordedStep, w.RunState = store.Written, nil, store.RunState{}
	had, err := queryStep(x, &w.Step)
	if err != nil {
		return err
	}
	if had != nil && had.Status.IsTerminal() {
		_, err := setReceiveOutcome(x, w, had)
		return err
	}
	signal, waits, err := nextSignal(x, w, had)
	if err != nil {
		return err
	}
	step := stepOfWaitingReceive(w, had)
	switch {
	case waits:
		completeWithSignal(&step, &signal)
	case !step.Status.IsTerminal():
		step.EndedAt = time.Time{} // the wait continues
	}
	n, err := upsertStep(x, &step, had != nil, allControlBits)
	if err != nil {
		return err
	}
	if n == 0 {
		if fenced, err := setReceiveOutcome(x, w, had); err != nil || fenced {
			return err
		}
		if n, err = upsertStep(x, &step, had != nil, noControlBits); err != nil {
			return err
		}
	}
	if waits {
		if n != 1 {
			return checkOneRow("receiving in run", step.Run, n, nil)
		}
		n, err := x.exec(qSignalMarkReceived, cmp.Or(w.Receiver, step.Name), bindShard(step.Run), bindUUID(step.Run), bindUUID(signal.ID))
		if err != nil || n != 1 {
			return checkOneRow("taking a signal of run", step.Run, n, err)
		}
	}
	// Without a signal, no changed row means that a later write of this epoch was committed first.
	w.RecordedStep, err = queryStep(x, &w.Step)
	return err
}

// nextSignal returns the signal that the step receives. The argument had is the step's row, or nil.
func nextSignal(x executor, w *store.ReceiveWrite, had *store.Step) (signal store.SignalWrite, waits bool, err error) {
	var bound driver.Value // a wait that begins now accepts every signal that has arrived
	if had != nil && had.Attempt >= w.Step.Attempt {
		bound = bindTime(had.NextAt)
	}
	return querySignal(x, w.Step.Run, qSignalOldestWaiting, w.Signal, bound)
}

// stepOfWaitingReceive returns the step to write if there is no signal. The argument had is the step's row, or nil.
func stepOfWaitingReceive(w *store.ReceiveWrite, had *store.Step) store.Step {
	step := w.Step
	if had == nil {
		return step
	}
	step.Failures = had.Failures
	if had.Attempt == step.Attempt {
		step.StartedAt, step.NextAt = had.StartedAt, had.NextAt // the wait continues, with its original end
	}
	return step
}

// completeWithSignal completes the step with the signal.
func completeWithSignal(step *store.Step, signal *store.SignalWrite) {
	step.Status, step.Output, step.Error = store.StepCompleted, signal.Payload, nil
	if step.EndedAt.IsZero() {
		step.EndedAt = laterTime(signal.CreatedAt, step.StartedAt)
	}
}

// setReceiveOutcome sets the outcome of a receive that changed no row, and reports whether it has set one. The argument had is the
// step's row, or nil.
func setReceiveOutcome(x executor, w *store.ReceiveWrite, had *store.Step) (resolved bool, err error) {
	state, err := readRunState(x, w.Step.Run)
	if err != nil {
		return false, err
	}
	w.RunState = stateIfControlRequested(state, w.Step.Epoch)
	switch w.Outcome = w.OutcomeFromRows(state, had); w.Outcome {
	case store.Fenced:
		w.RunState = state
	case store.AlreadyRecorded:
		w.RecordedStep = had
	case 0:
		w.Outcome = store.Written
		return false, nil
	}
	return true, nil
}

// laterTime returns the later of two times.
func laterTime(l, r time.Time) time.Time {
	if r.After(l) {
		return r
	}
	return l
}
