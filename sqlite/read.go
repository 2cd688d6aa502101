package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// GetRuns implements store.Store.
func (s *database) GetRuns(ctx context.Context, refs []store.RunRef) ([]*store.Run, error) {
	return s.GetRunsSelectingPayloads(ctx, refs, store.AllPayloads)
}

// GetRunsSelectingPayloads implements store.Store.
func (s *database) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	rows := make([]*store.Run, len(refs))
	err := s.withReadConn(ctx, "get", func(x executor) error {
		for i, ref := range refs {
			if err := ctx.Err(); err != nil {
				return err
			}
			row, ok, err := findRun(x, ref, with)
			if err != nil {
				return err
			}
			if ok {
				if row.Run.Crashes, err = crashesSinceProgress(x, &row); err != nil {
					return err
				}
				rows[i] = &row.Run
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Statuses implements store.Store.
func (s *database) Statuses(ctx context.Context, runs []uuid.UUID) ([]store.Status, error) {
	statuses := make([]store.Status, len(runs))
	err := s.withReadConn(ctx, "read statuses", func(x executor) error {
		for i, id := range runs {
			if err := ctx.Err(); err != nil {
				return err
			}
			state, err := readRunState(x, id)
			if err != nil {
				return err
			}
			statuses[i] = state.Status
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return statuses, nil
}

// RunFingerprints implements store.Store.
func (s *database) RunFingerprints(ctx context.Context, runs []uuid.UUID, limit int) ([]string, error) {
	marks := make([]string, len(runs))
	err := s.withReadConn(ctx, "read marks of changes", func(x executor) error {
		for i, id := range runs {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := x.query(qRunFingerprint, func(v []driver.Value) error {
				c := columnReader{values: v}
				marks[i] = c.text()
				return c.err
			}, bindShard(id), bindUUID(id), int64(limit))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return marks, err
}

// findRun returns the run that the reference names. A run's UUID wins over an equal name of a root run.
func findRun(x executor, ref store.RunRef, with store.PayloadSelection) (runRow, bool, error) {
	if id, ok := ref.AsUUID(); ok {
		if row, ok, err := runByUUID(x, id, with); ok || err != nil {
			return row, ok, err
		}
	}
	return runByName(x, ref.UUIDOrName, uuid.NullUUID{}, ref.Shard(), with)
}

// crashesSinceProgress returns the number of crashes since the last new checkpoint. The stored number is corrected only when the run
// leaves memory, and by the next claim after a crash.
func crashesSinceProgress(x executor, row *runRow) (int16, error) {
	if row.Crashes == 0 {
		return 0, nil
	}
	if reached, err := readProgress(x, row.UUID); err != nil || reached > row.progressAtLastCrash {
		return 0, err
	}
	return row.Crashes, nil
}

// History implements store.Store.
func (s *database) History(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	var rows []store.Step
	err := s.withReadConn(ctx, "history", func(x executor) (err error) {
		rows, err = readHistory(x, run)
		store.SortByCallOrder(rows)
		return err
	})
	return rows, err
}

// HistoryOutline implements store.Store.
func (s *database) HistoryOutline(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	var rows []store.Step
	err := s.withReadConn(ctx, "outline of a history", func(x executor) (err error) {
		rows, err = querySteps(x, qHistoryWithoutPayloads, bindShard(run), bindUUID(run))
		store.SortByCallOrder(rows)
		return err
	})
	return rows, err
}

// CheckpointsByName implements store.Store.
func (s *database) CheckpointsByName(ctx context.Context, run uuid.UUID, names []string, maxOutput int) (steps []store.SizedStep, err error) {
	err = s.withReadConn(ctx, "checkpoints", func(x executor) error {
		steps = nil
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := x.query(qCheckpointByName, func(v []driver.Value) error {
				c := columnReader{values: v[:1]}
				step, err := scanStep(v[1:])
				steps = append(steps, store.SizedStep{Step: step, OutputSize: int(c.int())})
				return cmp.Or(c.err, err)
			}, bindShard(run), bindUUID(run), name, int64(maxOutput))
			if err != nil {
				return err
			}
		}
		return nil
	})
	store.SortSizedByCallOrder(steps)
	return steps, err
}

// FirstInputHash implements store.RepairStore.
func (s *database) FirstInputHash(ctx context.Context, run uuid.UUID) (hash []byte, err error) {
	err = s.withReadConn(ctx, "the first input", func(x executor) error {
		return x.query(qRunFirstInput, func(v []driver.Value) error {
			c := columnReader{values: v}
			hash = c.bytes()
			return c.err
		}, bindShard(run), bindUUID(run))
	})
	return hash, err
}

// errStopRows stops a query whose further rows are not needed.
var errStopRows = errors.New("enough")

// HistoryFrom implements store.Store.
func (s *database) HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) (steps []store.Step, rest store.UnreadHistory, err error) {
	err = s.withReadConn(ctx, "history", func(x executor) error {
		size := 0
		steps, rest = nil, store.UnreadHistory{}
		err := x.query(qHistoryPart, func(v []driver.Value) error {
			p, err := scanStep(v)
			if err != nil {
				return err
			}
			if size += 100 + len(p.Name) + len(p.Output) + len(p.Error); size > bytes && len(steps) > 0 {
				rest = store.UnreadHistory{Exists: true, FirstStepName: p.Name}
				return errStopRows
			}
			steps = append(steps, p)
			return nil
		}, bindShard(run), bindUUID(run), from)
		if errors.Is(err, errStopRows) {
			return nil
		}
		return err
	})
	return steps, rest, err
}

// Workers implements store.Store.
func (s *database) Workers(ctx context.Context) ([]store.Worker, error) {
	var workers []store.Worker
	err := s.withReadConn(ctx, "workers", func(x executor) error {
		return x.query(qWorkers, func(v []driver.Value) error {
			c := columnReader{values: v}
			w := store.Worker{
				ID: c.uuid(), Name: c.text(), Version: c.text(),
				Capacity: int32(c.int()), ActiveRuns: int32(c.int()), State: store.WorkerState(c.int()),
				StartedAt: c.time(), HeartbeatAt: c.time(),
			}
			workflows, queues := c.text(), c.text()
			w.DeadAt, w.SchemaVersion, w.Quiet = c.time(), int16(c.int()), c.int() != 0
			change, err := store.DecodeOperatorChange(c.text())
			w.LastChange, w.ClockAhead = change, time.Duration(c.int())*time.Microsecond
			err = cmp.Or(c.err, err, decodeTexts(workflows, &w.Workflows), decodeTexts(queues, &w.Queues))
			workers = append(workers, w)
			return err
		})
	})
	return workers, err
}

// Now implements store.Store. It returns the system's clock: all processes that use the file run on one machine,
// because network file systems are not supported. SQLite's own functions read the same clock with a resolution of
// milliseconds.
func (s *database) Now(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	if s.closed.Load() {
		return time.Time{}, store.ErrClosed
	}
	return now(), nil
}

func now() time.Time { return truncateTime(time.Now()) }

// truncateTime returns the time with the resolution that the database stores.
func truncateTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}

func readHistory(x executor, run uuid.UUID) ([]store.Step, error) {
	return querySteps(x, qHistory, bindShard(run), bindUUID(run))
}

func querySteps(x executor, q queryID, args ...driver.Value) (rows []store.Step, err error) {
	err = x.query(q, func(v []driver.Value) error {
		step, err := scanStep(v)
		rows = append(rows, step)
		return err
	}, args...)
	return rows, err
}

func runByUUID(x executor, id uuid.UUID, with store.PayloadSelection) (runRow, bool, error) {
	return queryRun(x, qRunByID, int64(with), bindShard(id), bindUUID(id))
}

func runByName(x executor, name string, parent uuid.NullUUID, shard int16, with store.PayloadSelection) (runRow, bool, error) {
	return queryRun(x, qRunByName, int64(with), name, bindNullUUID(parent), int64(shard))
}

func queryRun(x executor, q queryID, args ...driver.Value) (row runRow, ok bool, err error) {
	err = x.query(q, func(v []driver.Value) (err error) {
		row, err = scanRun(v)
		ok = true
		return err
	}, args...)
	return row, ok, err
}

// readRunState reads the columns that fence the writes of a run.
func readRunState(x executor, id uuid.UUID) (state store.RunState, err error) {
	err = x.query(qRunState, func(v []driver.Value) error {
		c := columnReader{values: v}
		state = store.RunState{Found: true, Status: store.Status(c.int()), Epoch: store.DecodeEpoch(c.int()), Control: store.ControlBits(c.int())}
		return c.err
	}, bindShard(id), bindUUID(id))
	return state, err
}

// queryStatus returns the status that a statement returns, or zero if it returns no row.
func queryStatus(x executor, q queryID, args ...driver.Value) (status store.Status, err error) {
	n, err := queryInt(x, q, args...)
	return store.Status(n), err
}
