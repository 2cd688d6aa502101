package postgres

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// startArgs returns the parameters of run_insert.sql, which are the first ones of run_insert_any.sql.
func startArgs(items []*store.Start) []any {
	n := len(items)
	return append(make([]any, 0, 24),
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuids{n, func(i int) *uuid.UUID { return &items[i].Run.UUID }},
		texts{n, func(i int) *string { return &items[i].Run.Name }},
		texts{n, func(i int) *string { return &items[i].Run.Workflow }},
		texts{n, func(i int) *string { return &items[i].Run.Version }},
		texts{n, func(i int) *string { return &items[i].Run.Queue }},
		int2s{n, func(i int) int16 { return int16(items[i].Run.Status) }},
		epochs{n, func(i int) store.Epoch { return items[i].Run.Epoch }},
		uuids{n, func(i int) *uuid.UUID { return nullUUID(&items[i].Run.Owner) }},
		blobs{n, func(i int) *[]byte { return &items[i].Run.Input }},
		texts{n, func(i int) *string { return &items[i].Run.Trace }},
		times{n, func(i int) *time.Time { return &items[i].Run.CreatedAt }},
		times{n, func(i int) *time.Time { return &items[i].Run.StartedAt }},
		times{n, func(i int) *time.Time { return &items[i].Run.WakeAt }},
		times{n, func(i int) *time.Time { return &items[i].Run.Deadline }},
		bools{n, func(i int) bool { return items[i].Run.Detached }},
		int8s{n, func(i int) int64 { return int64(items[i].Run.Lane()) }},
		int2s{n, func(i int) int16 { return items[i].Run.Priority }},
	)
}

// startAnyArgs returns the parameters of run_insert_any.sql.
func startAnyArgs(items []*store.Start, tags []runTag) []any {
	n := len(items)
	return append(append(startArgs(items),
		uuids{n, func(i int) *uuid.UUID { return nullUUID(&items[i].Run.Parent) }},
		epochs{n, func(i int) store.Epoch { return items[i].ParentEpoch }},
	), tagArgs(tags)...)
}

// startPlacedArgs returns the parameters of run_insert_with_place.sql. The starts in placed have a place.
func startPlacedArgs(items []*store.Start, tags []runTag, placed []*store.Start) []any {
	n := len(placed)
	args := append(append(startArgs(items),
		uuids{len(items), func(i int) *uuid.UUID { return nullUUID(&items[i].Run.Parent) }},
		epochs{len(items), func(i int) store.Epoch { return items[i].ParentEpoch }},
		int2s{len(items), func(i int) int16 { return int16(items[i].Run.Control) }},
	), tagArgs(tags)...)
	return append(args,
		int2s{n, func(i int) int16 { return store.ShardOf(placed[i].Run.UUID) }},
		uuids{n, func(i int) *uuid.UUID { return &placed[i].Run.UUID }},
		texts{n, func(i int) *string { return &placed[i].Place.Queue }},
		texts{n, func(i int) *string { return &placed[i].Place.Key }},
		int4s{n, func(i int) int32 { return placed[i].Place.Weight }},
		int2s{n, func(i int) int16 { return placed[i].Place.Priority }},
		bools{n, func(i int) bool { return placed[i].Place.Root }},
		times{n, func(i int) *time.Time { return &placed[i].Place.StartBy }},
	)
}

// startKeys returns the parameters of run_by_name.sql.
func startKeys(items []*store.Start) []any {
	n := len(items)
	return []any{
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuids{n, func(i int) *uuid.UUID { return nullUUID(&items[i].Run.Parent) }},
		texts{n, func(i int) *string { return &items[i].Run.Name }},
	}
}

// parentKeys returns the parameters of parent_state.sql. The parent of a root is NULL.
func parentKeys(items []*store.Start) []any {
	n := len(items)
	return []any{
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuids{n, func(i int) *uuid.UUID { return nullUUID(&items[i].Run.Parent) }},
	}
}

// stepArgs returns the parameters of step_insert.sql and step_update.sql. If anyway is false for a
// write, a request to pause or cancel its run prevents the write.
func stepArgs(items []*store.StepWrite, anyway func(*store.StepWrite) bool) []any {
	n := len(items)
	return append(stepKeys(items),
		int2s{n, func(i int) int16 { return int16(items[i].Step.Kind) }},
		int2s{n, func(i int) int16 { return int16(items[i].Step.Status) }},
		int4s{n, func(i int) int32 { return items[i].Step.Attempt }},
		epochs{n, func(i int) store.Epoch { return items[i].Step.Epoch }},
		blobs{n, func(i int) *[]byte { return &items[i].Step.Output }},
		blobs{n, func(i int) *[]byte { return &items[i].Step.Error }}.orNull(),
		times{n, func(i int) *time.Time { return &items[i].Step.StartedAt }},
		times{n, func(i int) *time.Time { return &items[i].Step.EndedAt }},
		times{n, func(i int) *time.Time { return &items[i].Step.NextAt }}.orNull(),
		bools{n, func(i int) bool { return anyway(items[i]) }},
		int4s{n, func(i int) int32 { return items[i].Step.Seq }},
		blobs{n, func(i int) *[]byte { return &items[i].Step.Failures }}.orNull(),
	)
}

