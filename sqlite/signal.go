package sqlite

import (
	"database/sql/driver"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeSignal(x *writing, w *store.Signal) error {
	w.Outcome, w.Existing, w.State = store.Written, nil, store.RunState{}
	arrived := w.ArrivedAt
	if arrived.IsZero() {
		arrived = now() // nobody else writes meanwhile, so it is after all that was written before
	}
	n, err := x.exec(
		qSignalInsert, key(w.ID), w.Name, textOrNull(w.Key), blob(w.Payload), micros(w.CreatedAt), micros(arrived),
		shardOf(w.Run), key(w.Run),
	)
	if err != nil {
		return err
	}
	if n == 1 {
		return wake(x, w.Run, w.CreatedAt)
	}
	return settleSignal(x, w)
}

// settleSignal says why a signal took no row: it was sent before, its key was used, or
// nobody will receive it.
func settleSignal(x session, w *store.Signal) error {
	_, sent, err := oneSignal(x, w.Run, qSignalByID, key(w.ID))
	if err != nil || sent {
		return err
	}
	if w.Key != "" {
		had, used, err := oneSignal(x, w.Run, qSignalByKey, w.Key)
		if err != nil {
			return err
		}
		if used {
			w.Outcome, w.Existing = store.Adopted, &had
			return nil
		}
	}
	state, err := runState(x, w.Run)
	if err != nil {
		return err
	}
	if state.Found && !state.Status.Terminal() {
		return fmt.Errorf("a signal to the %s run %s changed no row", state.Status, w.Run)
	}
	w.Outcome, w.State = store.Fenced, state
	return nil
}

// oneSignal reads one signal of a run, if there is one.
func oneSignal(x session, run uuid.UUID, q query, which ...driver.Value) (row store.Signal, ok bool, err error) {
	err = x.each(q, func(v []driver.Value) error {
		c := columns{values: v}
		row = store.Signal{Run: run, ID: c.id(), Name: c.text(), Key: c.text(), Payload: c.bytes(), CreatedAt: c.time()}
		ok = true
		return c.err
	}, append([]driver.Value{shardOf(run), key(run)}, which...)...)
	return row, ok, err
}
