package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/buildversion"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/permits"
	"github.com/seed8ec063be/durable/internal/polling"
	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// drainExtraWait is how long a drain waits, after the grace period, for the steps whose contexts it has ended.
// It then abandons the remaining runs, and their later writes are fenced.
const drainExtraWait = time.Second

// worker executes runs during one workerLifetime. Each part of its state has a type with a mutex of its own. Lock order:
// ownedRunChangesMu comes before these mutexes, and no other lock is taken while one of them is held.
type worker struct {
	e       *Engine
	id      uuid.UUID
	started time.Time
	log     *slog.Logger

	workflows []string // what it executes, sorted

	// ctx is the parent of every run's contexts. It ends with ErrShutdown after the drain's grace period.
	ctx            context.Context
	endRunContexts context.CancelCauseFunc

	slots         *slots.Pool // open while the worker takes new runs
	quiet         quietState
	loadedRuns    loadedRuns
	suspectRun    atomic.Pointer[run] // the suspect that is executed; nil: none; see claim_suspect.go
	failedClaims  failedClaims
	renewalOutage renewalOutage
	failureLog    failureLog
	earlyParks    earlyParkCounts
	signalCounts  signalCountQueue
	endedRuns     endedRunsToCheckSignals

	otherWorkers polling.OtherWorkers

	claimGroup             *workerClaimGroup
	firstClaimHint         wakeup.Chan   // a run may be claimable, or other workers see this worker
	ownedRunChangesPending wakeup.Chan   // a run in memory may have a control request, or may have been woken
	ownedRunChangeHints    atomic.Uint64 // how often notifyOwnedRunChange was called; see rereadChangesOfEnteredRuns
	scheduleHints          wakeup.Chan   // a schedule was changed
	startKeyHints          wakeup.Chan   // a run that waits for its start key may have to be released, or a run that a start has replaced may have to be cancelled
	permits                *permits.Batcher
	queueAdmitter          *queues.Admitter
	lastClaimRules         lastClaimQueueRules // owned by claimLoop
	expiredRunsClaim       runsExpiredInQueueClaim
	knownVersions          knownVersions

	ownedRunChangesMu sync.RWMutex  // locked while the changes of owned runs are read; a run that leaves memory holds the read lock
	historyReadSlots  chan struct{} // holds one element for each long history that is being read
	fatalErrors       chan error    // receives why the worker must stop; see stopIfFatal
}

func newWorker(e *Engine) *worker {
	ctx, kill := context.WithCancelCause(context.Background())
	w := &worker{
		e: e, id: store.NewUUID(0), ctx: ctx, endRunContexts: kill,
		claimGroup: e.claimGroup, firstClaimHint: wakeup.NewChan(), ownedRunChangesPending: wakeup.NewChan(), scheduleHints: wakeup.NewChan(), startKeyHints: wakeup.NewChan(), historyReadSlots: make(chan struct{}, maxConcurrentHistoryReads), fatalErrors: make(chan error, 1),
		failedClaims: failedClaims{wakeLoop: wakeup.NewChan()}, signalCounts: signalCountQueue{wakeLoop: wakeup.NewChan()},
	}
	w.workflows = slices.Sorted(maps.Keys(e.workflows))
	w.log = e.telemetry.Log.With(telemetry.KeyWorker, w.id)
	w.slots = slots.NewPool(e.cfg.Concurrency, func(waiting int) {
		w.log.Warn("all runs in memory wait in steps for results of other runs, and no slot is free for those: raise Config.Concurrency, or wait outside of steps (Ctx.Child)",
			telemetry.KeyCount, waiting)
	})
	w.slots.UseFreed(w.claimGroup.slotsFreed)
	w.permits, w.queueAdmitter = w.newPermitBatcher(), w.newQueueAdmitter()
	return w
}

