package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// signalArgs returns the parameters of signal_insert.sql.
func signalArgs(items []*store.SignalWrite) []any {
	n := len(items)
	return append(signalRunIDArgs(items),
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].ID }},
		textArray{n, func(i int) *string { return &items[i].Name }},
		textArray{n, func(i int) *string { return textOrNull(&items[i].Key) }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Payload }},
		timeArray{n, func(i int) *time.Time { return &items[i].CreatedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].ArrivedAt }},
	)
}

// addSignals adds signals; those that an event records come last.
func (w *sortedBatch) addSignals(signals []*store.SignalWrite) {
	w.signals = append(w.signals, signals...)
	for _, item := range signals {
		if item.ActorAndReason.HasActorOrReason() {
			w.eventSignalCount++
		}
	}
	if w.eventSignalCount > 0 {
		slices.SortStableFunc(w.signals, func(l, r *store.SignalWrite) int {
			switch {
			case l.ActorAndReason.HasActorOrReason() == r.ActorAndReason.HasActorOrReason():
				return 0
			case l.ActorAndReason.HasActorOrReason():
				return 1
			}
			return -1
		})
	}
}

// splitSignalsByEvent returns the signals without an event, which one statement writes, and those with an event.
func (w *sortedBatch) splitSignalsByEvent() (plain, byPerson []*store.SignalWrite) {
	n := len(w.signals) - w.eventSignalCount
	return w.signals[:n], w.signals[n:]
}

// readInsertedSignalCount reads how many signals the statements have inserted.
func (w *sortedBatch) readInsertedSignalCount(res statementResults, took *changedRowCounts) error {
	plain, byPerson := w.splitSignalsByEvent()
	if err := readRowCount(res, len(plain), &took.signals); err != nil {
		return err
	}
	for range byPerson {
		var n int64
		if err := readRowCount(res, 1, &n); err != nil {
			return err
		}
		took.signals += n
	}
	return nil
}

// signalKeyArgs returns the parameters of signal_not_stored_reasons.sql.
func signalKeyArgs(items []*store.SignalWrite) []any {
	n := len(items)
	return append(signalRunIDArgs(items),
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].ID }},
		textArray{n, func(i int) *string { return textOrNull(&items[i].Key) }},
	)
}

// signalRunIDArgs returns the first parameters of the statements about the runs that get the signals: the shards and UUIDs of the runs.
func signalRunIDArgs(items []*store.SignalWrite) []any {
	n := len(items)
	return append(make([]any, 0, 8),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Run }},
	)
}

// setSignalOutcomes sets the outcomes of signals, some of which were not new.
func (s *database) setSignalOutcomes(ask roundTripFunc, items []*store.SignalWrite) error {
	err := s.runAndAwaitStandbys(ask, "read back signals", func(batch *pgx.Batch) {
		batch.Queue(s.statements.signalNotStoredReasons, signalKeyArgs(items)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return setSignalOutcome(rows, items) })
	})
	if err != nil {
		return err
	}
	for _, item := range items {
		if item.Outcome == 0 {
			return fmt.Errorf("postgres: signal %q: %w: what was in its way was gone just now", shortenName(item.Name), store.ErrUnavailable)
		}
	}
	return nil
}

// setSignalOutcome sets the outcome of one signal according to its row of signal_not_stored_reasons.sql.
func setSignalOutcome(rows pgx.Rows, items []*store.SignalWrite) error {
	var ordinal int64
	var status, control pgtype.Int2
	var epoch store.Epoch
	var own bool
	var id pgtype.UUID
	var name pgtype.Text
	var used store.SignalWrite
	err := rows.Scan(&ordinal, &status, (*epochValue)(&epoch), &control, &own, &id, &name, &used.Payload, (*timeValue)(&used.CreatedAt))
	if err != nil {
		return err
	}
	item := items[ordinal-1]
	item.Outcome, item.ExistingSignal = 0, nil
	item.RunState = runStateFromColumns(status, epoch, control)
	switch {
	case own:
		item.Outcome = store.Written
	case id.Valid:
		used.Run, used.ID, used.Name, used.Key = item.Run, id.Bytes, name.String, item.Key
		item.Outcome, item.ExistingSignal = store.AlreadyRecorded, &used
	case !item.RunState.IsLive():
		item.Outcome = store.Fenced
	}
	return nil
}
