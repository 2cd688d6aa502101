// Package retention deletes the runs, superseded generations and events that a [Policy] no longer keeps.
//
// A [Sweeper] sweeps from time to time: it reads all that has ended, a page at a time, and deletes what is due in small transactions. It
// pauses after each call, so that it uses only a small part of the database's time. Several workers may sweep at the same time: each
// one skips what another one has locked.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// Config is what a Sweeper needs of its worker.
type Config struct {
	Policy        *Policy
	Store         store.RetentionStore
	StoreIsSerial bool             // the store executes one transaction after the other
	Now           func() time.Time // returns the time of the database
	Log           *slog.Logger
	Poll          time.Duration   // the longest wait of the worker between two claims
	StopIfFatal   func(err error) // makes the worker stop if the error means that the store will never work again
}

// Sweeper deletes what its Policy no longer keeps. One goroutine executes Loop, which owns all fields.
type Sweeper struct {
	cfg                 Config
	policy              *Policy
	sweepBegan          time.Time // by the database's clock, when the sweep began
	treesPerTransaction int       // trees in the next transaction

	pauseFactor           time.Duration // for how many times the duration of each call it pauses
	targetTransactionTime time.Duration // how long a transaction should take

	deletedRunCount, deletedGenerationCount, deletedEventCount int // deleted in this sweep
	unarchivedTrees                                            int // trees that were kept because the archive returned an error
}

// NewSweeper returns a Sweeper, which makes no call before Loop is called.
func NewSweeper(cfg Config) *Sweeper {
	s := &Sweeper{cfg: cfg, policy: cfg.Policy, treesPerTransaction: firstSweepBatch, pauseFactor: sweepPauseFactor, targetTransactionTime: sweepTransactionTarget}
	if cfg.StoreIsSerial {
		s.pauseFactor, s.targetTransactionTime = serialSweepPauseFactor, serialSweepTransactionTarget
	}
	return s
}

// Loop sweeps from time to time until ctx ends. The first sweep begins at once, so that a process which lives only for a short
// time sweeps too. If the policy keeps everything, Loop returns at once.
func (s *Sweeper) Loop(ctx context.Context) {
	if !s.policy.isEnabled() {
		return
	}
	interval := min(max(s.policy.shortestPeriod()/sweepsPerRetention, minPollsPerSweep*s.cfg.Poll), maxSweepInterval)
	logged := false
	for wait := rand.N(s.cfg.Poll + 1); wakeup.SleepCtx(ctx, wait); wait = interval/2 + rand.N(interval) {
		err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, store.ErrPermission):
			if !logged {
				s.cfg.Log.Error("retention cannot delete: grant the worker's role the rights of schema.Worker, which include DELETE; everything is kept until then", telemetry.KeyError, err)
			}
			logged = true
		case err != nil:
			s.cfg.StopIfFatal(err)
			s.cfg.Log.Warn("retention could not delete everything that is due; trying again with the next sweep", telemetry.KeyError, err)
		default:
			logged = false
		}
		s.logDeleted()
	}
}

// logDeleted logs what a sweep has deleted.
func (s *Sweeper) logDeleted() {
	if s.deletedRunCount+s.deletedGenerationCount+s.deletedEventCount > 0 {
		s.cfg.Log.Info("retention deleted what is no longer kept", telemetry.KeyCount, s.deletedRunCount, telemetry.KeyGenerations, s.deletedGenerationCount, telemetry.KeyEvents, s.deletedEventCount)
	}
	s.deletedRunCount, s.deletedGenerationCount, s.deletedEventCount, s.unarchivedTrees = 0, 0, 0, 0
}

// sweep deletes everything that is due.
func (s *Sweeper) sweep(ctx context.Context) error {
	s.sweepBegan = s.cfg.Now()
	if d := s.policy.shortestRunRetention(); d > 0 {
		if err := s.sweepRuns(ctx, s.sweepBegan.Add(-d)); err != nil {
			return err
		}
	}
	if d := s.policy.Generations; d > 0 {
		if err := s.sweepGenerations(ctx, s.sweepBegan.Add(-max(d, store.MinRetention))); err != nil {
			return err
		}
	}
	if d := s.policy.Events; d > 0 {
		return s.sweepEvents(ctx, s.sweepBegan.Add(-max(d, store.MinRetention)))
	}
	return nil
}

// callAndPause makes a call, and then pauses in proportion to its duration.
func (s *Sweeper) callAndPause(ctx context.Context, call func() error) (took time.Duration, err error) {
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
func (s *Sweeper) sweepRuns(ctx context.Context, before time.Time) error {
	after := make(map[int16]uuid.UUID, store.ShardCount)
	for shard := range int16(store.ShardCount) {
		after[shard] = uuid.UUID{}
	}
	for len(after) > 0 {
		for shard, last := range after { // in random order, so that several workers seldom meet
			var page store.EndedTrees
			_, err := s.callAndPause(ctx, func() (err error) {
				page, err = s.cfg.Store.EndedTrees(ctx, store.EndedTreesQuery{Shard: shard, After: last, CreatedBefore: before, EndedBefore: before, Limit: sweepReadLimit})
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
				if ended, deletes := s.policy.deletionCutoff(r, s.sweepBegan); deletes && r.EndedAt.Before(ended) {
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
func (s *Sweeper) sweepGenerations(ctx context.Context, before time.Time) error {
	for shard := range int16(store.ShardCount) {
		q := store.OldGenerationsQuery{Shard: shard, SupersededBefore: before, Limit: sweepReadLimit}
		for {
			var page store.OldGenerations
			_, err := s.callAndPause(ctx, func() (err error) {
				page, err = s.cfg.Store.OldGenerations(ctx, q)
				return err
			})
			if err != nil {
				return fmt.Errorf("read old generations: %w", err)
			}
			var due []store.DeleteTreeRequest
			for _, g := range page.Generations {
				if s.policy.Keep[g.Workflow] != nil {
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
func (s *Sweeper) sweepEvents(ctx context.Context, before time.Time) error {
	for {
		n := 0
		_, err := s.callAndPause(ctx, func() (err error) {
			n, err = s.cfg.Store.DeleteEvents(ctx, before)
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
func (s *Sweeper) deleteTrees(ctx context.Context, due []store.DeleteTreeRequest) error {
	for len(due) > 0 {
		n := min(s.treesPerTransaction, len(due))
		d := &store.DeleteTreesRequest{Now: s.sweepBegan, Trees: s.archiveTrees(ctx, due[:n])}
		due = due[n:]
		took, err := s.callAndPause(ctx, func() error { return s.cfg.Store.DeleteTrees(ctx, d) })
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
func (s *Sweeper) archiveTrees(ctx context.Context, due []store.DeleteTreeRequest) (ready []store.DeleteTreeRequest) {
	if s.policy.Archive == nil {
		return due
	}
	for _, t := range due {
		nodes, err := s.cfg.Store.TreeToDelete(ctx, t.Root)
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
				s.cfg.Log.Warn("retention keeps a run because it could not be archived; trying again with the next sweep", telemetry.KeyRun, t.Root, telemetry.KeyError, err)
			}
		}
	}
	return ready
}

// maxLoggedUnarchivedTrees is how many trees that could not be archived a sweep logs.
const maxLoggedUnarchivedTrees = 10

// callArchive calls the user's function. A panic counts as an error.
func (s *Sweeper) callArchive(ctx context.Context, run uuid.UUID, generation int32) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the archive panicked: %v", p)
		}
	}()
	return s.policy.Archive(ctx, run, generation)
}
