package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// DueSchedules implements store.ScheduleStore.
func (s *database) DueSchedules(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error) {
	err = s.runBatch(ctx, s.enginePool, "look for due schedules", func(batch *pgx.Batch) {
		batch.Queue(s.statements.schedulesDue, int32(limit))
		batch.Queue(s.statements.schedulesWaitingLastRunEnded, int32(limit))
	}, func(res statementResults) error {
		due, next = nil, time.Time{}
		err := eachRow(res, func(rows pgx.Rows) error {
			var name string
			var at time.Time
			err := rows.Scan(&name, (*timeValue)(&at))
			if !at.After(now) {
				due = append(due, name)
			} else if next.IsZero() {
				next = at
			}
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var name string
			err := rows.Scan(&name)
			if !slices.Contains(due, name) {
				due = append(due, name)
			}
			return err
		})
	})
	return due, next, err
}

// Schedules implements store.ScheduleStore.
func (s *database) Schedules(ctx context.Context, after string, limit int) (all []store.Schedule, err error) {
	err = s.runBatch(ctx, s.enginePool, "list schedules", func(batch *pgx.Batch) { batch.Queue(s.statements.schedulesPage, after, int32(limit)) },
		func(res statementResults) error {
			all = nil
			return eachRow(res, func(rows pgx.Rows) error {
				row, err := scanSchedule(rows)
				all = append(all, row)
				return err
			})
		})
	return all, err
}

// ScheduleByName implements store.ScheduleStore.
func (s *database) ScheduleByName(ctx context.Context, name string) (row *store.Schedule, err error) {
	err = s.runBatch(ctx, s.enginePool, "read a schedule", func(batch *pgx.Batch) { batch.Queue(s.statements.scheduleByName, scheduleKeyArgs(name)...) },
		readSchedule(&row))
	return row, err
}

// scheduleKeyArgs returns the first parameters of the statements about one schedule.
func scheduleKeyArgs(name string) []any {
	return append(make([]any, 0, 10), store.ShardOfName(name), name)
}

func scanSchedule(rows pgx.Rows) (row store.Schedule, err error) {
	var last pgtype.UUID
	var fires int32
	err = rows.Scan(&row.Name, &row.State, (*timeValue)(&row.NextAt), (*timeValue)(&row.WaitingAt), &last, &row.Paused, &row.CancelsLastRun, &fires)
	row.LastRun = uuid.NullUUID{UUID: last.Bytes, Valid: last.Valid}
	row.FireCount = int(fires)
	return row, err
}

func readSchedule(row **store.Schedule) func(statementResults) error {
	return func(res statementResults) error {
		*row = nil
		return eachRow(res, func(rows pgx.Rows) error {
			found, err := scanSchedule(rows)
			*row = &found
			return err
		})
	}
}

// ChangeSchedule implements store.ScheduleStore.
func (s *database) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	return retryUnavailable(ctx, func() error {
		u.Found, u.AppliedWrite = false, nil
		return s.tryTransaction(ctx, "change a schedule", controlLockTimeout, func(ask roundTripFunc) error { return s.tryChangeSchedule(ask, u) })
	})
}

// tryChangeSchedule makes one try.
func (s *database) tryChangeSchedule(ask roundTripFunc, u *store.ScheduleChangeRequest) error {
	state := store.ScheduleSnapshot{}
	lock := s.statements.scheduleLock
	if u.SkipLocked {
		lock = s.statements.scheduleTryLock
	}
	err := ask("lock a schedule", func(batch *pgx.Batch) { batch.Queue(lock, scheduleKeyArgs(u.Name)...) }, readSchedule(&state.Row))
	if err != nil || state.Row == nil && u.SkipLocked {
		return err
	}
	if u.Found = state.Row != nil; u.Found {
		if err := s.readFiresAndLastRun(ask, u, &state); err != nil {
			return err
		}
	}
	var w *store.ScheduleWrite
	for again := true; again; again = state.NeedsReplanForTakenID(w) {
		if w = u.Plan(state); w == nil {
			return nil
		}
		if err := s.startScheduledRuns(ask, w); err != nil {
			return err
		}
		w.SetOutcomesFromStarts(state.Row)
	}
	if err := s.writeSchedule(ask, u, w); err != nil {
		return err
	}
	if events := u.Events(w); len(events) > 0 {
		err := ask("write events", func(batch *pgx.Batch) {
			batch.Queue(s.statements.eventInsert, eventInsertArgs(u.ActorAndReason, events)...)
		},
			func(res statementResults) error { return expectReturnedRows(res, "events", len(events)) })
		if err != nil {
			return err
		}
	}
	u.AppliedWrite = w
	return nil
}

