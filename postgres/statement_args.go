package postgres

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// startArgs returns the parameters of run_insert.sql, which are the first ones of run_insert_any.sql.
func startArgs(items []*store.StartWrite) []any {
	n := len(items)
	return append(make([]any, 0, 25),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Run.UUID }},
		textArray{n, func(i int) *string { return &items[i].Run.Name }},
		textArray{n, func(i int) *string { return &items[i].Run.Workflow }},
		textArray{n, func(i int) *string { return &items[i].Run.Version }},
		textArray{n, func(i int) *string { return &items[i].Run.Queue }},
		int2Array{n, func(i int) int16 { return int16(items[i].Run.Status) }},
		epochArray{n, func(i int) store.Epoch { return items[i].Run.Epoch }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].Run.Owner) }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Run.Input }},
		textArray{n, func(i int) *string { return &items[i].Run.Trace }},
		timeArray{n, func(i int) *time.Time { return &items[i].Run.CreatedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].Run.StartedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].Run.WakeAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].Run.Deadline }}.nullIfAllZero(),
		boolArray{n, func(i int) bool { return items[i].Run.Detached }},
		int8Array{n, func(i int) int64 { return int64(items[i].Run.ClaimLane()) }},
		int2Array{n, func(i int) int16 { return items[i].Run.Priority }},
		int8Array{n, func(i int) int64 { return items[i].Timeout.Microseconds() }}.nullIfAllZero(),
	)
}

// runInsertOneArgs returns the parameters of run_insert_one.sql, in the order of startArgs.
func runInsertOneArgs(w *store.StartWrite) []any {
	r := &w.Run
	return []any{
		store.ShardOf(r.UUID), (*uuidValue)(&r.UUID), (*nullableText)(&r.Name), (*nullableText)(&r.Workflow), (*nullableText)(&r.Version),
		(*nullableText)(&r.Queue), int16(r.Status), r.Epoch.EncodeInt64(), pgNullUUID(r.Owner), payloadOrNull(&r.Input), (*nullableText)(&r.Trace),
		timeOrNull(&r.CreatedAt), timeOrNull(&r.StartedAt), timeOrNull(&r.WakeAt), timeOrNull(&r.Deadline),
		r.Detached, int64(r.ClaimLane()), r.Priority, timeoutOrNull(w.Timeout),
	}
}

// runInsertAnyArgs returns the parameters of run_insert_any.sql.
func runInsertAnyArgs(items []*store.StartWrite, tags []runTag) []any {
	n := len(items)
	return append(append(startArgs(items),
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].Run.Parent) }},
		epochArray{n, func(i int) store.Epoch { return items[i].ParentEpoch }},
	), tagArgs(tags)...)
}

// startWithPlaceArgs returns the parameters of run_insert_with_place.sql. The starts in placed have a place.
func startWithPlaceArgs(items []*store.StartWrite, tags []runTag, placed []*store.StartWrite) []any {
	n := len(placed)
	args := append(append(startArgs(items),
		uuidArray{len(items), func(i int) *uuid.UUID { return uuidOrNull(&items[i].Run.Parent) }},
		epochArray{len(items), func(i int) store.Epoch { return items[i].ParentEpoch }},
		int2Array{len(items), func(i int) int16 { return int16(items[i].Run.Control) }},
	), tagArgs(tags)...)
	return append(args,
		int2Array{n, func(i int) int16 { return store.ShardOf(placed[i].Run.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return &placed[i].Run.UUID }},
		textArray{n, func(i int) *string { return &placed[i].Place.Queue }},
		textArray{n, func(i int) *string { return &placed[i].Place.Key }},
		int4Array{n, func(i int) int32 { return placed[i].Place.Weight }},
		int2Array{n, func(i int) int16 { return placed[i].Place.Priority }},
		boolArray{n, func(i int) bool { return placed[i].Place.Root }},
		timeArray{n, func(i int) *time.Time { return &placed[i].Place.StartBy }},
	)
}

// startNameArgs returns the parameters of run_by_name.sql.
func startNameArgs(items []*store.StartWrite) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].Run.Parent) }},
		textArray{n, func(i int) *string { return &items[i].Run.Name }},
	}
}

// parentIDArgs returns the parameters of states_of_parents.sql. The parent of a root is NULL.
func parentIDArgs(items []*store.StartWrite) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].Run.Parent) }},
	}
}

// stepArgs returns the parameters of step_insert.sql and step_update.sql. If anyway is false for a
// write, a request to pause or cancel its run prevents the write.
func stepArgs(items []*store.StepWrite, anyway func(*store.StepWrite) bool) []any {
	n := len(items)
	return append(stepKeyArgs(items),
		int2Array{n, func(i int) int16 { return int16(items[i].Step.Kind) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Step.Status) }},
		int4Array{n, func(i int) int32 { return items[i].Step.Attempt }},
		epochArray{n, func(i int) store.Epoch { return items[i].Step.Epoch }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Step.Output }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Step.Error }}.nullIfAllZero(),
		timeArray{n, func(i int) *time.Time { return &items[i].Step.StartedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].Step.EndedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].Step.NextAt }}.nullIfAllZero(),
		boolArray{n, func(i int) bool { return anyway(items[i]) }}.nullIfAllZero(),
		int4Array{n, func(i int) int32 { return items[i].Step.Seq }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Step.Failures }}.nullIfAllZero(),
	)
}