// stepValues returns the parameters of step_insert_one.sql, in the order of stepArgs.
func stepValues(w *store.StepWrite, anyway bool) []any {
	s := &w.Step
	return []any{
		store.ShardOf(s.Run), (*uuidValue)(&s.Run), (*textValue)(&s.Name), int16(s.Kind), int16(s.Status), s.Attempt, s.Epoch.Number(),
		payloadOrNull(&s.Output), payloadOrNull(&s.Error), timeOrNull(&s.StartedAt), timeOrNull(&s.EndedAt), timeOrNull(&s.NextAt),
		anyway, s.Seq, payloadOrNull(&s.Failures),
	}
}

// stepKeys returns the parameters of step_state.sql.
func stepKeys(items []*store.StepWrite) []any {
	n := len(items)
	return append(make([]any, 0, 15),
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].Step.Run) }},
		uuids{n, func(i int) *uuid.UUID { return &items[i].Step.Run }},
		texts{n, func(i int) *string { return &items[i].Step.Name }},
	)
}

// singleStepArgs returns the first parameters of tx_checkpoint.sql and signal_receive.sql.
func singleStepArgs(w *store.Step) []any {
	return []any{
		store.ShardOf(w.Run), pgUUID(w.Run), w.Name, int16(w.Kind), int16(w.Status), w.Attempt, w.Epoch.Number(),
		w.Output, w.Error, pgTime(w.StartedAt), pgTime(w.EndedAt), pgTime(w.NextAt), w.Seq,
	}
}

// finishArgs returns the parameters of run_finish.sql, which are the first ones of run_end_ownership.sql.
func finishArgs(items []*store.RunWrite) []any {
	n := len(items)
	return append(runKeys(items),
		epochs{n, func(i int) store.Epoch { return items[i].Epoch }},
		int2s{n, func(i int) int16 { return int16(items[i].Status) }},
		blobs{n, func(i int) *[]byte { return &items[i].Output }},
		blobs{n, func(i int) *[]byte { return &items[i].Error }},
		texts{n, func(i int) *string { return nullText(&items[i].Reason) }},
		texts{n, func(i int) *string { return nullText(&items[i].Trace) }},
		times{n, func(i int) *time.Time { return &items[i].EndedAt }},
	)
}

// leaveArgs returns the parameters of run_end_ownership.sql, except the channel.
func leaveArgs(items []*store.RunWrite) []any {
	n := len(items)
	return append(finishArgs(items),
		times{n, func(i int) *time.Time { return &items[i].WakeAt }},
		times{n, func(i int) *time.Time { return writeTime(items[i]) }},
	)
}

// writeTime returns the time of the write: the first of Now, EndedAt and WakeAt that is set.
func writeTime(w *store.RunWrite) *time.Time {
	for _, at := range []*time.Time{&w.Now, &w.EndedAt, &w.WakeAt} {
		if !at.IsZero() {
			return at
		}
	}
	now := time.Now() // none is set
	return &now
}

// runKeys returns the parameters of run_state.sql.
func runKeys(items []*store.RunWrite) []any {
	n := len(items)
	return append(make([]any, 0, 12),
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].UUID) }},
		uuids{n, func(i int) *uuid.UUID { return &items[i].UUID }},
	)
}

// leaseArgs returns the parameters of lease_lost.sql, which are the first ones of lease_extend.sql.
func leaseArgs(items []store.Lease, owner uuid.UUID) []any {
	n := len(items)
	return []any{
		int2s{n, func(i int) int16 { return store.ShardOf(items[i].Run) }},
		uuids{n, func(i int) *uuid.UUID { return &items[i].Run }},
		epochs{n, func(i int) store.Epoch { return items[i].Epoch }},
		pgUUID(owner),
	}
}

// pairArgs returns the queues and the workflows of pairs.
func pairArgs(pairs []store.QueueWorkflow) []any {
	n := len(pairs)
	return []any{
		texts{n, func(i int) *string { return &pairs[i].Queue }},
		texts{n, func(i int) *string { return &pairs[i].Workflow }},
	}
}

func uuidColumn(list []uuid.UUID) uuids {
	return uuids{len(list), func(i int) *uuid.UUID { return &list[i] }}
}
