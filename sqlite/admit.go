package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// AdmitRuns implements store.QueueAdmitter. It first looks for something to do on a reading connection, so that polling idle queues
// never takes the write lock, which is the lock of every queue.
func (s *database) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	a.QueueLocked, a.HasMoreWork, a.NextPassAt, a.AdmittedCount = false, false, time.Time{}, 0
	idle := false
	err := s.withReadConn(ctx, "look at a queue", func(x executor) error {
		strays, err := s.lanesWithUnadmittedRuns(ctx, x, a.Queue)
		if err != nil {
			return err
		}
		q, err := readQueueSummary(x, a, strays)
		if err == nil {
			idle, a.NextPassAt = q.HasNothingToDo("")
		}
		return err
	})
	if err != nil || idle {
		return err
	}
	return s.writeAndNotify(ctx, "admit runs", func(x *writeTx) error {
		strays, err := s.lanesWithUnadmittedRuns(ctx, x, a.Queue)
		if err != nil {
			return err
		}
		q, found, err := readQueue(x, a)
		if err != nil {
			return err
		}
		if err := s.readAdmissionRunsAndKeys(ctx, x, q, strays); err != nil {
			return err
		}
		plan := q.Plan("", a.CloseDurationAfterRewind)
		if err := writeAdmission(ctx, x, &plan); err != nil {
			return err
		}
		if found {
			if err := writeQueue(x, q, &plan); err != nil {
				return err
			}
		}
		a.SetResultsFromPlan(&plan)
		if plan.AdmittedCount > 0 || q.Deleted {
			x.addHint(store.HintAdmitted)
		}
		return nil
	})
}

// readQueue reads the row of the queue. A queue without a row counts as deleted.
func readQueue(x executor, a *store.AdmissionRequest) (q *store.QueueState, found bool, err error) {
	q = &store.QueueState{QueueRow: store.QueueRow{Name: a.Queue, Deleted: true}, Now: truncateTime(a.Now)}
	err = x.query(qAdmissionQueueRead, func(v []driver.Value) error {
		c := columnReader{values: v}
		found = true
		q.RecordedSettings, q.AppliedSettings = c.text(), c.text()
		q.Clock = c.time()
		q.RateUsedUntil, q.ClosedUntil, q.PausedAt, q.Deleted = c.time(), c.time(), c.time(), c.int() != 0
		turns := c.text()
		q.Use = store.QueueUse{Waiting: int(c.int()), Executing: int(c.int()), InProgress: int(c.int())}
		if c.err != nil {
			return c.err
		}
		settings, err := store.DecodeQueueSettings(q.RecordedSettings)
		if err == nil && settings != nil {
			q.Settings = *settings
		}
		if err == nil {
			err = json.Unmarshal([]byte(turns), &q.LatestTurns)
		}
		return err
	}, a.Queue)
	return q, found, err
}

// readQueueSummary reads the state from which HasNothingToDo decides whether an admission is needed.
func readQueueSummary(x executor, a *store.AdmissionRequest, strays []store.ClaimLane) (*store.QueueState, error) {
	q, found, err := readQueue(x, a)
	if err != nil || !found {
		return q, err
	}
	err = x.query(qAdmissionHasWork, func(v []driver.Value) error {
		c := columnReader{values: v}
		q.HasWork = c.int() != 0 || len(strays) > 0
		q.HasUnclaimed = c.int() != 0
		for i := range q.HasRunsInLine {
			q.HasRunsInLine[i] = c.int() != 0
		}
		return c.err
	}, a.Queue, bindTime(q.Now), bindTime(q.Now.Add(-store.CheckUnclaimedRunAfter)))
	if err == nil {
		err = readNextCheckTime(x, q)
	}
	return q, err
}

func readNextCheckTime(x executor, q *store.QueueState) error {
	return x.query(qAdmissionNextCheckTime, func(v []driver.Value) error {
		c := columnReader{values: v}
		q.NextDueAt = c.time()
		return c.err
	}, q.Name, bindTime(q.Now))
}