// stepInsertOneArgs returns the parameters of step_insert_one.sql, in the order of stepArgs.
func stepInsertOneArgs(w *store.StepWrite, anyway bool) []any {
	s := &w.Step
	return []any{
		store.ShardOf(s.Run), (*uuidValue)(&s.Run), (*nullableText)(&s.Name), int16(s.Kind), int16(s.Status), s.Attempt, s.Epoch.EncodeInt64(),
		payloadOrNull(&s.Output), payloadOrNull(&s.Error), timeOrNull(&s.StartedAt), timeOrNull(&s.EndedAt), timeOrNull(&s.NextAt),
		anyway, s.Seq, payloadOrNull(&s.Failures),
	}
}

// stepKeyArgs returns the parameters of step_not_written_reasons.sql.
func stepKeyArgs(items []*store.StepWrite) []any {
	n := len(items)
	return append(make([]any, 0, 15),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Step.Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Step.Run }},
		textArray{n, func(i int) *string { return &items[i].Step.Name }},
	)
}

// singleStepArgs returns the first parameters of tx_step_checkpoint.sql and signal_receive.sql.
func singleStepArgs(w *store.Step) []any {
	return []any{
		store.ShardOf(w.Run), pgUUID(w.Run), w.Name, int16(w.Kind), int16(w.Status), w.Attempt, w.Epoch.EncodeInt64(),
		w.Output, w.Error, pgTime(w.StartedAt), pgTime(w.EndedAt), pgTime(w.NextAt), w.Seq,
	}
}

// runFinishArgs returns the parameters of run_finish.sql, which are the first ones of run_end_ownership.sql.
func runFinishArgs(items []*store.OwnershipEnd) []any {
	n := len(items)
	return append(ownershipEndIDArgs(items),
		epochArray{n, func(i int) store.Epoch { return items[i].Epoch }},
		int2Array{n, func(i int) int16 { return int16(items[i].Status) }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Output }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Error }},
		textArray{n, func(i int) *string { return textOrNull(&items[i].HoldReason) }},
		textArray{n, func(i int) *string { return textOrNull(&items[i].Trace) }},
		timeArray{n, func(i int) *time.Time { return &items[i].EndedAt }},
	)
}

// runFinishOneArgs returns the parameters of run_finish_one.sql, in the order of runFinishArgs.
func runFinishOneArgs(w *store.OwnershipEnd) []any {
	return []any{
		store.ShardOf(w.UUID), (*uuidValue)(&w.UUID), w.Epoch.EncodeInt64(), int16(w.Status), payloadOrNull(&w.Output), payloadOrNull(&w.Error),
		textOrNull(&w.HoldReason), textOrNull(&w.Trace), timeOrNull(&w.EndedAt),
	}
}

// ownershipEndArgs returns the parameters of run_end_ownership.sql, except the channel.
func ownershipEndArgs(items []*store.OwnershipEnd) []any {
	n := len(items)
	return append(runFinishArgs(items),
		timeArray{n, func(i int) *time.Time { return &items[i].WakeAt }},
		timeArray{n, func(i int) *time.Time { return ownershipEndTime(items[i]) }},
		textArray{n, func(i int) *string { return textIfFailed(items[i], &items[i].FailedStep) }},
		textArray{n, func(i int) *string { return textIfFailed(items[i], &items[i].FailedType) }},
		boolArray{n, func(i int) bool { return items[i].CancelBegun }}.nullIfAllZero(),
	)
}

// textIfFailed returns a text of a run's failure, and nil if the run has not failed.
func textIfFailed(w *store.OwnershipEnd, text *string) *string {
	if w.HasFailed() {
		return text
	}
	return nil
}

// ownershipEndTime returns the time of the write: the first of Now, EndedAt and WakeAt that is set.
func ownershipEndTime(w *store.OwnershipEnd) *time.Time {
	for _, at := range []*time.Time{&w.Now, &w.EndedAt, &w.WakeAt} {
		if !at.IsZero() {
			return at
		}
	}
	now := time.Now() // none is set
	return &now
}

// ownershipEndIDArgs returns the parameters of run_state.sql.
func ownershipEndIDArgs(items []*store.OwnershipEnd) []any {
	n := len(items)
	return append(make([]any, 0, 12),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].UUID }},
	)
}

// leaseArgs returns the parameters of leases_lost.sql, which are the first ones of lease_extend.sql.
func leaseArgs(items []store.Lease, owner uuid.UUID) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Run }},
		epochArray{n, func(i int) store.Epoch { return items[i].Epoch }},
		pgUUID(owner),
	}
}

// queueWorkflowArgs returns the queues and the workflows of pairs.
func queueWorkflowArgs(pairs []store.QueueWorkflow) []any {
	n := len(pairs)
	return []any{
		textArray{n, func(i int) *string { return &pairs[i].Queue }},
		textArray{n, func(i int) *string { return &pairs[i].Workflow }},
	}
}

func newUUIDArray(list []uuid.UUID) uuidArray {
	return uuidArray{len(list), func(i int) *uuid.UUID { return &list[i] }}
}
