package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Claim implements store.Store. It first looks for due runs on a reading connection, so that polling an idle database
// never takes the write lock. It looks again once it holds the lock.
func (s *database) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	var result store.ClaimResult
	if q.Filter.Empty() {
		return result, nil
	}
	var due []liveLane
	err := s.withReadConn(ctx, "claim", func(x executor) (err error) {
		due, result.NextDue, err = dueLanes(ctx, x, &q)
		return err
	})
	if err != nil || len(due) == 0 || q.Limit <= 0 {
		return result, err
	}
	err = s.withWriteTx(ctx, "claim", func(x executor) (err error) {
		if due, result.NextDue, err = dueLanes(ctx, x, &q); err != nil {
			return err
		}
		for _, l := range due {
			err := x.query(qLaneNextWakeTime, func(v []driver.Value) error {
				c := columnReader{values: v}
				result.NextDue = earlierTime(result.NextDue, c.time())
				return c.err
			}, int64(l.lane), bindTime(q.Now))
			if err != nil {
				return err
			}
		}
		if result.HasNewVersions, err = missesNewVersion(x, &q, due); err != nil || result.HasNewVersions {
			return err
		}
		result.Runs, err = claimRuns(ctx, x, &q, due)
		return err
	})
	if err != nil {
		return store.ClaimResult{}, err
	}
	return result, nil
}

// missesNewVersion reports whether some of the lanes have runs of other versions and q.Versions lacks a version that has arrived.
func missesNewVersion(x executor, q *store.ClaimQuery, lanes []liveLane) (bool, error) {
	if !slices.ContainsFunc(lanes, func(l liveLane) bool { return q.Versions.IsOtherOrderedVersion(l.version) }) {
		return false, nil
	}
	latest, err := lastVersionArrivalTime(x)
	return latest.After(q.Versions.LastVersionArrivalTime()), err
}

// LeasesOfClaim implements store.Store.
func (s *database) LeasesOfClaim(ctx context.Context, q store.ClaimQuery) (leases []store.Lease, err error) {
	err = s.withReadConn(ctx, "read back a claim", func(x executor) error {
		leases = nil // discard the rows of a failed try
		return x.query(qLeasesOfClaim, func(v []driver.Value) error {
			c := columnReader{values: v}
			l := store.Lease{Run: c.uuid(), Epoch: store.DecodeEpoch(c.int())}
			leases = append(leases, l)
			return c.err
		}, bindUUID(q.Worker), bindTime(q.LeaseUntil), int64(q.EpochNonce))
	})
	return leases, err
}

func claimRuns(ctx context.Context, x executor, q *store.ClaimQuery, lanes []liveLane) ([]store.ClaimedRun, error) {
	suspects, err := dueRuns(x, q, lanes, qClaimSelectDueRunsCrashedTwice, min(q.MaxSuspects, q.Limit))
	if err != nil {
		return nil, err
	}
	due, err := dueRuns(x, q, lanes, qClaimSelectDueRuns, q.Limit-len(suspects))
	if err != nil {
		return nil, err
	}
	due = append(due, suspects...)
	claimed, owners := make([]store.ClaimedRun, 0, len(due)), q.OwnersOfClaimedRuns()
	for i, d := range due {
		d.nextOwner = owners[i%len(owners)]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, ok, err := claimRun(x, q, &d)
		if err != nil {
			return nil, err
		}
		if one.BypassesQueue = d.bypassesQueue; ok {
			claimed = append(claimed, one)
		}
	}
	return claimed, nil
}

// dueRun is a run that a claim may take.
type dueRun struct {
	id            uuid.UUID
	bypassesQueue bool            // its admission state is store.AdmissionBypassed
	nextLane      store.ClaimLane // when it is claimed
	nextVersion   string          // when it is claimed; empty: unchanged
	nextOwner     uuid.UUID       // when it is claimed
}

// dueRuns returns due runs that the statement selects from the lanes: lane by lane, each lane oldest first.
func dueRuns(x executor, q *store.ClaimQuery, lanes []liveLane, kind queryID, limit int) (due []dueRun, err error) {
	for _, l := range lanes {
		if len(due) >= limit {
			break
		}
		lane, version := q.Versions.LaneAfterClaim(l.lane, l.queue, l.workflow, l.version, l.diverged, l.priority)
		leastBegun, mostHistory := int64(0), int64(1)
		if q.QueueRules.ClaimsOnlyStartedRuns(l.lane, l.queue) {
			leastBegun = 1
		}
		if q.QueueRules.ClaimsOnlyUnstartedRuns() {
			mostHistory = 0
		}
		err := x.query(kind, func(v []driver.Value) error {
			c := columnReader{values: v[1:]}
			due = append(due, dueRun{id: c.uuid(), bypassesQueue: l.lane.Admission() == store.AdmissionBypassed, nextLane: lane, nextVersion: version})
			return c.err
		}, int64(l.lane), bindTime(q.Now), leastBegun, mostHistory, int64(limit-len(due)))
		if err != nil {
			return nil, err
		}
	}
	return due, nil
}