// readAdmissionRunsAndKeys reads the runs and keys that a pass decides about.
func (s *database) readAdmissionRunsAndKeys(ctx context.Context, x executor, q *store.QueueState, strays []store.ClaimLane) error {
	now := bindTime(q.Now)
	kinds := []func() ([]store.AdmissionRun, error){
		func() ([]store.AdmissionRun, error) {
			return readAdmissionRuns(x, q, qAdmissionRunsLosingPlace, q.Name, int64(store.MaxRunsReadPerAdmission))
		},
		func() ([]store.AdmissionRun, error) {
			return readAdmissionRuns(x, q, qAdmissionSelectDueRuns, q.Name, now, int64(store.MaxRunsReadPerAdmission))
		},
	}
	takesBack, unclaimedSince := q.MayTakeRunsBack(), q.Now.Add(-store.CheckUnclaimedRunAfter)
	if takesBack {
		unclaimedSince = q.Now
	}
	kinds = append(kinds, func() ([]store.AdmissionRun, error) {
		return readAdmissionRuns(x, q, qAdmissionSelectUnclaimedRuns, q.Name, now, bindTime(unclaimedSince), bindBool(takesBack), int64(store.MaxRunsReadPerAdmission))
	})
	if q.Deleted {
		kinds = append(kinds, func() ([]store.AdmissionRun, error) {
			return readAdmissionRuns(x, q, qAdmissionRunsOfDeletedQueue, q.Name, int64(store.UnreleasedLane), int64(store.MaxRunsReadPerAdmission))
		})
	} else {
		for _, l := range strays {
			kinds = append(kinds, func() ([]store.AdmissionRun, error) {
				return readAdmissionRuns(x, q, qAdmissionSelectUnseenRuns, int64(l), int64(store.MaxRunsReadPerAdmission))
			})
		}
	}
	for _, read := range kinds {
		if err := ctx.Err(); err != nil {
			return err
		}
		runs, err := read()
		if err != nil {
			return err
		}
		q.AddRuns(runs)
	}
	if err := q.SearchIdleRuns(&idleRunsReader{s, ctx, x, q}); err != nil {
		return err
	}
	for _, id := range q.DueRunsExecutedBefore() {
		ends, err := queryInt(x, qAdmissionRunHasRecordedEnd, bindShard(id), bindUUID(id), store.EndRecordName)
		if err != nil {
			return err
		}
		if ends != 0 {
			q.MarkRunEnding(id)
		}
	}
	var err error
	if q.AdmittedNotClaimed, err = queryInt(x, qAdmissionUnclaimedRunsCount, q.Name, now, int64(store.MaxAdmittedNotClaimed)); err != nil {
		return err
	}
	if q.HasRate() {
		q.UnclaimedByKey = make(map[string]int)
		err := x.query(qAdmissionUnclaimedRunsByGroupKey, func(v []driver.Value) error {
			c := columnReader{values: v}
			q.UnclaimedByKey[c.text()]++
			return c.err
		}, q.Name, bindTime(q.Now.Add(-store.UnclaimedStopsRateAfter)), int64(store.MaxAdmittedNotClaimed))
		if err != nil {
			return err
		}
	}
	if err := readNextCheckTime(x, q); err != nil {
		return err
	}
	limit := q.MaxRunsToReadInLine()
	for _, part := range store.WaitingRunsRanges {
		var runs []store.AdmissionRun
		if limit > 0 {
			runs, err = readAdmissionRuns(x, q, qAdmissionRunsInLineLock, q.Name, bindBool(part.HasBegun), bindBool(part.Root), now, int64(limit))
			if err != nil {
				return err
			}
		}
		q.AddRunsInLine(part, runs, len(runs) >= limit)
	}
	return readQueueKeys(x, q)
}

func readQueueKeys(x executor, q *store.QueueState) error {
	var look []string
	err := x.query(qAdmissionGroupKeysDueForCheck, func(v []driver.Value) error {
		c := columnReader{values: v}
		look = append(look, c.text())
		return c.err
	}, q.Name, bindTime(q.Now), int64(store.MaxGroupKeysRead))
	if err != nil {
		return err
	}
	q.Keys = make(map[string]*store.QueueKeyState)
	for _, key := range q.KeysToRead(look) {
		k, err := readQueueKey(x, q.Name, key)
		if err != nil {
			return err
		}
		if k == nil {
			continue
		}
		q.Keys[key] = k
		for _, part := range store.WaitingRunsRanges {
			if k.WaitingForKeyCount == 0 {
				break
			}
			runs, err := readAdmissionRuns(x, q, qAdmissionRunsBehindGroupKeyLock, q.Name, key, bindBool(part.HasBegun), bindBool(part.Root), bindTime(q.Now), int64(store.MaxRunsReadBehindKey))
			if err != nil {
				return err
			}
			k.AddRunsBehindKey(part, runs, len(runs) >= store.MaxRunsReadBehindKey)
		}
	}
	return nil
}

// readAdmissionRuns returns the runs that a statement selects.
func readAdmissionRuns(x executor, q *store.QueueState, what queryID, args ...driver.Value) (runs []store.AdmissionRun, err error) {
	err = x.query(what, func(v []driver.Value) error {
		c := columnReader{values: v}
		r := c.admissionRun()
		r.Queue = q.Name
		runs = append(runs, r)
		return c.err
	}, args...)
	return runs, err
}

// admissionRun reads a run and its place.
func (c *columnReader) admissionRun() store.AdmissionRun {
	r := store.AdmissionRun{
		QueuePlace: store.QueuePlace{Run: c.uuid()},
		Admission:  store.AdmissionState(c.int()), WasExecuted: c.int() != 0, Status: store.Status(c.int()), Control: store.ControlBits(c.int()),
		WakeAt: c.time(), Deadline: c.time(),
	}
	r.Weight, r.Root, r.Priority = 1, c.int() != 0, int16(c.int())
	if r.HasPlace = c.int() != 0; !r.HasPlace {
		c.skip(9)
		return r
	}
	r.Key, r.Weight, r.Priority, r.State, r.Root, r.HasBegun = c.text(), int32(c.int()), int16(c.int()), store.PlaceState(c.int()), c.int() != 0, c.int() != 0
	r.Turn, r.ArrivedAt, r.StartBy = c.int(), c.time(), c.time()
	return r
}

