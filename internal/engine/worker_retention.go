package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	sweepReadLimit = 256 // runs or generations that one query of a sweep reads
	// A sweep pauses for sweepPauseFactor times the duration of each of its calls, so that it uses at most a tenth of one connection.
	// If the store executes one transaction after the other, it uses at most a sixteenth of the store's time.
	sweepPauseFactor       = 9
	serialSweepPauseFactor = 15
	// A sweep deletes so many trees in a transaction that it takes about sweepTransactionTarget.
	sweepTransactionTarget       = 20 * time.Millisecond
	serialSweepTransactionTarget = 5 * time.Millisecond // if the store executes one transaction after the other
	maxSweepBatch                = 200
	firstSweepBatch              = 8

	sweepsPerRetention = 24 // how often a worker sweeps within the shortest retention
	minPollsPerSweep   = 60 // and how many times Config.Poll, at least, are between two sweeps
	maxSweepInterval   = time.Hour
)

// retentionSweeper deletes what Config.Retention no longer keeps. Several workers do so at the same time: each one skips what
// another one has locked.
type retentionSweeper struct {
	w                   *worker
	retention           *Retention
	sweepBegan          time.Time // by the database's clock, when the sweep began
	treesPerTransaction int       // trees in the next transaction

	pauseFactor           time.Duration // for how many times the duration of each call it pauses
	targetTransactionTime time.Duration // how long a transaction should take

	deletedRunCount, deletedGenerationCount, deletedEventCount int // deleted in this sweep
	unarchivedTrees                                            int // trees that were kept because the archive returned an error
}

// retentionLoop sweeps from time to time. The first sweep begins at once, so that a process which lives only for a short
// time sweeps too.
func (w *worker) retentionLoop(ctx context.Context) {
	keep := &w.e.cfg.Retention
	if !keep.isEnabled() {
		return
	}
	interval := min(max(keep.shortestPeriod()/sweepsPerRetention, minPollsPerSweep*w.e.cfg.Poll), maxSweepInterval)
	s := &retentionSweeper{w: w, retention: keep, treesPerTransaction: firstSweepBatch, pauseFactor: sweepPauseFactor, targetTransactionTime: sweepTransactionTarget}
	if _, serial := w.e.rawStore.(store.SerialCommitter); serial {
		s.pauseFactor, s.targetTransactionTime = serialSweepPauseFactor, serialSweepTransactionTarget
	}
	logged := false
	for wait := rand.N(w.e.cfg.Poll + 1); wakeup.SleepCtx(ctx, wait); wait = interval/2 + rand.N(interval) {
		err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, store.ErrPermission):
			if !logged {
				w.log.Error("retention cannot delete: grant the worker's role the rights of schema.Worker, which include DELETE; everything is kept until then", telemetry.KeyError, err)
			}
			logged = true
		case err != nil:
			w.stopIfFatal(err)
			w.log.Warn("retention could not delete everything that is due; trying again with the next sweep", telemetry.KeyError, err)
		default:
			logged = false
		}
		s.logDeleted()
	}
}

// logDeleted logs what a sweep has deleted.
func (s *retentionSweeper) logDeleted() {
	if s.deletedRunCount+s.deletedGenerationCount+s.deletedEventCount > 0 {
		s.w.log.Info("retention deleted what is no longer kept", telemetry.KeyCount, s.deletedRunCount, telemetry.KeyGenerations, s.deletedGenerationCount, telemetry.KeyEvents, s.deletedEventCount)
	}
	s.deletedRunCount, s.deletedGenerationCount, s.deletedEventCount, s.unarchivedTrees = 0, 0, 0, 0
}

// sweep deletes everything that is due.
func (s *retentionSweeper) sweep(ctx context.Context) error {
	s.sweepBegan = s.w.e.clock.Now()
	if d := s.retention.shortestRunRetention(); d > 0 {
		if err := s.sweepRuns(ctx, s.sweepBegan.Add(-d)); err != nil {
			return err
		}
	}
	if d := s.retention.Generations; d > 0 {
		if err := s.sweepGenerations(ctx, s.sweepBegan.Add(-max(d, store.MinRetention))); err != nil {
			return err
		}
	}
	if d := s.retention.Events; d > 0 {
		return s.sweepEvents(ctx, s.sweepBegan.Add(-max(d, store.MinRetention)))
	}
	return nil
}

// callAndPause makes a call, and then pauses in proportion to its duration.
func (s *retentionSweeper) callAndPause(ctx context.Context, call func() error) (took time.Duration, err error) {
	began := time.Now()
	err = call()
	took = time.Since(began)
	if err == nil && !wakeup.SleepCtx(ctx, s.pauseFactor*took) {
		err = context.Cause(ctx)
	}
	return took, err
}