// claimRun claims one due run, or pauses it. It returns false if the run is no longer due.
func claimRun(x executor, q *store.ClaimQuery, due *dueRun) (store.ClaimedRun, bool, error) {
	id := due.id
	row, ok, err := runByUUID(x, id, store.AllPayloads)
	if err != nil || !ok || row.WakeAt.IsZero() || row.WakeAt.After(q.Now) {
		return store.ClaimedRun{}, false, err
	}
	// A due run that is still running has lost its lease: its worker crashed or hung.
	lost := row.Status == store.Running
	fresh := row.Epoch.Count == 0 // never executed, so it has no history
	crashes, progress := int64(row.Crashes), row.progressAtLastCrash
	halted := lost && row.Control&store.PausedMask != 0
	excused := lost && q.LeaseEndedInOutage(row.WakeAt)
	if lost && !halted && !excused {
		reached, err := readProgress(x, id)
		if err != nil {
			return store.ClaimedRun{}, false, err
		}
		if reached > progress {
			crashes = 0
		}
		crashes, progress = min(crashes+1, math.MaxInt16), reached
	}
	run := row.Run
	run.Crashes = int16(crashes)
	switch {
	case halted:
		err = pauseAsRequested(x, q, &run)
	case lost && !excused && q.MaxCrashes > 0 && crashes >= int64(q.MaxCrashes):
		err = pauseCrashedRun(x, q, &run, progress)
	default:
		err = assignOwner(x, q, &run, due, progress, lost)
	}
	if err == nil && lost {
		err = writeEvent(x, id, store.EventLeaseLost, q.Now)
	}
	if err == nil && run.Status == store.Paused {
		pause, event := store.ActorAndReason{At: q.Now}, store.Event{Type: store.EventPaused, Run: id}
		if halted {
			pause.Actor, pause.Reason = row.PausedBy, row.PauseOrHoldReason
		} else {
			event.NewValue = run.PauseOrHoldReason
		}
		err = writeEventWithActor(x, &pause, &event)
	}
	if err != nil {
		return store.ClaimedRun{}, false, err
	}
	claimed := store.ClaimedRun{Run: run, ProgressAtLastCrash: int(progress)}
	if run.Status == store.Running && !fresh {
		claimed.History, err = readHistory(x, id)
	}
	return claimed, true, err
}

// assignOwner makes a worker the owner of the run.
func assignOwner(x executor, q *store.ClaimQuery, run *store.Run, due *dueRun, progress int64, lost bool) error {
	if due.nextVersion != "" && due.nextVersion != run.Version {
		if run.Epoch.Count > 0 {
			if err := writeVersionEvent(x, run, due.nextVersion, q.Now); err != nil {
				return err
			}
		}
		run.Version = due.nextVersion
	}
	run.Status, run.Owner, run.WakeAt = store.Running, uuid.NullUUID{UUID: due.nextOwner, Valid: true}, truncateTime(q.LeaseUntil)
	run.Epoch = run.Epoch.Next(q.EpochNonce)
	keep := run.Crashes > 1 || !lost && run.Crashes > 0 // keep the reason for the hold, because nothing was recorded since
	if !keep {
		run.PauseOrHoldReason = ""
	}
	if run.StartedAt.IsZero() {
		run.StartedAt = truncateTime(q.Now)
	}
	var lostAt driver.Value
	if lost {
		lostAt = bindTime(q.Now)
	}
	n, err := x.exec(
		qClaimRun, int64(q.EpochNonce), bindUUID(due.nextOwner), bindTime(q.LeaseUntil), bindTime(q.Now), bindBool(keep), int64(run.Crashes), progress, lostAt,
		int64(due.nextLane), run.Version, bindShard(run.UUID), bindUUID(run.UUID), bindTime(q.Now),
	)
	return checkOneRow("claiming run", run.UUID, n, err)
}

// writeVersionEvent records that a worker of another version than before executes the run.
func writeVersionEvent(x executor, run *store.Run, version string, at time.Time) error {
	return writeEventWithActor(x, &store.ActorAndReason{At: at}, &store.Event{Type: store.EventVersionChanged, Run: run.UUID, OldValue: run.Version, NewValue: version})
}

// pauseCrashedRun pauses a run that has crashed MaxCrashes times without progress.
func pauseCrashedRun(x executor, q *store.ClaimQuery, run *store.Run, progress int64) error {
	run.Status, run.Owner, run.WakeAt = store.Paused, uuid.NullUUID{}, time.Time{}
	run.Control, run.PausedAt = run.Control|store.PausedItself, truncateTime(q.Now)
	run.PauseOrHoldReason = store.CrashedTooOftenReason(run.Crashes)
	n, err := x.exec(
		qClaimPauseCrashedTooOften, run.PauseOrHoldReason, bindTime(q.Now), int64(run.Crashes), progress, bindTime(q.Now),
		bindShard(run.UUID), bindUUID(run.UUID), bindTime(q.Now),
	)
	return checkOneRow("pausing run", run.UUID, n, err)
}

// pauseAsRequested pauses a run that was running when its pause was requested, and whose worker died before it released the
// run.
func pauseAsRequested(x executor, q *store.ClaimQuery, run *store.Run) error {
	run.Status, run.Owner, run.WakeAt = store.Paused, uuid.NullUUID{}, time.Time{}
	n, err := x.exec(qClaimFinishRequestedPause, bindTime(q.Now), bindShard(run.UUID), bindUUID(run.UUID), bindTime(q.Now))
	return checkOneRow("setting aside run", run.UUID, n, err)
}

func readProgress(x executor, run uuid.UUID) (n int64, err error) {
	err = x.query(qRunProgress, func(v []driver.Value) error {
		c := columnReader{values: v}
		n = c.int()
		return c.err
	}, bindShard(run), bindUUID(run))
	return n, err
}
