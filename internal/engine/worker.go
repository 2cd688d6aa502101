package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// lastCall is how long a drain waits, after the grace period, for the steps whose contexts it has ended.
// It then abandons the remaining runs, and their later writes are fenced.
const lastCall = time.Second

// worker executes runs during one session.
type worker struct {
	e       *Engine
	id      uuid.UUID
	started time.Time
	pairs   []store.Pair
	log     *slog.Logger

	// ctx is the parent of every run's contexts. It ends with ErrShutdown after the drain's grace period.
	ctx  context.Context
	kill context.CancelCauseFunc

	hints  notifier // a run may be claimable
	freed  notifier // a slot was given back
	news   notifier // a run in memory may have a control request, or may have been woken
	failed notifier // a claim has failed, or a start of runs that this worker would own
	counts notifier // a run requests a count of its signals

	outage outage
	rests  chan struct{} // holds one element for each long history that is being read

	hearing sync.RWMutex // locked while notifications are read; a run that leaves memory holds the read lock

	mu               sync.Mutex
	suspect          *run // the suspect that is executed; nil: none; see suspect.go
	runs             map[uuid.UUID]*run
	unanswered       []store.ClaimQuery // failed claims, and failed starts of runs that this worker may own; see unanswered.go
	broken           chan error         // receives why the worker must stop; see stopFor
	parkedTooEarly   map[uuid.UUID]int  // how often runs were parked too early; see calls_after_suspension.go
	slots            int                // slots taken by runs, and by starts and claims in progress
	lent             int                // slots lent by runs that wait; see lentslot.go
	unlent           int                // runs that wait and could not lend their slots
	prefetched       []*run             // prefetched runs that wait for a slot; see prefetch.go
	prefetchReserved int                // taken places for prefetched runs: by queued runs, by claims in progress, by runs that leave
	open             bool               // the worker takes new runs
	draining         bool               // the worker takes no new runs any more
	empty            chan struct{}

	countMu   sync.Mutex
	uncounted []*run // runs whose signals are to be counted; see count.go

	turnover turnover
	ends     endings
}

func newWorker(e *Engine) *worker {
	ctx, kill := context.WithCancelCause(context.Background())
	w := &worker{
		e: e, id: store.NewUUID(0), ctx: ctx, kill: kill,
		hints: newNotifier(), freed: newNotifier(), news: newNotifier(), failed: newNotifier(), counts: newNotifier(), rests: make(chan struct{}, restsAtOnce),
		runs: make(map[uuid.UUID]*run), parkedTooEarly: make(map[uuid.UUID]int), empty: make(chan struct{}), broken: make(chan error, 1),
	}
	for _, d := range e.defs {
		w.pairs = append(w.pairs, store.Pair{Queue: d.Queue, Workflow: d.Name})
	}
	w.log = e.tel.Log.With(telemetry.KeyWorker, w.id)
	return w
}

// serve registers the worker, runs its loops until ctx ends, and drains. It returns why the worker could
// not begin, or could not continue.
func (w *worker) serve(ctx context.Context) (err error) {
	defer w.kill(ErrShutdown)
	if len(w.pairs) == 0 { // a client: it executes nothing, and is not registered
		w.log.Warn("Run was called on an engine without workflows, and executes nothing: list them in Config.Workflows, or leave Run out")
		<-ctx.Done()
		return nil
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
		return w.leave()
	}
	w.mu.Lock()
	w.open = true
	w.mu.Unlock()
	w.reportStart()

	// The loops that claim runs end with ctx. The loops that keep claimed runs end after the drain.
	keeping, stopKeeping := context.WithCancel(w.ctx)
	defer stopKeeping()
	begun, stopTaking := context.WithCancel(ctx)
	defer stopTaking()
	var taking, kept sync.WaitGroup
	taking.Go(func() { w.claimLoop(begun) })
	taking.Go(func() { w.takeoverLoop(begun) })
	taking.Go(func() { w.unexecutedLoop(begun) })
	kept.Go(func() { w.renewLoop(keeping) })
	kept.Go(func() { w.attendLoop(keeping) })
	kept.Go(func() { w.notificationLoop(keeping) })
	kept.Go(func() { w.countLoop(keeping) })
	kept.Go(func() { w.giveBackLoop(keeping) })
	kept.Go(func() { w.unreceivedLoop(keeping) })

	select {
	case <-ctx.Done():
	case err = <-w.broken:
		w.log.Error("the database is of no more use; this worker stops", telemetry.KeyError, err)
		for _, r := range w.snapshot() {
			r.lose() // no step of the run can be recorded
		}
	}
	w.close()
	w.log.Info("the worker is draining", telemetry.KeyCount, w.active())
	stopTaking()
	w.tellDraining()
	taking.Wait()
	w.drain()
	stopKeeping()
	kept.Wait()
	w.reportLastUnreceived()
	err = errors.Join(err, w.leave())
	w.log.Info("the worker has stopped", telemetry.KeyCount, w.active())
	return err
}

// stopFor makes serve stop if err means that the store will never work again.
func (w *worker) stopFor(err error) {
	if errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrClosed) {
		select {
		case w.broken <- err:
		default: // serve stops already
		}
	}
}

// register adds the worker to the registry in the database. It retries while the database is unavailable.
func (w *worker) register(ctx context.Context) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := w.e.clock.ensure(ctx, w.e.store)
		if err == nil {
			_, err = w.e.readTokenKey(ctx, false)
		}
		if err == nil {
			w.started = w.e.clock.now()
			if _, err = w.renew(ctx, nil); err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		w.log.Warn("the database is away; trying again", telemetry.KeyError, err)
		if !sleepCtx(ctx, wait/2+rand.N(wait)) {
			return ctx.Err()
		}
	}
}

