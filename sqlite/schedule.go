package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// DueSchedules implements store.ScheduleStore.
func (s *database) DueSchedules(ctx context.Context, now time.Time, limit int) (due []string, next time.Time, err error) {
	err = s.withReadConn(ctx, "look for due schedules", func(x executor) error {
		due, next = nil, time.Time{}
		err := x.query(qSchedulesDue, func(v []driver.Value) error {
			c := columnReader{values: v}
			name, at := c.text(), c.time()
			if !at.After(now) {
				due = append(due, name)
			} else if next.IsZero() {
				next = at
			}
			return c.err
		}, int64(limit))
		if err != nil {
			return err
		}
		return x.query(qSchedulesWaitingLastRunEnded, func(v []driver.Value) error {
			c := columnReader{values: v}
			if name := c.text(); !slices.Contains(due, name) {
				due = append(due, name)
			}
			return c.err
		}, int64(limit))
	})
	return due, next, err
}

// Schedules implements store.ScheduleStore.
func (s *database) Schedules(ctx context.Context, after string, limit int) (all []store.Schedule, err error) {
	err = s.withReadConn(ctx, "list schedules", func(x executor) error {
		all = nil
		return x.query(qSchedulesPage, func(v []driver.Value) error {
			row, err := scanSchedule(v)
			all = append(all, row)
			return err
		}, after, int64(limit))
	})
	return all, err
}

// ScheduleByName implements store.ScheduleStore.
func (s *database) ScheduleByName(ctx context.Context, name string) (row *store.Schedule, err error) {
	err = s.withReadConn(ctx, "read a schedule", func(x executor) (err error) {
		row, err = scheduleByName(x, name)
		return err
	})
	return row, err
}

func scheduleByName(x executor, name string) (row *store.Schedule, err error) {
	err = x.query(qScheduleByName, func(v []driver.Value) error {
		found, err := scanSchedule(v)
		row = &found
		return err
	}, name)
	return row, err
}

func scanSchedule(v []driver.Value) (store.Schedule, error) {
	c := columnReader{values: v}
	row := store.Schedule{
		Name: c.text(), State: slices.Clone(c.bytes()), NextAt: c.time(), WaitingAt: c.time(), LastRun: c.nullUUID(),
		Paused: c.int() != 0, CancelsLastRun: c.int() != 0, FireCount: int(c.int()),
	}
	return row, c.err
}

// LatestScheduleFires implements store.ScheduleStore.
func (s *database) LatestScheduleFires(ctx context.Context, schedule string, before time.Time, limit int) (fires []store.ScheduleFire, err error) {
	err = s.withReadConn(ctx, "read fires", func(x executor) error {
		if fires, err = readScheduleFires(x, schedule, qScheduleFiresLatest, int64(limit), bindTime(before)); err != nil {
			return err
		}
		for i := range fires {
			if f := &fires[i]; f.Run.Valid {
				state, err := readRunState(x, f.Run.UUID)
				if err != nil {
					return err
				}
				f.RunStatus = state.Status
			}
		}
		return nil
	})
	return fires, err
}

func readScheduleFires(x executor, schedule string, q queryID, args ...driver.Value) (fires []store.ScheduleFire, err error) {
	err = x.query(q, func(v []driver.Value) error {
		c := columnReader{values: v}
		fires = append(fires, store.ScheduleFire{
			Schedule: schedule, At: c.time(), FiredAt: c.time(), Kind: store.FireKind(c.int()), Outcome: store.FireOutcome(c.int()), Run: c.nullUUID(),
		})
		return c.err
	}, append([]driver.Value{schedule}, args...)...)
	return fires, err
}

// ChangeSchedule implements store.ScheduleStore. The write lock excludes other changes, so there is nothing to skip.
func (s *database) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	u.Found, u.AppliedWrite = false, nil
	return s.writeAndNotify(ctx, "change a schedule", func(x *writeTx) error {
		state := store.ScheduleSnapshot{}
		var err error
		if state.Row, err = scheduleByName(x, u.Name); err != nil || state.Row == nil && u.SkipLocked {
			return err
		}
		if u.Found = state.Row != nil; u.Found {
			if err := readFiresAndLastRun(x, u, &state); err != nil {
				return err
			}
		}
		var w *store.ScheduleWrite
		for again := true; again; again = state.NeedsReplanForTakenID(w) {
			if w = u.Plan(state); w == nil {
				return nil
			}
			for _, start := range w.Starts() {
				if err := writeStart(x, start); err != nil {
					return err
				}
			}
			w.SetOutcomesFromStarts(state.Row)
		}
		u.AppliedWrite = w
		for _, e := range u.Events(w) {
			if err := writeEventWithActor(x, &u.ActorAndReason, &e); err != nil {
				return err
			}
		}
		return writeSchedule(x, u, w)
	})
}

