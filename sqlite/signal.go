package sqlite

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeSignal(x *writeTx, w *store.SignalWrite) error {
	w.Outcome, w.ExistingSignal, w.RunState = store.Written, nil, store.RunState{}
	arrived := w.ArrivedAt
	if arrived.IsZero() {
		arrived = now() // the transaction holds the write lock, so this time is after all earlier writes
	}
	n, err := x.exec(
		qSignalInsert, bindUUID(w.ID), w.Name, bindText(w.Key), bindBytes(w.Payload), bindTime(w.CreatedAt), bindTime(arrived),
		bindShard(w.Run), bindUUID(w.Run),
	)
	if err != nil {
		return err
	}
	if n == 1 {
		if w.ActorAndReason.HasActorOrReason() {
			if err := writeEventWithActor(x, &w.ActorAndReason, &store.Event{Type: store.EventSignalled, Run: w.Run, NewValue: w.Name}); err != nil {
				return err
			}
		}
		return wakeRun(x, w.Run, w.WakeTime())
	}
	return setSignalOutcome(x, w)
}

// setSignalOutcome handles a signal that changed no row: the signal was written before, its key was used before, or
// the run has ended or does not exist.
func setSignalOutcome(x executor, w *store.SignalWrite) error {
	_, sent, err := querySignal(x, w.Run, qSignalByID, bindUUID(w.ID))
	if err != nil || sent {
		return err
	}
	if w.Key != "" {
		had, used, err := querySignal(x, w.Run, qSignalSelectByKey, w.Key)
		if err != nil {
			return err
		}
		if used {
			w.Outcome, w.ExistingSignal = store.AlreadyRecorded, &had
			return nil
		}
	}
	state, err := readRunState(x, w.Run)
	if err != nil {
		return err
	}
	if state.IsLive() {
		return fmt.Errorf("a signal to the %s run %s changed no row", state.Status, w.Run)
	}
	w.Outcome, w.RunState = store.Fenced, state
	return nil
}

// querySignal returns the signal of a run that the statement selects.
func querySignal(x executor, run uuid.UUID, q queryID, which ...driver.Value) (row store.SignalWrite, ok bool, err error) {
	err = x.query(q, func(v []driver.Value) error {
		c := columnReader{values: v}
		row = store.SignalWrite{Run: run, ID: c.uuid(), Name: c.text(), Key: c.text(), Payload: c.bytes(), CreatedAt: c.time()}
		ok = true
		return c.err
	}, append([]driver.Value{bindShard(run), bindUUID(run)}, which...)...)
	return row, ok, err
}
