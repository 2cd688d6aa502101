package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// LatestScheduleFires implements store.ScheduleStore.
func (s *database) LatestScheduleFires(ctx context.Context, schedule string, before time.Time, limit int) (fires []store.ScheduleFire, err error) {
	err = s.runBatch(ctx, s.enginePool, "read fires", func(batch *pgx.Batch) {
		batch.Queue(s.statements.scheduleFiresLatest, append(scheduleKeyArgs(schedule), int32(limit), pgTime(before))...)
	},
		readScheduleFires(schedule, &fires))
	if err != nil {
		return nil, err
	}
	var runs []uuid.UUID
	for _, f := range fires {
		if f.Run.Valid {
			runs = append(runs, f.Run.UUID)
		}
	}
	statuses, err := s.Statuses(ctx, runs)
	for i := range fires {
		if err == nil && fires[i].Run.Valid {
			fires[i].RunStatus, statuses = statuses[0], statuses[1:]
		}
	}
	return fires, err
}

func readScheduleFires(schedule string, fires *[]store.ScheduleFire) func(statementResults) error {
	return func(res statementResults) error {
		*fires = nil
		return eachRow(res, func(rows pgx.Rows) error {
			f := store.ScheduleFire{Schedule: schedule}
			var run pgtype.UUID
			err := rows.Scan((*timeValue)(&f.At), (*timeValue)(&f.FiredAt), (*int16)(&f.Kind), (*int16)(&f.Outcome), &run)
			f.Run = uuid.NullUUID{UUID: run.Bytes, Valid: run.Valid}
			*fires = append(*fires, f)
			return err
		})
	}
}

// startScheduledRuns inserts the runs of the fires, and sets the outcomes of their starts.
func (s *database) startScheduledRuns(ask roundTripFunc, w *store.ScheduleWrite) error {
	starts := w.Starts()
	if len(starts) == 0 {
		return nil
	}
	b := s.batchPool.Get().(*sortedBatch)
	defer func() {
		b.clear()
		s.batchPool.Put(b)
	}()
	b.addBatch(&store.Batch{Starts: starts})
	var took int64
	err := ask("start runs of a schedule", func(batch *pgx.Batch) { s.addStartsOfAnyKind(batch, b) },
		func(res statementResults) error { return readRowCount(res, len(starts), &took) })
	if err != nil {
		return err
	}
	for _, item := range starts {
		item.Outcome, item.ExistingRun = store.Written, nil
	}
	if took < int64(len(starts)) {
		left, err := s.setStartOutcomes(ask, b.starts)
		if err == nil && len(left) > 0 {
			err = startConflictGoneError(left[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compactScheduleFires compacts the fires that are not among the latest FiresKeptInFull.
func (s *database) compactScheduleFires(ask roundTripFunc, row *store.Schedule) error {
	key := scheduleKeyArgs(row.Name)
	var old []store.ScheduleFire
	err := ask("read old fires", func(batch *pgx.Batch) {
		batch.Queue(s.statements.scheduleFiresToCompact, append(key, int32(store.FiresKeptInFull), int32(store.FiresKeptInFull))...)
	}, readScheduleFires(row.Name, &old))
	if err != nil {
		return err
	}
	if row.FireCount = store.FiresKeptInFull; len(old) == store.FiresKeptInFull {
		row.FireCount = store.CompactFiresAtCount // there may be more
	}
	if len(old) == 0 {
		return nil
	}
	times := make([]time.Time, len(old))
	var hours []time.Time
	for i := range old {
		times[i] = old[i].At
		if hour, _ := store.HourAndBitOfFireTime(old[i].At); old[i].CanBeCompacted() && !slices.ContainsFunc(hours, hour.Equal) {
			hours = append(hours, hour)
		}
	}
	var folded map[time.Time][]byte
	err = ask("read bitmaps of past fires", func(batch *pgx.Batch) {
		batch.Queue(s.statements.scheduleFireBitmapsRead, append(scheduleKeyArgs(row.Name), newTimeArray(hours))...)
	},
		func(res statementResults) (err error) {
			folded, err = readCompactedScheduleFires(res)
			return err
		})
	if err != nil {
		return err
	}
	for i := range old {
		if hour, bit := store.HourAndBitOfFireTime(old[i].At); old[i].CanBeCompacted() {
			folded[hour] = store.SetBit(folded[hour], bit)
		}
	}
	bits := make([][]byte, len(hours))
	for i, hour := range hours {
		bits[i] = folded[hour]
	}
	return ask("fold fires", func(batch *pgx.Batch) {
		batch.Queue(s.statements.scheduleFireBitmapsUpsert, append(scheduleKeyArgs(row.Name), newTimeArray(hours), byteaArray{len(bits), func(i int) *[]byte { return &bits[i] }})...)
		batch.Queue(s.statements.scheduleFireDeleteCompacted, append(scheduleKeyArgs(row.Name), newTimeArray(times))...)
	}, func(res statementResults) error {
		if err := eachRow(res, func(pgx.Rows) error { return nil }); err != nil {
			return err
		}
		return readRowCount(res, 1, nil)
	})
}

func readCompactedScheduleFires(res statementResults) (map[time.Time][]byte, error) {
	folded := make(map[time.Time][]byte)
	return folded, eachRow(res, func(rows pgx.Rows) error {
		var hour time.Time
		var bits []byte
		err := rows.Scan((*timeValue)(&hour), &bits)
		folded[hour] = bits
		return err
	})
}

func newTimeArray(list []time.Time) timeArray {
	return timeArray{len(list), func(i int) *time.Time { return &list[i] }}
}

// scheduleFireArgs returns the last parameters of schedule_fire_upsert.sql.
func scheduleFireArgs(fires []store.ScheduleFire) []any {
	n := len(fires)
	return []any{
		timeArray{n, func(i int) *time.Time { return &fires[i].At }},
		timeArray{n, func(i int) *time.Time { return &fires[i].FiredAt }},
		int2Array{n, func(i int) int16 { return int16(fires[i].Kind) }},
		int2Array{n, func(i int) int16 { return int16(fires[i].Outcome) }},
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&fires[i].Run) }},
	}
}