// readFiresAndLastRun reads which of the times have been fired, and the state of the last run.
func readFiresAndLastRun(x executor, u *store.ScheduleChangeRequest, state *store.ScheduleSnapshot) error {
	row := state.Row
	if row.LastRun.Valid {
		last, err := readRunState(x, row.LastRun.UUID)
		if err != nil {
			return err
		}
		state.LastStatus, state.LastControl = last.Status, last.Control
	}
	if u.TimesToDecide == nil {
		return nil
	}
	state.FiredTimes = make(map[time.Time]bool)
	for _, at := range u.TimesToDecide(row) {
		n, err := queryInt(x, qScheduleFiresByTime, row.Name, bindTime(at))
		if err != nil {
			return err
		}
		hour, bit := store.HourAndBitOfFireTime(at)
		bits, err := readCompactedScheduleFires(x, row.Name, hour)
		if err != nil {
			return err
		}
		if n > 0 || store.HasBit(bits, bit) {
			state.FiredTimes[at.UTC()] = true
		}
	}
	return nil
}

func readCompactedScheduleFires(x executor, schedule string, hour time.Time) (bits []byte, err error) {
	err = x.query(qScheduleFireBitmapsRead, func(v []driver.Value) error {
		c := columnReader{values: v}
		bits = slices.Clone(c.bytes())
		return c.err
	}, schedule, bindTime(hour))
	return bits, err
}

// writeSchedule writes the fires and the row, and compacts old fires.
func writeSchedule(x executor, u *store.ScheduleChangeRequest, w *store.ScheduleWrite) error {
	row := &w.Row
	if w.Delete {
		for _, q := range []queryID{qScheduleDelete, qScheduleFiresDeleteAll, qScheduleFireBitmapsDeleteAll} {
			if _, err := x.exec(q, u.Name); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range w.Fires {
		f := &w.Fires[i]
		_, err := x.exec(qScheduleFireUpsert, u.Name, bindTime(f.At), bindTime(f.FiredAt), int64(f.Kind), int64(f.Outcome), bindNullUUID(f.Run))
		if err != nil {
			return err
		}
	}
	if row.FireCount >= store.CompactFiresAtCount {
		if err := compactScheduleFires(x, row); err != nil {
			return err
		}
	}
	values := []driver.Value{
		bindBytes(row.State), bindTime(row.NextAt), bindTime(row.WaitingAt), bindNullUUID(row.LastRun), bindBool(row.Paused), bindBool(row.CancelsLastRun), int64(row.FireCount),
	}
	if u.Found {
		_, err := x.exec(qScheduleUpdate, append(values, u.Name)...)
		return err
	}
	_, err := x.exec(qScheduleInsert, append([]driver.Value{int64(store.ShardOfName(u.Name)), u.Name}, values...)...)
	return err
}

// compactScheduleFires compacts the fires that are not among the latest FiresKeptInFull.
func compactScheduleFires(x executor, row *store.Schedule) error {
	old, err := readScheduleFires(x, row.Name, qScheduleFiresToCompact, int64(store.FiresKeptInFull), int64(store.FiresKeptInFull))
	if err != nil {
		return err
	}
	if row.FireCount = store.FiresKeptInFull; len(old) == store.FiresKeptInFull {
		row.FireCount = store.CompactFiresAtCount // there may be more
	}
	for i := range old {
		f := &old[i]
		if f.CanBeCompacted() {
			hour, bit := store.HourAndBitOfFireTime(f.At)
			bits, err := readCompactedScheduleFires(x, row.Name, hour)
			if err != nil {
				return err
			}
			if _, err := x.exec(qScheduleFireBitmapsUpsert, row.Name, bindTime(hour), store.SetBit(bits, bit)); err != nil {
				return err
			}
		}
		if _, err := x.exec(qScheduleFireDeleteCompacted, row.Name, bindTime(f.At)); err != nil {
			return err
		}
	}
	return nil
}