// serve registers the worker, runs its loops until ctx ends, and drains. It returns why the worker could
// not begin, or could not continue.
func (w *worker) serve(ctx context.Context) (err error) {
	defer w.endRunContexts(ErrShutdown)
	if len(w.workflows) == 0 { // a client: it executes nothing, and is not registered
		w.log.Warn("Run was called on an engine without workflows, and executes nothing: list them in Config.Workflows, or leave Run out")
		<-ctx.Done()
		return nil
	}
	if w.e.cfg.Version == "" {
		buildversion.NameWithHash() // computes the version, which KnownName returns from now on
	}
	if err := w.register(ctx); err != nil {
		if ctx.Err() == nil {
			return err
		}
		// ctx ended before the worker began. There is nothing to drain, but the first heartbeat may have
		// arrived.
		if w.started.IsZero() {
			return nil
		}
		return w.deregister()
	}
	later, err := w.declareQueuesWithRetry(ctx)
	if err != nil { // ctx has ended
		return w.deregister()
	}
	w.slots.Open()
	w.logWorkerStart()

	// The loops that claim runs end with ctx. The loops that keep claimed runs end after the drain.
	keeping, stopKeeping := context.WithCancel(w.ctx)
	defer stopKeeping()
	begun, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	var taking, kept sync.WaitGroup
	taking.Go(func() { w.claimLoop(begun) })
	taking.Go(func() { w.takeoverLoop(begun) })
	taking.Go(func() { w.runsWithoutWorkerLoop(begun) })
	taking.Go(func() { w.reportVersionLoop(begun) })
	taking.Go(func() { w.retryHeldRunsLoop(begun) })
	taking.Go(func() { w.resumeAfterExpiredRepairsLoop(begun) })
	taking.Go(func() { w.scheduleLoop(begun) })
	taking.Go(func() { w.queueMetricsLoop(begun) })
	taking.Go(func() { w.dueStartKeysLoop(begun) })
	taking.Go(func() { w.queueAdmitter.Loop(begun) })
	taking.Go(func() { w.newRetentionSweeper().Loop(begun) })
	taking.Go(func() { w.unusedLimitKeysLoop(begun) })
	if later {
		taking.Go(func() { w.declareQueuesLater(begun) })
	}
	kept.Go(func() { w.renewLeasesLoop(keeping) })
	kept.Go(func() { w.presenceLoop(keeping) })
	kept.Go(func() { w.ownedRunChangeLoop(keeping) })
	kept.Go(func() { w.signalCountLoop(keeping) })
	kept.Go(func() { w.permits.Loop(keeping) })
	kept.Go(func() { w.releaseFailedClaimsLoop(keeping) })
	kept.Go(func() { w.unreceivedSignalsLoop(keeping) })

	select {
	case <-ctx.Done():
	case err = <-w.fatalErrors:
		w.log.Error("the database is of no more use; this worker stops", telemetry.KeyError, err)
		for _, r := range w.loadedRuns.all() {
			r.loseOwnership() // no step of the run can be recorded
		}
	}
	w.slots.Close()
	w.log.Info("the worker is draining", telemetry.KeyCount, w.loadedRuns.count())
	stopTaking()
	w.recordDraining()
	taking.Wait()
	w.suspendRunsAndAwaitReturn()
	stopKeeping()
	kept.Wait()
	w.logUnreceivedSignalsAtStop()
	err = errors.Join(err, w.deregister())
	w.log.Info("the worker has stopped", telemetry.KeyCount, w.loadedRuns.count())
	return err
}

// stopIfFatal makes serve stop if err means that the store will never work again.
func (w *worker) stopIfFatal(err error) {
	if errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrClosed) {
		select {
		case w.fatalErrors <- err:
		default: // serve stops already
		}
	}
}

// maxClockCorrection is how far a correction of the estimate of the database's clock may go back before the clock counts as set back.
const maxClockCorrection = time.Second

// comparableStartTime returns when the worker started, for comparisons with the start times of other workers. If the start is later than
// now, the database's clock was set back since. The worker then counts as started before all others, so that its declarations do not
// replace those of workers that have started since.
func (w *worker) comparableStartTime(now time.Time) time.Time {
	if w.started.Sub(now) > maxClockCorrection {
		return time.Unix(0, 0)
	}
	return w.started
}

