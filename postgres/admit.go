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

// AdmitRuns implements store.QueueAdmitter. Unless there certainly is work to do, it first checks without a lock. Then one
// transaction locks the queue, reads its runs and keys, and writes what store.QueueState.Plan has decided. It takes four round trips:
// one locks the queue and its runs, one reads the line and the keys, one writes, and one commits. A fifth reads further keys, if the
// next runs in line have other keys than the runs that have left or arrived.
//
// The commit does not wait for the disk. An admission has no visible effect before a claim has committed, and the commit of the claim,
// which is later in the log, waits until both are on disk.
func (s *database) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	a.QueueLocked, a.HasMoreWork, a.NextPassAt, a.AdmittedCount = false, false, time.Time{}, 0
	strays, err := s.lanesWithUnadmittedRuns(ctx, a.Queue)
	if err != nil {
		return err
	}
	found, takesBack := true, false
	if !a.WorkIsCertain {
		var q *store.QueueState
		if q, found, err = s.readQueueSummary(ctx, a, strays); err != nil {
			return err
		}
		idle := false
		if idle, a.NextPassAt = q.HasNothingToDo(s.rewindDetector.timelineText()); idle {
			return nil
		}
		takesBack = q.ExceedsBounds()
	}
	return s.tryTransactionWithOptions(ctx, "admit runs", transactionOptions{lockTimeout: controlLockTimeout, isAsync: true}, func(ask, _ roundTripFunc) error {
		q := newQueueState(a)
		if a.QueueLocked, err = s.lockQueue(ask, q, strays, found, takesBack); err != nil || a.QueueLocked {
			return err
		}
		if now := s.rewindDetector.timelineText(); now != "" && q.DatabaseTimeline != "" && q.DatabaseTimeline != now {
			if q.Now, err = s.clockInTx(ask, q.Now); err != nil {
				return err
			}
		}
		if err := q.SearchIdleRuns(&idleRunsReader{s, ask, q}); err != nil {
			return err
		}
		if err := s.readRunsInLineAndKeys(ask, q); err != nil {
			return err
		}
		plan := q.Plan(s.rewindDetector.timelineText(), a.CloseDurationAfterRewind)
		slices.SortFunc(plan.RunsToWrite, func(l, r store.AdmissionRun) int { return store.CompareUUIDsByShard(l.Run, r.Run) })
		a.SetResultsFromPlan(&plan)
		return s.writeAdmission(ask, q, &plan, found)
	})
}

// queueRowScanner scans the columns of a queue that admission_queue_lock.sql returns.
type queueRowScanner struct {
	state             *store.QueueState
	settings, applied pgtype.Text
	now               time.Time
	latestTurns       []int64
}

func (r *queueRowScanner) scanTargets() []any {
	q := r.state
	return []any{
		&r.settings, &r.applied, (*timeValue)(&r.now), (*timeValue)(&q.RateUsedUntil), (*timeValue)(&q.ClosedUntil), (*timeValue)(&q.PausedAt), &q.Deleted, &q.DatabaseTimeline,
		&r.latestTurns, (*intValue)(&q.Use.Waiting), (*intValue)(&q.Use.Executing), (*intValue)(&q.Use.InProgress),
	}
}

func (r *queueRowScanner) decodeState() error {
	q := r.state
	copy(q.LatestTurns[:], r.latestTurns)
	q.RecordedSettings, q.AppliedSettings = r.settings.String, r.applied.String
	q.Clock = r.now
	settings, err := store.DecodeQueueSettings(q.RecordedSettings)
	if err == nil && settings != nil {
		q.Settings = *settings
	}
	return err
}

// readQueueSummary reads the queue without a lock. A queue without a row counts as deleted.
func (s *database) readQueueSummary(ctx context.Context, a *store.AdmissionRequest, strays []store.ClaimLane) (q *store.QueueState, found bool, err error) {
	err = s.runBatch(ctx, s.enginePool, "look at a queue", func(batch *pgx.Batch) {
		batch.Queue(s.statements.admissionHasWork, a.Queue, pgTime(a.Now), newLaneArray(strays), pgTime(a.Now.Add(-store.CheckUnclaimedRunAfter)))
	}, func(res statementResults) error {
		q, found = newQueueState(a), false // discard the row of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			found = true
			row := queueRowScanner{state: q}
			err := rows.Scan(append(row.scanTargets(), &q.HasWork, &q.HasUnclaimed, &q.HasRunsInLine[0], &q.HasRunsInLine[1], &q.HasRunsInLine[2], (*timeValue)(&q.NextDueAt))...)
			if err == nil {
				err = row.decodeState()
			}
			return err
		})
	})
	return q, found, err
}