// hint tells the claim loop that a run may be claimable. It does nothing for a nil worker.
func (w *worker) hint() {
	if w != nil {
		w.hints.notify()
	}
}

// own makes this worker the owner of a run that is about to be started. nonce is generated for that start
// alone.
func (w *worker) own(r *store.Run, now time.Time, nonce uint32) {
	r.Status, r.Epoch = store.Running, store.Epoch{}.Next(nonce)
	r.Owner = uuid.NullUUID{UUID: w.id, Valid: true}
	r.StartedAt, r.WakeAt = now, now.Add(w.e.cfg.Lease)
}

// disown reverts own, so that any worker may claim the run.
func disown(r *store.Run) {
	if r.Owner.Valid {
		r.Status, r.Epoch, r.Owner, r.StartedAt, r.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, r.CreatedAt
	}
}

// enter executes a run that this worker owns, in a goroutine of its own. The caller has acquired a slot
// for the run or, if ahead is true, has taken a place for a prefetched run.
func (w *worker) enter(c *store.Claimed, late time.Duration, ahead bool) {
	row := &c.Run
	r := newRun(w, c)
	w.mu.Lock()
	before := w.runs[row.UUID]
	r.idle.longer = w.patience(row.UUID)
	w.runs[row.UUID] = r
	w.suspectIf(r)
	if ahead {
		w.queue(r)
	}
	open := w.open
	w.mu.Unlock()
	if before != nil {
		before.lose() // nothing else would stop the earlier execution
	}
	if !open {
		r.suspend(suspension{cause: ErrShutdown, status: store.Pending})
	}
	go r.exec(late)
}

// left removes a run that has ended or was suspended, and releases its slot. The run calls it as its last
// action.
func (w *worker) left(r *run) {
	r.clearSuspect()
	w.forget(r)
	w.endLoan(r)
	if !r.hasSlot() {
		w.release(0, 1)
		return
	}
	w.mu.Lock()
	w.turnover.add(time.Now())
	w.mu.Unlock()
	w.release(1, 0)
}

// forget removes the run from memory, but does not release its slot.
func (w *worker) forget(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[r.row.UUID] == r { // this process may have lost the run, and claimed it again
		delete(w.runs, r.row.UUID)
	}
}

// executing reports whether the run is in this worker's memory, and is not suspended.
func (w *worker) executing(id uuid.UUID) bool {
	w.mu.Lock()
	r := w.runs[id]
	w.mu.Unlock()
	return r != nil && !r.gone()
}

// snapshot returns the runs in memory.
func (w *worker) snapshot() []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := make([]*run, 0, len(w.runs))
	for _, r := range w.runs {
		runs = append(runs, r)
	}
	return runs
}

// close makes the worker take no new runs.
func (w *worker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.draining = false, true
	w.vacated()
}

// drain suspends every run, lets running steps finish for the grace period, and then ends their contexts.
// If a function has not returned within lastCall after that, drain logs and abandons its run.
func (w *worker) drain() {
	for _, r := range w.snapshot() {
		r.suspend(suspension{cause: ErrShutdown, status: store.Pending})
	}
	if w.emptied(w.e.cfg.Grace) {
		return
	}
	w.kill(ErrShutdown)
	if w.emptied(lastCall) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCall)
	defer cancel()
	for _, r := range w.snapshot() {
		w.log.Error("a workflow function did not return after its context ended; the run is given to others",
			telemetry.KeyRun, r.row.UUID, telemetry.KeyName, DisplayRunName(&r.row), telemetry.KeyWorkflow, r.row.Workflow, telemetry.KeyStack, stackOf(r))
		r.abandon(ctx)
	}
}

func (w *worker) emptied(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-w.empty:
		return true
	case <-t.C:
		return false
	}
}

// tellDraining marks the worker in the registry as draining at once. If this fails, the next heartbeat
// does it.
func (w *worker) tellDraining() {
	if _, err := w.renew(w.ctx, nil); err != nil {
		w.log.Debug("could not tell that the worker is draining", telemetry.KeyError, err)
	}
}

// state returns the state of the worker that the registry shows.
func (w *worker) state() store.WorkerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return store.WorkerDraining
	}
	return store.WorkerRunning
}

// leave removes the worker from the registry, and releases the runs that it may still own, because the
// result of a claim may have been lost.
func (w *worker) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.e.cfg.Lease)
	defer cancel()
	w.giveBack(ctx)
	if _, err := w.e.store.Expire(ctx, []uuid.UUID{w.id}, w.query()); err != nil {
		w.log.Warn("could not sign off; the leases expire by themselves", telemetry.KeyError, err)
	}
	return nil
}

// query returns a claim query with the worker, its workflows and the times, but with a limit of zero.
func (w *worker) query() store.ClaimQuery {
	now := w.e.clock.now()
	q := store.ClaimQuery{
		Worker: w.id, Nonce: store.NewNonce(), Pairs: w.pairs, Now: now, LeaseUntil: now.Add(w.e.cfg.Lease), MaxCrashes: w.e.cfg.pauseAt(),
	}
	w.outage.excuse(&q, w.e.cfg.Lease)
	return q
}

// attendLoop keeps the worker visible to other workers, and receives hints about claimable runs and about
// notifications.
func (w *worker) attendLoop(ctx context.Context) {
	hear := func(h store.Hint) {
		if h == store.HintNotification {
			w.news.notify()
		} else {
			w.hint()
		}
	}
	if err := w.e.store.Listen(ctx, w.id, hear); err != nil && ctx.Err() == nil {
		w.stopFor(err)
		w.log.Warn("no hints and no fast takeover; polling and lease expiry do the work", telemetry.KeyError, err)
	}
}

// pause waits for d, and reports false if ctx ended first.
func sleepCtx(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