// register adds the worker to the registry in the database. It retries while the database is unavailable.
func (w *worker) register(ctx context.Context) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := w.e.clock.EnsureReading(ctx, w.e.store)
		if err == nil {
			_, err = w.e.readTokenSigningKey(ctx, false)
		}
		if err == nil {
			w.started = w.e.clock.Now()
			err = w.reportAndReadVersions(ctx)
		}
		if err == nil {
			if _, err = w.renewLeases(ctx, nil); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Workers that start at the same time lock the same row of their version. The lock can last long if the commit waits for a
		// standby.
		if !isOutage(err) && !errors.Is(err, store.ErrLocked) {
			return err
		}
		w.logFailure("the worker could not be registered; trying again", err)
		if !wakeup.SleepCtx(ctx, wait/2+rand.N(wait)) {
			return ctx.Err()
		}
	}
}

// wakeLoops tells the claim loop that a run may be claimable, and the admission loop that one may be due. It does
// nothing for a nil worker.
func (w *worker) wakeLoops() {
	if w != nil {
		w.hintClaim()
		w.queueAdmitter.RequestPassOverAllQueues()
	}
}

// setOwner makes this worker the owner of a run that is about to be started. The argument nonce was generated for that start only.
func (w *worker) setOwner(r *store.Run, now time.Time, nonce uint32) {
	r.Status, r.Epoch = store.Running, store.Epoch{}.Next(nonce)
	r.Owner = uuid.NullUUID{UUID: w.id, Valid: true}
	r.StartedAt, r.WakeAt = now, now.Add(w.e.cfg.Lease)
}

// clearOwner reverts setOwner, so that any worker may claim the run.
func clearOwner(r *store.Run) {
	if r.Owner.Valid {
		r.Status, r.Epoch, r.Owner, r.StartedAt, r.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, r.CreatedAt
	}
}

// startExecution executes a run that this worker owns, in a goroutine of its own. The run gets a slot that the
// caller has reserved or, if none is left, waits for a slot as a prefetched run.
func (w *worker) startExecution(c *store.ClaimedRun, late time.Duration, from *slots.Reservation) {
	r := newRun(w, c)
	r.idleTracker.minIdleTime = w.earlyParks.minIdleTime(r.row.UUID, w.e.cfg.ParkAfter)
	from.Assign(&r.slot)
	w.setSuspectRunIfCrashedOften(r)
	if before := w.loadedRuns.add(r); before != nil {
		before.loseOwnership() // nothing else would stop the earlier execution
	}
	if w.slots.IsClosed() { // the drain may have read the runs in memory before this run was added
		r.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
	}
	go r.execute(late)
}

// removeRun removes a run that has ended or was suspended, and releases its slot. The run calls it as its last
// action, and a drain calls it for a run that does not return. The second call does nothing.
func (w *worker) removeRun(r *run) {
	r.clearSuspect()
	r.noteExecutionOver()
	w.loadedRuns.remove(r)
	r.slot.Release()
	w.queueAdmitter.NoteRunLeftQueue(r.row.Queue)
}

// isExecuting reports whether the run is in this worker's memory, and is not suspended.
func (w *worker) isExecuting(id uuid.UUID) bool {
	r := w.loadedRuns.get(id)
	return r != nil && !r.isSuspended()
}

// suspendRunsAndAwaitReturn suspends every run, lets running steps finish for the grace period, and then ends their contexts.
// If a function has not returned within drainExtraWait after that, suspendRunsAndAwaitReturn logs and abandons its run.
func (w *worker) suspendRunsAndAwaitReturn() {
	for _, r := range w.loadedRuns.all() {
		r.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
	}
	if w.awaitAllSlotsFree(w.e.cfg.Grace) {
		return
	}
	w.endRunContexts(ErrShutdown)
	if w.awaitAllSlotsFree(drainExtraWait) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainExtraWait)
	defer cancel()
	for _, r := range w.loadedRuns.all() {
		w.log.Error("a workflow function did not return after its context ended; the run is given to others",
			telemetry.KeyRun, r.row.UUID, telemetry.KeyName, naming.DisplayRun(&r.row), telemetry.KeyWorkflow, r.row.Workflow, telemetry.KeyStack, goroutineStackOf(r))
		r.releaseStuck(ctx)
	}
}

