package postgres

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// writeAdmission writes what a pass has decided. It writes the queue and its keys only if the queue has a row.
func (s *database) writeAdmission(ask roundTripFunc, q *store.QueueState, plan *store.AdmissionPlan, found bool) error {
	runs, keys := plan.RunsToWrite, plan.KeysToWrite
	var placed, ended []store.AdmissionRun
	for i := range runs {
		switch r := &runs[i]; {
		case !r.ShouldDeletePlaceRow():
			placed = append(placed, *r)
		case r.HasPlace:
			ended = append(ended, *r)
		}
	}
	if !found {
		keys = nil
	}
	deletes := found && len(plan.KeysToDelete) > 0
	ends := found && q.Deleted && !plan.HasMoreWork
	return ask("write an admission", func(batch *pgx.Batch) {
		if len(runs) > 0 {
			batch.Queue(s.statements.admissionRunUpdate, admittedRunArgs(runs)...)
		}
		if len(placed) > 0 {
			batch.Queue(s.statements.admissionPlaceUpsert, admissionPlaceArgs(q.Name, placed)...)
		}
		if len(ended) > 0 {
			batch.Queue(s.statements.admissionEndedPlaceDelete, admissionRunIDArgs(ended)...)
		}
		if len(keys) > 0 {
			batch.Queue(s.statements.admissionGroupKeyCountsUpsert, queueKeyArgs(q.Name, keys)...)
		}
		if deletes {
			batch.Queue(s.statements.admissionGroupKeyDelete, q.Name, textArray{len(plan.KeysToDelete), func(i int) *string { return &plan.KeysToDelete[i] }})
		}
		if found && plan.CheckAllKeys {
			batch.Queue(s.statements.admissionGroupKeysMarkAllForCheck, q.Name, pgTime(q.Now))
		}
		if found {
			batch.Queue(s.statements.admissionQueueCountsUpdate, queueArgs(q)...)
		}
		if ends {
			batch.Queue(s.statements.admissionQueueDeleteIfEmpty, q.Name, int64(store.UnreleasedLane))
		}
		if plan.AdmittedCount > 0 || q.Deleted && len(runs) > 0 {
			batch.Queue(s.statements.notify, notifyChannel(s.schema), admittedPayload)
		}
	}, func(res statementResults) error {
		if len(runs) > 0 {
			if err := expectChangedRows(res, "runs", len(runs)); err != nil {
				return err
			}
		}
		if len(placed) > 0 {
			if err := expectReturnedRows(res, "places", len(placed)); err != nil {
				return err
			}
		}
		if len(ended) > 0 {
			if err := expectChangedRows(res, "places of ended runs", len(ended)); err != nil {
				return err
			}
		}
		if len(keys) > 0 {
			if err := expectReturnedRows(res, "keys", len(keys)); err != nil {
				return err
			}
		}
		for _, sent := range []bool{deletes, found && plan.CheckAllKeys} { // a key may never have had a row
			if sent {
				if _, err := res.Exec(); err != nil {
					return err
				}
			}
		}
		if found {
			if err := expectChangedRows(res, "queues", 1); err != nil {
				return err
			}
		}
		for _, sent := range []bool{ends, plan.AdmittedCount > 0 || q.Deleted && len(runs) > 0} {
			if sent {
				if _, err := res.Exec(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// rowCountError is returned when a statement changed another number of rows than expected.
type rowCountError struct{ text string }

func (e *rowCountError) Error() string { return e.text }

// expectChangedRows returns an error if the next statement changed another number of rows.
func expectChangedRows(res statementResults, what string, n int) error {
	tag, err := res.Exec()
	if err == nil && tag.RowsAffected() != int64(n) {
		err = &rowCountError{fmt.Sprintf("%d %s were changed instead of %d", tag.RowsAffected(), what, n)}
	}
	return err
}

// expectReturnedRows does the same as expectChangedRows for a statement that returns the rows that it has changed.
func expectReturnedRows(res statementResults, what string, n int) error {
	changed := 0
	err := eachRow(res, func(rows pgx.Rows) error {
		changed++
		return rows.Scan(nil)
	})
	if err == nil && changed != n {
		err = &rowCountError{fmt.Sprintf("%d %s were written instead of %d", changed, what, n)}
	}
	return err
}

func admittedRunArgs(runs []store.AdmissionRun) []any {
	n := len(runs)
	return append(admissionRunIDArgs(runs),
		int2Array{n, func(i int) int16 { return int16(runs[i].Admission) }},
		int2Array{n, func(i int) int16 { return int16(runs[i].Status) }},
		timeArray{n, func(i int) *time.Time { return &runs[i].WakeAt }},
	)
}

// admissionRunIDArgs returns the first parameters of the statements about runs.
func admissionRunIDArgs(runs []store.AdmissionRun) []any {
	n := len(runs)
	return append(make([]any, 0, 12),
		int2Array{n, func(i int) int16 { return store.ShardOf(runs[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &runs[i].Run }},
	)
}

// admissionPlaceArgs returns the parameters of admission_place_upsert.sql.
func admissionPlaceArgs(queue string, runs []store.AdmissionRun) []any {
	n := len(runs)
	return append(admissionRunIDArgs(runs),
		queue,
		textArray{n, func(i int) *string { return &runs[i].Key }},
		int4Array{n, func(i int) int32 { return runs[i].Weight }},
		int2Array{n, func(i int) int16 { return runs[i].Priority }},
		int2Array{n, func(i int) int16 { return int16(runs[i].State) }},
		boolArray{n, func(i int) bool { return runs[i].Root }},
		boolArray{n, func(i int) bool { return runs[i].HasBegun }},
		int8Array{n, func(i int) int64 { return runs[i].Turn }},
		timeArray{n, func(i int) *time.Time { return &runs[i].ArrivedAt }},
		timeArray{n, func(i int) *time.Time { return &runs[i].StartBy }},
	)
}

func queueArgs(q *store.QueueState) []any {
	return []any{
		q.Name, textOrNull(&q.AppliedSettings), pgTime(q.Clock), pgTime(q.RateUsedUntil), pgTime(q.ClosedUntil), q.DatabaseTimeline,
		q.LatestTurns[0], q.LatestTurns[1], q.LatestTurns[2], q.LatestTurns[3], q.LatestTurns[4], int64(q.Use.Waiting), int32(q.Use.Executing), int32(q.Use.InProgress),
	}
}

func queueKeyArgs(queue string, keys []store.QueueKeyState) []any {
	n := len(keys)
	args := []any{
		queue,
		textArray{n, func(i int) *string { return &keys[i].Key }},
		timeArray{n, func(i int) *time.Time { return &keys[i].RateUsedUntil }},
		timeArray{n, func(i int) *time.Time { return &keys[i].CheckAt }},
	}
	for level := range len(store.NumberPerPriority{}) {
		args = append(args, int8Array{n, func(i int) int64 { return keys[i].LatestTurns[level] }})
	}
	for level := range len(store.NumberPerPriority{}) {
		args = append(args, int8Array{n, func(i int) int64 { return keys[i].InLineByPriority[level] }})
	}
	for _, count := range []func(*store.QueueKeyState) int{
		func(k *store.QueueKeyState) int { return k.Use.Executing },
		func(k *store.QueueKeyState) int { return k.Use.InProgress },
		func(k *store.QueueKeyState) int { return k.InLine[0] + k.InLine[1] + k.InLine[2] },
		func(k *store.QueueKeyState) int { return k.InLine[0] },
		func(k *store.QueueKeyState) int { return k.InLine[1] },
		func(k *store.QueueKeyState) int { return k.WaitingForKeyCount },
	} {
		args = append(args, int4Array{n, func(i int) int32 { return int32(count(&keys[i])) }})
	}
	return args
}