// sweepRuns reads all runs that were created before the given time, in the order of their creation, and deletes the trees
// that are due. It reads a part of each shard in turn, so that the rows that it deletes lie close together in the database.
func (s *retentionSweeper) sweepRuns(ctx context.Context, before time.Time) error {
	after := make(map[int16]uuid.UUID, store.ShardCount)
	for shard := range int16(store.ShardCount) {
		after[shard] = uuid.UUID{}
	}
	for len(after) > 0 {
		for shard, last := range after { // in random order, so that several workers seldom meet
			var page store.EndedTrees
			_, err := s.callAndPause(ctx, func() (err error) {
				page, err = s.w.e.store.EndedTrees(ctx, store.EndedTreesQuery{Shard: shard, After: last, CreatedBefore: before, EndedBefore: before, Limit: sweepReadLimit})
				return err
			})
			if err != nil {
				return fmt.Errorf("read runs that ended: %w", err)
			}
			if after[shard] = page.Next; page.Next == (uuid.UUID{}) {
				delete(after, shard)
			}
			var due []store.DeleteTreeRequest
			for i := range page.Roots {
				r := &page.Roots[i]
				if ended, deletes := s.retention.deletionCutoff(r, s.sweepBegan); deletes && r.EndedAt.Before(ended) {
					due = append(due, store.DeleteTreeRequest{Root: r.UUID, Epoch: r.Epoch, EndedBefore: ended})
				}
			}
			if err := s.deleteTrees(ctx, due); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepGenerations deletes generations that were superseded before the given time.
func (s *retentionSweeper) sweepGenerations(ctx context.Context, before time.Time) error {
	for shard := range int16(store.ShardCount) {
		q := store.OldGenerationsQuery{Shard: shard, SupersededBefore: before, Limit: sweepReadLimit}
		for {
			var page store.OldGenerations
			_, err := s.callAndPause(ctx, func() (err error) {
				page, err = s.w.e.store.OldGenerations(ctx, q)
				return err
			})
			if err != nil {
				return fmt.Errorf("read old generations: %w", err)
			}
			var due []store.DeleteTreeRequest
			for _, g := range page.Generations {
				if s.retention.Keep[g.Workflow] != nil {
					due = append(due, store.DeleteTreeRequest{Root: g.ArchiveID, EndedBefore: before})
				}
			}
			if err := s.deleteTrees(ctx, due); err != nil {
				return err
			}
			if q.AfterRun, q.AfterNumber = page.NextRun, page.NextNumber; q.AfterRun == (uuid.UUID{}) {
				break
			}
		}
	}
	return nil
}

// sweepEvents deletes events from the oldest one on.
func (s *retentionSweeper) sweepEvents(ctx context.Context, before time.Time) error {
	for {
		n := 0
		_, err := s.callAndPause(ctx, func() (err error) {
			n, err = s.w.e.store.DeleteEvents(ctx, before)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete events: %w", err)
		}
		if s.deletedEventCount += n; n == 0 {
			return nil
		}
	}
}

// deleteTrees deletes trees, several in each transaction. A tree that cannot be deleted now is skipped.
func (s *retentionSweeper) deleteTrees(ctx context.Context, due []store.DeleteTreeRequest) error {
	for len(due) > 0 {
		n := min(s.treesPerTransaction, len(due))
		d := &store.DeleteTreesRequest{Now: s.sweepBegan, Trees: s.archiveTrees(ctx, due[:n])}
		due = due[n:]
		took, err := s.callAndPause(ctx, func() error { return s.w.e.store.DeleteTrees(ctx, d) })
		if err != nil {
			return fmt.Errorf("delete runs: %w", err)
		}
		for i := range d.Trees {
			if t := &d.Trees[i]; t.Outcome == store.Written {
				s.deletedRunCount += t.DeletedRunCount
				s.deletedGenerationCount += t.DeletedGenerationCount
			}
		}
		switch {
		case took > 2*s.targetTransactionTime:
			s.treesPerTransaction = max(1, s.treesPerTransaction/2)
		case took < s.targetTransactionTime:
			s.treesPerTransaction = min(maxSweepBatch, 2*s.treesPerTransaction)
		}
	}
	return nil
}

// archiveTrees returns those of the trees that the archive has, with exactly the runs that it has. Without an archive it returns all.
func (s *retentionSweeper) archiveTrees(ctx context.Context, due []store.DeleteTreeRequest) (ready []store.DeleteTreeRequest) {
	if s.retention.Archive == nil {
		return due
	}
	for _, t := range due {
		nodes, err := s.w.e.store.TreeToDelete(ctx, t.Root)
		if err == nil {
			plan := t.Plan(nodes, s.sweepBegan, func(uuid.UUID) bool { return true })
			if t.Outcome != store.Written {
				continue
			}
			t.DeletableUUIDs = make(map[uuid.UUID]bool, len(nodes))
			for _, run := range plan.Runs {
				if t.DeletableUUIDs[run] = true; err == nil {
					err = s.callArchive(ctx, run, 0)
				}
			}
			for _, g := range plan.Generations {
				if t.DeletableUUIDs[g.UUID] = true; err == nil {
					err = s.callArchive(ctx, g.Parent.UUID, g.Generation)
				}
			}
		}
		switch {
		case err == nil:
			ready = append(ready, t)
		case ctx.Err() != nil:
			return nil
		default:
			if s.unarchivedTrees++; s.unarchivedTrees <= maxLoggedUnarchivedTrees {
				s.w.log.Warn("retention keeps a run because it could not be archived; trying again with the next sweep", telemetry.KeyRun, t.Root, telemetry.KeyError, err)
			}
		}
	}
	return ready
}

// maxLoggedUnarchivedTrees is how many trees that could not be archived a sweep logs.
const maxLoggedUnarchivedTrees = 10

// callArchive calls the user's function. A panic counts as an error.
func (s *retentionSweeper) callArchive(ctx context.Context, run uuid.UUID, generation int32) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the archive panicked: %v", p)
		}
	}()
	return s.retention.Archive(ctx, run, generation)
}
