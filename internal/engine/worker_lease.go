package engine

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// deadWorkerQueryInterval is the shortest time between two queries for dead workers, and the time after which a query that has found a
// dead worker is repeated. A worker counts as dead only if two queries in a row report it, because its connection may just be reopening.
const deadWorkerQueryInterval = 120 * time.Millisecond

// deadWorkerReExpireDelay is how long takeoverLoop waits before it expires the runs of a dead worker once more, if the
// worker is still in the registry. The heartbeat of the dead worker is then so old that the worker is removed from the registry.
const deadWorkerReExpireDelay = 2 * time.Minute

// maxLeaseEndedByTakeover limits which leases a takeover ends. A dead worker's lease that lasts longer than this, and
// longer than the leases of this worker, expires by itself.
const maxLeaseEndedByTakeover = time.Minute

// renewLeasesLoop renews the leases of the runs in memory, three times per lease duration. If a lease cannot be renewed,
// renewLeasesLoop suspends the run when the lease ends by this process's own clock, even if the database is available again later.
// The worker owns its goroutine.
func (w *worker) renewLeasesLoop(ctx context.Context) {
	every := w.e.cfg.Lease / 3
	wait := every
	for wakeup.SleepCtx(ctx, w.timeUntilNextHeartbeat(wait, w.loadedRuns.all())) {
		held := w.loadedRuns.all()
		w.loseRunsWithExpiredLease(held)
		busy, err := w.renewLeases(ctx, held)
		if ctx.Err() != nil {
			return
		}
		wait = every
		w.notifyOwnedRunChange() // counts as a hint: without notifications, nothing else tells of a cancel
		if err != nil {
			w.stopIfFatal(err)
			w.logFailure("could not renew leases; trying again", err)
		}
		if err != nil || busy {
			wait = every / 8
		}
		w.loseRunsWithExpiredLease(held)
	}
}

// timeUntilNextHeartbeat returns how long to wait for the next heartbeat: about the given time, and not past the end of a lease. If the store
// sends the heartbeats of several workers together, a worker without runs waits for the next multiple of that time, as the other workers of
// its process do.
func (w *worker) timeUntilNextHeartbeat(every time.Duration, held []*run) time.Duration {
	if s, together := w.e.rawStore.(store.HeartbeatSharer); together && len(held) == 0 {
		left := every - (time.Duration(time.Now().UnixNano())+s.HeartbeatPhase())%every
		if left < every/4 {
			left += every // the last heartbeat was a short time ago
		}
		return left
	}
	return min(every-every/8+rand.N(every/4), w.timeUntilLeaseEnds(held))
}

// timeUntilLeaseEnds returns the time until the first of the leases that have not ended yet ends.
func (w *worker) timeUntilLeaseEnds(held []*run) time.Duration {
	first, now := w.e.cfg.Lease, w.e.clock.Now()
	for _, r := range held {
		if left := r.leaseEndTime().Sub(now); left > 0 {
			first = min(first, left)
		}
	}
	return first
}

// loseRunsWithExpiredLease suspends the runs whose leases have ended.
func (w *worker) loseRunsWithExpiredLease(held []*run) {
	now := w.e.clock.Now()
	for _, r := range held {
		if !now.Before(r.leaseEndTime()) {
			r.loseOwnership()
		}
	}
}

// renewLeases sends one heartbeat. It renews the leases that are older than a quarter of their duration, which
// includes all leases that the previous regular heartbeat renewed, even with jitter. It reports whether
// some leases could not be renewed because other transactions have locked their rows.
func (w *worker) renewLeases(ctx context.Context, held []*run) (busy bool, err error) {
	cfg := &w.e.cfg
	// The heartbeat is not cancelled with ctx: if it were cut off in flight, it could arrive after the
	// worker's deregistration.
	//
	// Its timeout is the end of the first lease: if it has not renewed that lease by then, the run of the lease must be suspended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(cfg.Lease/3, w.timeUntilLeaseEnds(held)))
	defer cancel()
	now := w.e.clock.Now()
	until, soon := now.Add(cfg.Lease), now.Add(cfg.Lease/3)
	due := make([]store.Lease, 0, len(held))
	kept := make([]*run, 0, len(held))
	for _, r := range held {
		if r.leaseEndTime().Sub(now) < cfg.Lease*3/4 {
			due = append(due, store.Lease{Run: r.row.UUID, Epoch: r.row.Epoch})
			kept = append(kept, r)
		}
	}
	quiet, change := w.quiet.get()
	asked := time.Now()
	pulse, err := w.e.store.RenewLeases(ctx, store.Heartbeat{
		Worker: store.Worker{
			ID: w.id, Name: cfg.Name, Version: w.e.programVersion(),
			Capacity: int32(cfg.Concurrency), ActiveRuns: int32(w.loadedRuns.count()), State: w.registryState(), StartedAt: w.started,
			Workflows: namesUnlessTooMany(w.workflows), Queues: namesUnlessTooMany(w.e.cfg.Queues), SchemaVersion: store.SchemaVersion,
			Quiet: quiet, LastChange: change, ClockAhead: asked.Sub(now).Truncate(time.Microsecond),
		},
		Leases: due, LeaseUntil: until,
	})
	if err != nil {
		w.renewalOutage.noteFailure()
		return false, err
	}
	w.renewalOutage.noteHeartbeat(now, w.e.clock.Now(), cfg.Lease)
	w.logEndOfOutage()
	w.e.counters.heartbeats.Add(1)
	w.e.counters.renewedLeases.Add(int64(len(due) - len(pulse.LostRuns) - len(pulse.LockedRuns)))
	w.e.clock.AddReading(pulse.Now, asked)
	w.setQuiet(&pulse)
	if pulse.Warning != "" {
		w.log.Warn("the store works with restrictions", telemetry.KeyReason, pulse.Warning)
	}
	for i := range pulse.DatabaseRewinds {
		w.logDatabaseRewind(&pulse.DatabaseRewinds[i])
	}
	var lost []*run
	for _, r := range kept {
		switch id := r.row.UUID; {
		case slices.Contains(pulse.LostRuns, id):
			lost = append(lost, r)
		case !slices.Contains(pulse.LockedRuns, id):
			r.extendLease(until)
		case r.leaseEndTime().Before(soon): // no worker can claim the run as long as its row is locked
			r.extendLease(soon)
		}
	}
	w.suspendLostRuns(ctx, lost)
	return len(pulse.LockedRuns) > 0, nil
}

