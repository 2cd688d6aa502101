package postgres

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// wakeReason is one reason to wake a run: the end of a child, a signal, or, with neither, a control request.
type wakeReason struct {
	run       uuid.UUID
	child     uuid.NullUUID
	signal    uuid.NullUUID
	at        time.Time
	countedBy string // the name of the call that counts the end of the child; empty: none
}

// collectWakes records which runs the batch wakes.
func (w *sortedBatch) collectWakes() {
	for _, item := range w.signals {
		w.wakes = append(w.wakes, wakeReason{run: item.Run, signal: uuid.NullUUID{UUID: item.ID, Valid: true}, at: item.WakeTime()})
	}
	for _, item := range w.ownershipEnds {
		if !item.ParentToWake.Valid || !item.Status.IsTerminal() {
			continue
		}
		reason := wakeReason{item.ParentToWake.UUID, uuid.NullUUID{UUID: item.UUID, Valid: true}, uuid.NullUUID{}, *ownershipEndTime(item), item.CountingCall}
		if item.CountingCall == "" {
			w.wakes = append(w.wakes, reason)
		} else {
			w.countedEnds = append(w.countedEnds, reason)
		}
	}
}

// childEndCountArgs returns the parameters of child_ends_count_and_wake_parents.sql, except the channel.
func childEndCountArgs(items []wakeReason) []any {
	n := len(items)
	return append(make([]any, 0, 6),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].run }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].child) }},
		textArray{n, func(i int) *string { return &items[i].countedBy }},
		timeArray{n, func(i int) *time.Time { return &items[i].at }},
	)
}

// wakeArgs returns the parameters of run_wake.sql, except the channel.
func wakeArgs(items []wakeReason) []any {
	n := len(items)
	return append(make([]any, 0, 6),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].run }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].child) }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].signal) }},
		timeArray{n, func(i int) *time.Time { return &items[i].at }},
	)
}

// runIDArgs returns the parameters of runs_lock_for_batch.sql, and the first ones of other statements for several
// runs.
func runIDArgs(runs []uuid.UUID) []any {
	return append(make([]any, 0, 3),
		int2Array{len(runs), func(i int) int16 { return store.ShardOf(runs[i]) }},
		newUUIDArray(runs),
	)
}