// awaitAllSlotsFree waits until no run has a slot, and reports whether that happened within the given time.
func (w *worker) awaitAllSlotsFree(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-w.slots.WhenEmpty():
		return true
	case <-t.C:
		return false
	}
}

// recordDraining marks the worker in the registry as draining at once. If this fails, the next heartbeat
// does it.
func (w *worker) recordDraining() {
	if _, err := w.renewLeases(w.ctx, nil); err != nil {
		w.log.Debug("could not tell that the worker is draining", telemetry.KeyError, err)
	}
}

// registryState returns the state of the worker that the registry shows.
func (w *worker) registryState() store.WorkerState {
	if w.slots.IsClosed() {
		return store.WorkerDraining
	}
	return store.WorkerRunning
}

// deregister removes the worker from the registry, and releases the runs that it may still own, because the
// result of a claim may have been lost.
func (w *worker) deregister() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.e.cfg.Lease)
	defer cancel()
	w.releaseFailedClaims(ctx)
	if _, err := w.e.store.EndLeases(ctx, []uuid.UUID{w.id}, w.newClaimQuery()); err != nil {
		w.log.Warn("could not sign off; the leases expire by themselves", telemetry.KeyError, err)
	}
	return nil
}

// newClaimQuery returns a claim query with the worker, its filter and the times, and with a limit of zero.
func (w *worker) newClaimQuery() store.ClaimQuery {
	now := w.e.clock.Now()
	q := store.ClaimQuery{
		Worker: w.id, EpochNonce: store.NewNonce(), Filter: w.e.claimFilter, Now: now, LeaseUntil: now.Add(w.e.cfg.Lease), MaxCrashes: w.e.cfg.crashesBeforePause(),
	}
	w.renewalOutage.copyOutageToClaimQuery(&q, w.e.cfg.Lease)
	w.failedClaims.extendOutageByFailedClaims(&q)
	return q
}

// presenceLoop keeps the worker visible to other workers, and receives hints about claimable runs and about
// changes of owned runs.
func (w *worker) presenceLoop(ctx context.Context) {
	onHint := func(h store.WakeHint) {
		switch h {
		case store.HintListenBegan, store.HintListenLost:
			w.otherWorkers.SetListening(h == store.HintListenBegan)
		case store.HintOwnedRunChange:
			w.notifyOwnedRunChange()
		case store.HintAdmitted:
			w.hintClaimAfterBroadcast()
		case store.HintQueues:
			w.queueAdmitter.RequestRowsReread()
		default:
			w.hintClaimAfterBroadcast()
			w.queueAdmitter.RequestPassOverAllQueues()
		}
	}
	if err := w.e.store.Listen(ctx, w.id, onHint); err != nil && ctx.Err() == nil {
		w.stopIfFatal(err)
		w.log.Warn("no hints and no fast takeover; polling and lease expiry do the work", telemetry.KeyError, err)
	}
}

// awaitNotificationOrDue waits until n is notified, but at most for the duration wait, and not past next, a time on the database's clock.
// If next is zero, nothing is due. It also returns when ctx ends.
func (w *worker) awaitNotificationOrDue(ctx context.Context, n wakeup.Chan, wait time.Duration, next time.Time) {
	if !next.IsZero() {
		wait = min(wait, w.e.clock.Until(next))
	}
	t := time.NewTimer(max(wait, time.Millisecond))
	defer t.Stop()
	select {
	case <-n:
	case <-t.C:
	case <-ctx.Done():
	}
}
