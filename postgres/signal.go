package postgres

import (
	"fmt"
	"iter"
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

// signalStatements returns the signals of each statement that stores signals. It keeps the order of the batch, because only the first
// of two signals with the same key is stored. A signal that an event records has a statement of its own.
func (w *sortedBatch) signalStatements() iter.Seq[[]*store.SignalWrite] {
	return func(yield func([]*store.SignalWrite) bool) {
		for rest := w.signals; len(rest) > 0; {
			n := 1
			for n < len(rest) && !rest[0].ActorAndReason.HasActorOrReason() && !rest[n].ActorAndReason.HasActorOrReason() {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// readInsertedSignalCount reads how many signals the statements have inserted.
func (w *sortedBatch) readInsertedSignalCount(res statementResults, took *changedRowCounts) error {
	took.signals = 0
	for signals := range w.signalStatements() {
		var n int64
		if err := readRowCount(res, len(signals), &n); err != nil {
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