// maxLoggedLostRuns is the maximum number of runs that logDatabaseRewind logs by name.
const maxLoggedLostRuns = 100

// logDatabaseRewind logs that the database continues from another point of its history, and which acknowledged
// writes were lost.
func (w *worker) logDatabaseRewind(r *store.DatabaseRewind) {
	w.log.Warn("the database goes on from another point of its history: a standby was promoted, or it was restored",
		telemetry.KeyReason, "was at "+r.PositionBefore+", is at "+r.PositionAfter, telemetry.KeyCount, r.OwnedRunCount)
	for i, run := range r.LostRuns {
		if i == maxLoggedLostRuns {
			w.log.Error("the database lacks what was acknowledged of more runs; they were released as well", telemetry.KeyCount, len(r.LostRuns)-i)
			break
		}
		if run.RunMissing {
			w.log.Error("the database lacks a run whose start was acknowledged", telemetry.KeyRun, run.UUID, telemetry.KeyName, run.Name)
			continue
		}
		names := make([]string, len(run.MissingSteps))
		for j, name := range run.MissingSteps {
			names[j] = naming.Display(name)
		}
		w.log.Error("the database lacks checkpoints that were acknowledged; the run was released, and is replayed without them",
			telemetry.KeyRun, run.UUID, telemetry.KeyName, run.Name, telemetry.KeyCount, len(names), telemetry.KeyStep, names)
	}
}

// takeoverLoop queries for workers whose process is known to be gone, and makes their runs claimable at
// once. Without it their leases would expire later, with the same result. The worker owns its goroutine.
func (w *worker) takeoverLoop(ctx context.Context) {
	suspects := make(map[uuid.UUID]bool)
	expired := make(map[uuid.UUID]time.Time)
	wait := deadWorkerQueryInterval
	for wakeup.SleepCtx(ctx, wait-wait/8+rand.N(wait/4)) {
		peers, err := w.e.store.DeadWorkers(ctx, w.id, slices.Collect(maps.Keys(expired)))
		if err != nil {
			wait = min(2*wait, w.e.cfg.Lease/2)
			continue
		}
		w.otherWorkers.RecordPeers(&peers)
		wait = w.otherWorkers.DeadWorkerCheckInterval(deadWorkerQueryInterval)
		var sure []uuid.UUID
		seen := make(map[uuid.UUID]bool, len(peers.Dead))
		for _, id := range peers.Dead {
			seen[id] = true
			if time.Since(expired[id]) <= deadWorkerReExpireDelay {
				continue
			}
			wait = deadWorkerQueryInterval // a second query confirms the dead worker, and may find further ones
			if suspects[id] {
				sure = append(sure, id)
			}
		}
		suspects = seen
		for id := range expired {
			if !seen[id] {
				delete(expired, id)
			}
		}
		if len(sure) == 0 {
			continue
		}
		q := w.newClaimQuery()
		q.LeaseUntil = q.Now.Add(max(w.e.cfg.Lease, maxLeaseEndedByTakeover)) // the leases of those workers may be longer than ours
		if q.OutageFrom.Before(q.Now) && q.LeaseEndedInOutage(q.Now) {
			q.Now = q.OutageFrom // so that the detected death counts as a crash although it happened in an outage
		}
		freed, err := w.e.store.EndLeases(ctx, sure, q)
		if err != nil {
			w.logFailure("could not take over the runs of dead workers; trying again", err)
			continue
		}
		for _, id := range sure {
			expired[id] = time.Now()
		}
		if freed > 0 {
			w.log.Info("took over from dead workers", telemetry.KeyCount, freed)
			w.wakeLoops()
		}
	}
}