// readQueueKey reads the row of a key. It returns nil if there is none.
func readQueueKey(x executor, queue, key string) (k *store.QueueKeyState, err error) {
	err = x.query(qAdmissionGroupKeyRead, func(v []driver.Value) error {
		k = &store.QueueKeyState{}
		c := columnReader{values: v}
		k.Key, k.RateUsedUntil, k.CheckAt = c.text(), c.time(), c.time()
		turns, levels := c.text(), c.text()
		k.Use.Executing, k.Use.InProgress = int(c.int()), int(c.int())
		lined, begun, children := int(c.int()), int(c.int()), int(c.int())
		k.InLine, k.WaitingForKeyCount = [3]int{begun, children, lined - begun - children}, int(c.int())
		if c.err != nil {
			return c.err
		}
		if err := json.Unmarshal([]byte(turns), &k.LatestTurns); err != nil {
			return err
		}
		return json.Unmarshal([]byte(levels), &k.InLineByPriority)
	}, queue, key)
	return k, err
}

// writeAdmission writes the runs and their places.
func writeAdmission(ctx context.Context, x executor, plan *store.AdmissionPlan) error {
	slices.SortFunc(plan.RunsToWrite, func(l, r store.AdmissionRun) int { return store.CompareUUIDsByShard(l.Run, r.Run) })
	for i := range plan.RunsToWrite {
		if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := &plan.RunsToWrite[i]
		n, err := x.exec(qAdmissionRunUpdate, int64(r.Admission), int64(r.Status), bindTime(r.WakeAt), bindShard(r.Run), bindUUID(r.Run))
		if err := checkOneRow("admitting run", r.Run, n, err); err != nil {
			return err
		}
		if r.ShouldDeletePlaceRow() {
			if n, err = x.exec(qAdmissionEndedPlaceDelete, bindShard(r.Run), bindUUID(r.Run)); r.HasPlace || err != nil {
				if err := checkOneRow("deleting the place of run", r.Run, n, err); err != nil {
					return err
				}
			}
			continue
		}
		n, err = x.exec(qAdmissionPlaceUpsert, bindShard(r.Run), bindUUID(r.Run), r.Queue, r.Key, int64(r.Weight), int64(r.Priority), int64(r.State),
			bindBool(r.Root), bindBool(r.HasBegun), r.Turn, bindTime(r.ArrivedAt), bindTime(r.StartBy))
		if err := checkOneRow("writing the place of run", r.Run, n, err); err != nil {
			return err
		}
	}
	return nil
}

// writeQueue writes the row of a queue and its keys.
func writeQueue(x executor, q *store.QueueState, plan *store.AdmissionPlan) error {
	for i := range plan.KeysToWrite {
		if err := writeQueueKey(x, q.Name, &plan.KeysToWrite[i]); err != nil {
			return err
		}
	}
	for _, key := range plan.KeysToDelete {
		if _, err := x.exec(qAdmissionGroupKeyDelete, q.Name, key); err != nil { // the key may never have had a row
			return err
		}
	}
	if plan.CheckAllKeys {
		if _, err := x.exec(qAdmissionGroupKeysMarkAllForCheck, bindTime(q.Now), q.Name); err != nil {
			return err
		}
	}
	if err := writeQueueCounts(x, q); err != nil {
		return err
	}
	if !q.Deleted || plan.HasMoreWork {
		return nil
	}
	n, err := x.exec(qAdmissionQueueDeleteIfEmpty, q.Name, int64(store.UnreleasedLane))
	if err == nil && n == 1 {
		_, err = x.exec(qAdmissionGroupKeysDeleteAll, q.Name)
	}
	return err
}

// writeQueueKey writes the counts of a key.
func writeQueueKey(x executor, queue string, k *store.QueueKeyState) error {
	n, err := x.exec(qAdmissionGroupKeyCountsUpsert, queue, k.Key, bindTime(k.RateUsedUntil), bindTime(k.CheckAt), encodePerPriority(k.LatestTurns), encodePerPriority(k.InLineByPriority),
		int64(k.Use.Executing), int64(k.Use.InProgress), int64(k.InLine[0]+k.InLine[1]+k.InLine[2]), int64(k.InLine[0]), int64(k.InLine[1]), int64(k.WaitingForKeyCount))
	return checkOneQueueRow("writing a key", queue, n, err)
}

// writeQueueCounts writes the counts of a queue.
func writeQueueCounts(x executor, q *store.QueueState) error {
	n, err := x.exec(qAdmissionQueueCountsUpdate, bindText(q.AppliedSettings), bindTime(q.Clock), bindTime(q.RateUsedUntil), bindTime(q.ClosedUntil), encodePerPriority(q.LatestTurns),
		int64(q.Use.Waiting), int64(q.Use.Executing), int64(q.Use.InProgress), q.Name)
	return checkOneQueueRow("writing the row", q.Name, n, err)
}

func encodePerPriority(t store.NumberPerPriority) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic("sqlite: numbers do not encode: " + err.Error())
	}
	return string(b)
}