// lockQueue locks and reads the row of the queue, unless it has none, and the runs that a pass decides about. It reports whether
// another transaction has locked or deleted the row. Each statement of the round trip sees what was committed before it began, so
// the runs are read as they are while the queue is locked.
func (s *database) lockQueue(ask roundTripFunc, q *store.QueueState, strays []store.ClaimLane, found, takesBack bool) (busy bool, err error) {
	busy = found
	err = ask("lock a queue and its runs", func(batch *pgx.Batch) {
		if found {
			batch.Queue(s.statements.admissionQueueLock, q.Name)
		} else {
			strays = nil
		}
		batch.Queue(s.statements.admissionRunsLock, q.Name, pgTime(q.Now), newLaneArray(strays), int32(store.MaxRunsReadPerAdmission), !found,
			pgTime(q.Now.Add(-store.CheckUnclaimedRunAfter)), takesBack, int64(store.UnreleasedLane))
		batch.Queue(s.statements.admissionUnclaimedRunsCount, q.Name, pgTime(q.Now), int32(store.MaxAdmittedNotClaimed))
	}, func(res statementResults) error {
		if found {
			err := eachRow(res, func(rows pgx.Rows) error {
				busy = false
				row := queueRowScanner{state: q}
				err := rows.Scan(row.scanTargets()...)
				if err == nil {
					err = row.decodeState()
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		var kinds [6][]store.AdmissionRun
		err := eachRow(res, func(rows pgx.Rows) error {
			var kind int32
			r, _, err := scanAdmissionRun(rows, q, &kind)
			if err == nil {
				kinds[kind] = append(kinds[kind], r)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, runs := range kinds {
			q.AddRuns(runs)
		}
		return eachRow(res, func(rows pgx.Rows) error {
			return rows.Scan((*intValue)(&q.AdmittedNotClaimed), (*timeValue)(&q.NextDueAt))
		})
	})
	return busy, err
}

// readRunsInLineAndKeys reads which of the runs that were read have recorded how they end, the beginning of the queue's line, and the keys
// about which a pass decides: the keys of these runs, the keys of the runs in line, and the keys whose CheckAt has come.
func (s *database) readRunsInLineAndKeys(ask roundTripFunc, q *store.QueueState) error {
	room := q.MaxRunsToReadInLine()
	line := newWaitingRunsReader(q, room, spareRunsToRead)
	var look []string
	keys := queueKeyReader{q: q, names: q.KeysToRead(nil)}
	started := q.DueRunsExecutedBefore()
	err := ask("read the line of a queue", func(batch *pgx.Batch) {
		if len(started) > 0 {
			batch.Queue(s.statements.admissionRunsWithRecordedEnd, int2Array{len(started), func(i int) int16 { return store.ShardOf(started[i]) }},
				uuidArray{len(started), func(i int) *uuid.UUID { return &started[i] }}, store.EndRecordName)
		}
		if q.HasRate() {
			batch.Queue(s.statements.admissionUnclaimedRunsByGroupKey, q.Name, pgTime(q.Now.Add(-store.UnclaimedStopsRateAfter)), int32(store.MaxAdmittedNotClaimed))
		}
		s.addRunsInLineRead(batch, line)
		batch.Queue(s.statements.admissionGroupKeysDueForCheck, q.Name, pgTime(q.Now), int32(store.MaxGroupKeysRead))
		s.addQueueKeyReads(batch, &keys)
	}, func(res statementResults) error {
		if len(started) > 0 {
			err := eachRow(res, func(rows pgx.Rows) error {
				var id uuidValue
				err := rows.Scan(&id)
				q.MarkRunEnding(uuid.UUID(id))
				return err
			})
			if err != nil {
				return err
			}
		}
		if q.HasRate() {
			if err := readUnclaimedCountByKey(res, q); err != nil {
				return err
			}
		}
		err := line.readRuns(res)
		if err != nil {
			return err
		}
		err = eachRow(res, func(rows pgx.Rows) error {
			look = append(look, "")
			return rows.Scan(&look[len(look)-1])
		})
		if err != nil {
			return err
		}
		return keys.readKeys(res)
	})
	if err == nil && line.needsMoreRuns(room) {
		line = newWaitingRunsReader(q, room, maxLockedRunsToSkip)
		err = ask("read more of the line of a queue", func(batch *pgx.Batch) { s.addRunsInLineRead(batch, line) }, line.readRuns)
	}
	if err != nil {
		return err
	}
	line.addRunsToQueueState()
	more := queueKeyReader{q: q, names: slices.DeleteFunc(q.KeysToRead(look), func(name string) bool {
		_, known := slices.BinarySearch(keys.names, name)
		return known
	})}
	if len(more.names) == 0 {
		return nil
	}
	return ask("read keys of a queue", func(batch *pgx.Batch) { s.addQueueKeyReads(batch, &more) }, more.readKeys)
}

const (
	waitingRunsRangeCount = len(store.WaitingRunsRanges)
	spareRunsToRead       = 4  // how many more runs are read and locked than there is room for
	maxLockedRunsToSkip   = 32 // the same, if other transactions have locked some of the runs
)

var (
	rangesBegun = boolArray{waitingRunsRangeCount, func(i int) bool { return store.WaitingRunsRanges[i].HasBegun }}
	rangesRoot  = boolArray{waitingRunsRangeCount, func(i int) bool { return store.WaitingRunsRanges[i].Root }}
)

// waitingRunsReader reads the beginning of each part of a queue's line, and locks its runs.
type waitingRunsReader struct {
	q            *store.QueueState
	limit        int // of each part
	ranges       [waitingRunsRangeCount][]store.AdmissionRun
	rowCounts    [waitingRunsRangeCount]int // with the runs that other transactions have locked
	lockedCounts [waitingRunsRangeCount]int // runs that other transactions have locked
}

// newWaitingRunsReader returns a reader of as many runs as there is room for, plus spare further ones.
func newWaitingRunsReader(q *store.QueueState, room, spare int) *waitingRunsReader {
	if room == 0 {
		spare = 0
	}
	return &waitingRunsReader{q: q, limit: room + spare}
}

// addRunsInLineRead adds the statement that reads and locks the runs for the reader.
func (s *database) addRunsInLineRead(batch *pgx.Batch, l *waitingRunsReader) {
	batch.Queue(s.statements.admissionRunsInLineLock, l.q.Name, rangesBegun, rangesRoot, int32(l.limit))
}

func (l *waitingRunsReader) readRuns(res statementResults) error {
	return eachRow(res, func(rows pgx.Rows) error {
		var ordinal int64
		r, mine, err := scanAdmissionRun(rows, l.q, &ordinal)
		if err != nil {
			return err
		}
		part := ordinal - 1
		l.rowCounts[part]++
		switch {
		case !mine:
			l.lockedCounts[part]++
		case r.WaitsInLine(l.q.Now):
			l.ranges[part] = append(l.ranges[part], r)
		}
		return nil
	})
}

// needsMoreRuns reports whether a part may have more runs than were read, and fewer were read than there is room for, because other
// transactions have locked some.
func (l *waitingRunsReader) needsMoreRuns(room int) bool {
	for i, rows := range l.rowCounts {
		if l.lockedCounts[i] > 0 && rows >= l.limit && rows-l.lockedCounts[i] < room {
			return true
		}
	}
	return false
}

// addRunsToQueueState adds the runs that were read to the state of the queue.
func (l *waitingRunsReader) addRunsToQueueState() {
	for i, part := range store.WaitingRunsRanges {
		l.q.AddRunsInLine(part, l.ranges[i], l.rowCounts[i] >= l.limit)
	}
}

// queueKeyReader reads keys of a queue, with the first of the runs behind each.
type queueKeyReader struct {
	q     *store.QueueState
	names []string // sorted
}

// addQueueKeyReads adds the statements that read the keys, if there are any.
func (s *database) addQueueKeyReads(batch *pgx.Batch, k *queueKeyReader) {
	if len(k.names) == 0 {
		return
	}
	arg := textArray{len(k.names), func(i int) *string { return &k.names[i] }}
	batch.Queue(s.statements.admissionGroupKeysRead, k.q.Name, arg)
	batch.Queue(s.statements.admissionRunsBehindGroupKeyLock, k.q.Name, arg, rangesBegun, rangesRoot, int32(store.MaxRunsReadBehindKey))
}

// readKeys reads the results of the statements of addQueueKeyReads.
func (k *queueKeyReader) readKeys(res statementResults) error {
	if len(k.names) == 0 {
		return nil
	}
	q := k.q
	if q.Keys == nil {
		q.Keys = make(map[string]*store.QueueKeyState, len(k.names))
	}
	type partOf struct{ key, part int64 }
	runs, read, cut := make(map[partOf][]store.AdmissionRun), make(map[partOf]int), make(map[partOf]bool)
	err := eachRow(res, func(rows pgx.Rows) error {
		key, err := scanQueueKey(rows)
		q.Keys[key.Key] = key
		return err
	})
	if err != nil {
		return err
	}
	err = eachRow(res, func(rows pgx.Rows) error {
		var p partOf
		r, locked, err := scanAdmissionRun(rows, q, &p.key, &p.part)
		if err != nil {
			return err
		}
		read[p]++
		cut[p] = cut[p] || !locked // no run overtakes another run of its key
		if !cut[p] && r.WaitsInLine(q.Now) {
			runs[p] = append(runs[p], r)
		}
		return nil
	})
	for p, n := range read {
		if key := q.Keys[k.names[p.key-1]]; key != nil {
			key.AddRunsBehindKey(store.WaitingRunsRanges[p.part-1], runs[p], cut[p] || n >= store.MaxRunsReadBehindKey)
		}
	}
	return err
}

// scanAdmissionRun scans a run and its place. It reports whether the statement has locked the run.
func scanAdmissionRun(rows pgx.Rows, q *store.QueueState, before ...any) (r store.AdmissionRun, locked bool, err error) {
	r.Queue = q.Name
	var seen admissionRunRow
	err = rows.Scan(append(before, seen.scanTargets(&r)...)...)
	seen.fillRun(&r)
	return r, seen.status.Valid, err
}

// admissionRunRow scans the columns of a run and its place that may be NULL.
type admissionRunRow struct {
	admission, status, control, priority, state pgtype.Int2
	started, root, begun                        pgtype.Bool
	key                                         pgtype.Text
	weight                                      pgtype.Int4
	turn                                        pgtype.Int8
}

func (s *admissionRunRow) scanTargets(r *store.AdmissionRun) []any {
	return []any{
		(*uuidValue)(&r.Run), &s.admission, &s.started, &s.status, &s.control, (*timeValue)(&r.WakeAt), (*timeValue)(&r.Deadline), &r.Root, &r.Priority,
		&s.key, &s.weight, &s.priority, &s.state, &s.root, &s.begun, &s.turn, (*timeValue)(&r.ArrivedAt), (*timeValue)(&r.StartBy),
	}
}

// fillRun sets the fields of the run from the scanned columns.
func (s *admissionRunRow) fillRun(r *store.AdmissionRun) {
	r.Admission, r.WasExecuted, r.Status, r.Control = store.AdmissionState(s.admission.Int16), s.started.Bool, store.Status(s.status.Int16), store.ControlBits(s.control.Int16)
	r.Weight = 1
	if r.HasPlace = s.key.Valid; r.HasPlace {
		r.Key, r.Weight, r.Priority, r.State = s.key.String, s.weight.Int32, s.priority.Int16, store.PlaceState(s.state.Int16)
		r.Root, r.HasBegun, r.Turn = s.root.Bool, s.begun.Bool, s.turn.Int64
	}
}

// scanQueueKey scans the row of a key.
func scanQueueKey(rows pgx.Rows) (*store.QueueKeyState, error) {
	k := new(store.QueueKeyState)
	var turns, levels []int64
	var lined, begun, children int
	err := rows.Scan(&k.Key, (*timeValue)(&k.RateUsedUntil), (*timeValue)(&k.CheckAt), &turns, &levels, (*intValue)(&k.Use.Executing), (*intValue)(&k.Use.InProgress),
		(*intValue)(&lined), (*intValue)(&begun), (*intValue)(&children), (*intValue)(&k.WaitingForKeyCount))
	copy(k.LatestTurns[:], turns)
	copy(k.InLineByPriority[:], levels)
	k.InLine = [3]int{begun, children, lined - begun - children}
	return k, err
}
