package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// A claim loads at most maxClaimHistoryBytes of histories, and at most maxRunHistoryBytes for each run that it may take. With larger
// histories, a claim over a slow connection would exceed its timeout. A worker whose claim failed requests fewer runs the next time.
const (
	maxClaimHistoryBytes = 4 << 20
	maxRunHistoryBytes   = 128 << 10
)

// maxHistoryBytesOfClaim returns how many bytes of histories the claim may load.
func maxHistoryBytesOfClaim(q *store.ClaimQuery) int {
	return min(maxClaimHistoryBytes, maxRunHistoryBytes*q.Limit)
}

// Claim implements store.Store. One transaction and one round trip contain three statements: the search for
// new lanes and the time when the next run is due; the claim; and the histories of the claimed runs. If there are new lanes, the
// transaction claims no runs; Claim then reads the new lanes and repeats the transaction. The histories of runs whose owner lost its
// lease are read afterwards; see readTakenOverHistories.
func (s *database) Claim(ctx context.Context, q store.ClaimQuery) (claims store.ClaimResult, err error) {
	if q.Filter.Empty() || q.Limit <= 0 {
		return claims, nil
	}
	era := s.rewindDetector.rewindCount.Load()
	var overtaken []int
	for again := true; again && err == nil; {
		claims, overtaken, again, err = s.claimOnce(ctx, &q)
	}
	if err == nil && len(overtaken) > 0 {
		err = s.readTakenOverHistories(ctx, claims.Runs, overtaken, maxHistoryBytesOfClaim(&q)/len(overtaken))
	}
	if err == nil {
		err = s.rewindDetector.addClaimedRuns(era, claims.Runs)
	}
	if err != nil {
		return store.ClaimResult{}, err
	}
	return claims, nil
}

// claimOnce executes the transaction of a claim. It returns the indexes of the runs whose owner lost its
// lease, and whether there are new lanes, so that it must be called again.
func (s *database) claimOnce(ctx context.Context, q *store.ClaimQuery) (claims store.ClaimResult, overtaken []int, again bool, err error) {
	arrival := time.Time{} // the zero time becomes NULL: the claim takes no runs of other versions
	plan := s.knownLanes.newClaimLaneArgs(q.Filter, q.QueueRules, q.Versions)
	if plan.hasOtherVersions {
		arrival = q.Versions.LastVersionArrivalTime()
	}
	place := make(map[uuid.UUID]int)
	err = s.runBatchOnHomeNode(ctx, "claim", func(batch *pgx.Batch) {
		batch.Queue(s.statements.claimCheckLanesAndVersions, newLaneArray(plan.gapStarts), newLaneArray(plan.gapEnds), newLaneArray(plan.claimable), pgTime(q.Now), pgTime(arrival))
		batch.Queue(s.statements.claimRuns, newLaneArray(plan.claimable),
			pgTime(q.Now), int32(q.Limit), newUUIDArray(q.OwnersOfClaimedRuns()), pgTime(q.LeaseUntil), int32(q.MaxCrashes), int32(min(q.MaxSuspects, q.Limit)), int64(q.EpochNonce),
			pgTime(q.OutageFrom), pgTime(q.OutageUntil), newBoolArray(plan.onlyStarted), newLaneArray(plan.nextLanes), newTextArray(plan.nextVersions), q.QueueRules.ClaimsOnlyUnstartedRuns())
		batch.Queue(s.statements.claimHistories, int64(maxHistoryBytesOfClaim(q)))
	}, func(res statementResults) error {
		claims.Runs, overtaken = make([]store.ClaimedRun, 0, 8), nil
		err := eachRow(res, func(rows pgx.Rows) error {
			return rows.Scan(&again, (*timeValue)(&claims.NextDue), &claims.HasNewVersions)
		})
		if err != nil {
			return err
		}
		err = eachRow(res, func(rows pgx.Rows) error {
			var passed, lost, passing bool
			var progress int32
			run, err := scanRun(rows, &passed, &lost, &progress, &passing)
			if err == nil {
				place[run.UUID] = len(claims.Runs)
				if lost {
					overtaken = append(overtaken, len(claims.Runs))
				}
				claims.Runs = append(claims.Runs, store.ClaimedRun{Run: *run, ProgressAtLastCrash: int(progress), BypassesQueue: passing})
			}
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var rest bool
			step, err := scanStep(rows, &rest)
			if err == nil {
				addStepToHistory(&claims.Runs[place[step.Run]], step, rest)
			}
			return err
		})
	})
	switch {
	case err == nil && again:
		err = s.findUnknownLanes(ctx, &plan)
	case err == nil:
		s.knownLanes.add(&plan, nil)
	}
	return claims, overtaken, again, err
}

// findUnknownLanes adds the lanes that exist in the gaps of the plan to the known ones.
func (s *database) findUnknownLanes(ctx context.Context, plan *claimLaneArgs) error {
	var found []knownLane
	err := s.runBatch(ctx, s.enginePool, "look for lanes", func(batch *pgx.Batch) {
		batch.Queue(s.statements.lanesFindUnknown, newLaneArray(plan.gapStarts), newLaneArray(plan.gapEnds))
	}, func(res statementResults) (err error) {
		found, err = scanLanes(res)
		return err
	})
	if err == nil {
		s.knownLanes.add(plan, found)
	}
	return err
}