// readFiresAndLastRun reads which of the times have been fired, and the state of the last run.
func (s *database) readFiresAndLastRun(ask roundTripFunc, u *store.ScheduleChangeRequest, state *store.ScheduleSnapshot) error {
	row := state.Row
	var times, hours []time.Time
	if u.TimesToDecide != nil {
		times = u.TimesToDecide(row)
	}
	for _, at := range times {
		if hour, _ := store.HourAndBitOfFireTime(at); len(hours) == 0 || !hours[len(hours)-1].Equal(hour) {
			hours = append(hours, hour)
		}
	}
	if len(times) == 0 && !row.LastRun.Valid {
		return nil
	}
	state.FiredTimes = make(map[time.Time]bool)
	return ask("read a schedule", func(batch *pgx.Batch) {
		batch.Queue(s.statements.scheduleLastRunState, store.ShardOf(row.LastRun.UUID), pgUUID(row.LastRun.UUID))
		batch.Queue(s.statements.scheduleFiresByTime, append(scheduleKeyArgs(row.Name), newTimeArray(times))...)
		batch.Queue(s.statements.scheduleFireBitmapsRead, append(scheduleKeyArgs(row.Name), newTimeArray(hours))...)
	}, func(res statementResults) error {
		err := eachRow(res, func(rows pgx.Rows) error {
			return rows.Scan((*int16)(&state.LastStatus), (*int16)(&state.LastControl))
		})
		if err != nil {
			return err
		}
		err = eachRow(res, func(rows pgx.Rows) error {
			var at time.Time
			err := rows.Scan((*timeValue)(&at))
			state.FiredTimes[at] = true
			return err
		})
		if err != nil {
			return err
		}
		folded, err := readCompactedScheduleFires(res)
		for _, at := range times {
			if hour, bit := store.HourAndBitOfFireTime(at); store.HasBit(folded[hour], bit) {
				state.FiredTimes[at.UTC()] = true
			}
		}
		return err
	})
}

// writeSchedule writes the fires and the row, and compacts old fires.
func (s *database) writeSchedule(ask roundTripFunc, u *store.ScheduleChangeRequest, w *store.ScheduleWrite) error {
	key, row := scheduleKeyArgs(u.Name), &w.Row
	if w.Delete {
		return ask("delete a schedule", func(batch *pgx.Batch) {
			batch.Queue(s.statements.scheduleDelete, key...)
			batch.Queue(s.statements.scheduleFiresDeleteAll, key...)
			batch.Queue(s.statements.scheduleFireBitmapsDeleteAll, key...)
		}, func(res statementResults) error {
			if err := checkOneScheduleRow(res, u.Name); err != nil {
				return err
			}
			return errors.Join(readRowCount(res, 1, nil), readRowCount(res, 1, nil))
		})
	}
	queueFires := func(batch *pgx.Batch) {
		if len(w.Fires) > 0 {
			batch.Queue(s.statements.scheduleFireUpsert, append(key, scheduleFireArgs(w.Fires)...)...)
		}
	}
	readFires := func(res statementResults) error {
		if len(w.Fires) == 0 {
			return nil
		}
		return eachRow(res, func(pgx.Rows) error { return nil })
	}
	if row.FireCount >= store.CompactFiresAtCount {
		if len(w.Fires) > 0 {
			if err := ask("record fires", queueFires, readFires); err != nil {
				return err
			}
		}
		if err := s.compactScheduleFires(ask, row); err != nil {
			return err
		}
		queueFires, readFires = func(*pgx.Batch) {}, func(statementResults) error { return nil } // the fires are recorded already
	}
	write := s.statements.scheduleUpdate
	if !u.Found {
		write = s.statements.scheduleInsert
	}
	hints := slices.ContainsFunc(w.Fires, func(f store.ScheduleFire) bool { return f.RunToStart != nil && f.Outcome == store.FireStarted })
	var lastShard any
	if row.LastRun.Valid {
		lastShard = store.ShardOf(row.LastRun.UUID)
	}
	return ask("write a schedule", func(batch *pgx.Batch) {
		queueFires(batch)
		batch.Queue(write, append(scheduleKeyArgs(u.Name), row.State, pgTime(row.NextAt), pgTime(row.WaitingAt), lastShard,
			pgtype.UUID{Bytes: row.LastRun.UUID, Valid: row.LastRun.Valid}, row.Paused, row.CancelsLastRun, int32(row.FireCount))...)
		if hints {
			batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
		}
	}, func(res statementResults) error {
		if err := readFires(res); err != nil {
			return err
		}
		if err := checkOneScheduleRow(res, u.Name); err != nil || !hints {
			return err
		}
		return readRowCount(res, 1, nil)
	})
}

// checkOneScheduleRow reads the row that the statement has written. Without one, another process has created or deleted the schedule
// meanwhile, and the transaction is retried.
func checkOneScheduleRow(res statementResults, name string) error {
	n := 0
	err := eachRow(res, func(pgx.Rows) error { n++; return nil })
	if err == nil && n != 1 {
		err = fmt.Errorf("postgres: schedule %q: %w: another process has created or deleted it just now", name, store.ErrUnavailable)
	}
	return err
}