// scanLanes scans the result of lanes_find_unknown.sql.
func scanLanes(res statementResults) (lanes []knownLane, err error) {
	err = eachRow(res, func(rows pgx.Rows) error {
		var l knownLane
		err := rows.Scan((*int64)(&l.lane), &l.queue, &l.workflow, &l.version, (*string)(&l.diverged), &l.priority)
		lanes = append(lanes, l)
		return err
	})
	return lanes, err
}

// LeasesOfClaim implements store.Store.
func (s *database) LeasesOfClaim(ctx context.Context, q store.ClaimQuery) (leases []store.Lease, err error) {
	err = s.runBatch(ctx, s.enginePool, "read back a claim", func(batch *pgx.Batch) {
		batch.Queue(s.statements.leasesOfClaim, pgTime(q.LeaseUntil), pgUUID(q.Worker), int64(q.EpochNonce))
	}, func(res statementResults) error {
		leases = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var l store.Lease
			err := rows.Scan((*uuidValue)(&l.Run), (*epochValue)(&l.Epoch))
			leases = append(leases, l)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// maxWriterWait bounds how long a takeover waits for transactions in progress. Such a transaction takes milliseconds. It is open
// longer only if its process was stopped or disconnected before it had sent all of it.
const maxWriterWait = 5 * time.Second

// unseenWriterWait is how long a takeover waits if the database does not show which transactions are in progress. It is twice the
// lock timeout of their statements.
const unseenWriterWait = 200 * time.Millisecond

// readTakenOverHistories reads the histories of claimed runs whose owner lost its lease. This owner may be alive, with
// a write in progress whose statement still saw the owner's epoch. All later writes of the owner see the
// new epoch and are fenced. readTakenOverHistories waits for the write in progress, so that its step is not executed
// again.
func (s *database) readTakenOverHistories(ctx context.Context, runs []store.ClaimedRun, overtaken []int, bytes int) error {
	for wait := firstTxRetryDelay; ; wait = min(2*wait, maxTxRetryDelay) {
		err := s.awaitStepWriters(ctx)
		if err == nil {
			// The claim's commit did not wait for writes that the former owner committed after it.
			err = s.readHistoryParts(s.roundTripFuncAwaitingStandbys(ctx), runs, overtaken, "", bytes)
		}
		// This worker already owns the runs: after an error, no worker would execute them until their leases end.
		if err == nil || !errors.Is(err, store.ErrUnavailable) || !sleepJittered(ctx, wait) {
			return err
		}
	}
}

// awaitStepWriters waits until all transactions that write steps at this moment have ended. It waits at most maxWriterWait, and at
// most half of the time that ctx leaves. If it cannot see the transactions, it waits for unseenWriterWait.
func (s *database) awaitStepWriters(ctx context.Context) error {
	patience := maxWriterWait
	if end, bounded := ctx.Deadline(); bounded {
		patience = min(patience, time.Until(end)/2)
	}
	over := time.Now().Add(patience)
	var open []string // empty on the first query, which returns all of them
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		var left []string
		blind := false
		err := s.runBatchOnHomeNode(ctx, "look for writes under way", func(batch *pgx.Batch) {
			batch.Queue(s.statements.writersInFlight, textArray{len(open), func(i int) *string { return &open[i] }})
		}, func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				var transaction pgtype.Text
				err := rows.Scan(&transaction)
				if left = append(left, transaction.String); !transaction.Valid {
					blind = true
				}
				return err
			})
		})
		if errors.Is(err, errNotAtHome) {
			err, blind, left = nil, true, []string{""}
		}
		if err != nil || len(left) == 0 || time.Now().After(over) {
			return err
		}
		if blind {
			if !sleepCtx(ctx, min(unseenWriterWait, patience)) {
				return context.Cause(ctx)
			}
			return nil
		}
		if open = left; !sleepJittered(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// EndLeases implements store.Store.
func (s *database) EndLeases(ctx context.Context, workers []uuid.UUID, q store.ClaimQuery) (int, error) {
	if len(workers) == 0 {
		return 0, nil
	}
	freed := 0
	err := s.runBatch(ctx, s.enginePool, "expire", func(batch *pgx.Batch) {
		batch.Queue(s.statements.leasesOfDeadWorkerExpire, pgTime(q.Now), pgTime(q.LeaseUntil), newUUIDArray(workers))
		batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
		batch.Queue(s.statements.workerDelete, newUUIDArray(workers), pgUUID(q.Worker))
	}, func(res statementResults) error {
		tag, err := res.Exec()
		if err != nil {
			return err
		}
		freed = int(tag.RowsAffected())
		if _, err := res.Exec(); err != nil {
			return err
		}
		_, err = res.Exec()
		return err
	})
	if err != nil {
		return 0, err
	}
	return freed, nil
}
