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

// lastCall is how long a drain waits, after the grace period, for steps that were
// told to end. What still runs then is abandoned: its writes are fenced.
const lastCall = time.Second

// worker executes runs from the beginning of Run to its end.
type worker struct {
	e       *Engine
	id      uuid.UUID
	started time.Time
	pairs   []store.Pair
	log     *slog.Logger

	// ctx is the parent of every run's contexts; it outlives the drain's grace
	// period, and then ends with ErrShutdown.
	ctx  context.Context
	kill context.CancelCauseFunc

	hints  bell // a run may be claimable
	freed  bell // a slot was given back
	news   bell // something may be asked of a run in memory, or have come for it
	failed bell // a claim, or a start of own runs, has failed
	counts bell // signals are to be counted

	outage outage
	rests  chan struct{} // a place in it for each long history that is being read

	hearing sync.RWMutex // news are asked for; parks hold the reading side

	mu         sync.Mutex
	suspect    *run // see suspect.go
	runs       map[uuid.UUID]*run
	unanswered []store.ClaimQuery // claims, and starts of own runs, that failed; see unanswered.go
	broken     chan error         // why the worker cannot go on; see stopFor
	early      map[uuid.UUID]int  // how often runs were parked too early; see refused.go
	slots      int                // taken: by runs, and by starts and claims under way
	lent       int                // slots of runs that wait; see lentslot.go
	unlent     int                // runs that wait and could not lend theirs
	queued     []*run             // claimed ahead, and wait for a slot; see ahead.go
	ahead      int                // places ahead that are taken: by those, by claims under way, and by runs that leave
	open       bool               // new runs are taken
	draining   bool               // none are any more
	empty      chan struct{}

	countMu   sync.Mutex
	uncounted []*run // those whose signals are to be counted; see count.go

	turnover turnover
	ends     endings
}

func newWorker(e *Engine) *worker {
	ctx, kill := context.WithCancelCause(context.Background())
	w := &worker{
		e: e, id: store.NewID(0), ctx: ctx, kill: kill,
		hints: newBell(), freed: newBell(), news: newBell(), failed: newBell(), counts: newBell(), rests: make(chan struct{}, restsAtOnce),
		runs: make(map[uuid.UUID]*run), early: make(map[uuid.UUID]int), empty: make(chan struct{}), broken: make(chan error, 1),
	}
	for _, d := range e.defs {
		w.pairs = append(w.pairs, store.Pair{Queue: d.Queue, Workflow: d.Name})
	}
	w.log = e.tel.Log.With(telemetry.KeyWorker, w.id)
	return w
}

// serve registers the worker, runs its loops until ctx ends, and drains. It answers why it could
// not begin, or go on.
func (w *worker) serve(ctx context.Context) (err error) {
	defer w.kill(ErrShutdown)
	if len(w.pairs) == 0 { // a client: it executes nothing, and is no worker
		w.log.Warn("Run was called on an engine without workflows, and executes nothing: list them in Config.Workflows, or leave Run out")
		<-ctx.Done()
		return nil
	}
	if err := w.register(ctx); err != nil {
		if ctx.Err() == nil {
			return err
		}
		// Asked to stop before it began: there is nothing to drain, but its heartbeat may
		// have arrived.
		if w.started.IsZero() {
			return nil
		}
		return w.leave()
	}
	w.mu.Lock()
	w.open = true
	w.mu.Unlock()
	w.reportStart()

	// The loops that take work end with ctx; those that keep it end after the drain.
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
	kept.Go(func() { w.newsLoop(keeping) })
	kept.Go(func() { w.countLoop(keeping) })
	kept.Go(func() { w.giveBackLoop(keeping) })
	kept.Go(func() { w.unreceivedLoop(keeping) })

	select {
	case <-ctx.Done():
	case err = <-w.broken:
		w.log.Error("the database is of no more use; this worker stops", telemetry.KeyError, err)
		for _, r := range w.snapshot() {
			r.lose() // none of their steps can be recorded
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

// stopFor has serve stop for an error of the store, if it is one after which that will never
// work again.
func (w *worker) stopFor(err error) {
	if errors.Is(err, store.ErrMoved) || errors.Is(err, store.ErrClosed) {
		select {
		case w.broken <- err:
		default: // it stops already
		}
	}
}

// register tells the database of the worker, and waits for a database that is away.
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
		if !pause(ctx, wait/2+rand.N(wait)) {
			return ctx.Err()
		}
	}
}

// hint says that a run may be claimable. A nil worker does not care.
func (w *worker) hint() {
	if w != nil {
		w.hints.poke()
	}
}

// own makes the run this worker's from its very start. The nonce is drawn for that start alone.
func (w *worker) own(r *store.Run, now time.Time, nonce uint32) {
	r.Status, r.Epoch = store.Running, store.Epoch{}.Next(nonce)
	r.Owner = uuid.NullUUID{UUID: w.id, Valid: true}
	r.StartedAt, r.WakeAt = now, now.Add(w.e.cfg.Lease)
}

// disown undoes own: any worker may take the run.
func disown(r *store.Run) {
	if r.Owner.Valid {
		r.Status, r.Epoch, r.Owner, r.StartedAt, r.WakeAt = store.Pending, store.Epoch{}, uuid.NullUUID{}, time.Time{}, r.CreatedAt
	}
}

// enter executes a run that this worker owns: in a slot that was acquired for it, or, ahead of
// one, in the place that was taken for it.
func (w *worker) enter(c *store.Claimed, late time.Duration, ahead bool) {
	row := &c.Run
	r := newRun(w, c)
	w.mu.Lock()
	before := w.runs[row.ID]
	r.idle.longer = w.patience(row.ID)
	w.runs[row.ID] = r
	w.suspectIf(r)
	if ahead {
		w.queue(r)
	}
	open := w.open
	w.mu.Unlock()
	if before != nil {
		before.lose() // nobody else would tell it
	}
	if !open {
		r.suspend(suspension{cause: ErrShutdown, status: store.Pending})
	}
	go r.exec(late)
}

// left is called by a run as the last thing it does.
func (w *worker) left(r *run) {
	r.proven()
	w.forget(r)
	w.endLoan(r)
	if !r.seated() {
		w.release(0, 1)
		return
	}
	w.mu.Lock()
	w.turnover.add(time.Now())
	w.mu.Unlock()
	w.release(1, 0)
}

// forget takes the run out of memory, but for its slot.
func (w *worker) forget(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs[r.row.ID] == r { // this process may have lost the run, and claimed it again
		delete(w.runs, r.row.ID)
	}
}

// executing reports whether the run is in this worker's memory, and is to stay.
func (w *worker) executing(id uuid.UUID) bool {
	w.mu.Lock()
	r := w.runs[id]
	w.mu.Unlock()
	return r != nil && !r.gone()
}

// snapshot lists the runs in memory.
func (w *worker) snapshot() []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	runs := make([]*run, 0, len(w.runs))
	for _, r := range w.runs {
		runs = append(runs, r)
	}
	return runs
}

// close takes no new runs from now on.
func (w *worker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open, w.draining = false, true
	w.vacated()
}

// drain suspends every run, lets running steps finish for the grace period, then ends
// their contexts. A run whose function does not return even then is reported and
// given up.
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
			telemetry.KeyRun, r.row.ID, telemetry.KeyName, ShownRun(&r.row), telemetry.KeyWorkflow, r.row.Workflow, telemetry.KeyStack, stackOf(r))
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

// tellDraining has the registry show at once that the worker drains. If that fails, the next heartbeat does it.
func (w *worker) tellDraining() {
	if _, err := w.renew(w.ctx, nil); err != nil {
		w.log.Debug("could not tell that the worker is draining", telemetry.KeyError, err)
	}
}

// state is what the registry shows.
func (w *worker) state() store.WorkerState {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return store.WorkerDraining
	}
	return store.WorkerRunning
}

// leave takes the worker off the registry, and frees what it may still own: the
// answer to a claim can have been lost.
func (w *worker) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.e.cfg.Lease)
	defer cancel()
	w.giveBack(ctx)
	if _, err := w.e.store.Expire(ctx, []uuid.UUID{w.id}, w.query()); err != nil {
		w.log.Warn("could not sign off; the leases expire by themselves", telemetry.KeyError, err)
	}
	return nil
}

// query is a claim of nothing yet: who asks, for what, and when.
func (w *worker) query() store.ClaimQuery {
	now := w.e.clock.now()
	q := store.ClaimQuery{
		Worker: w.id, Nonce: store.NewNonce(), Pairs: w.pairs, Now: now, LeaseUntil: now.Add(w.e.cfg.Lease), MaxCrashes: w.e.cfg.pauseAt(),
	}
	w.outage.excuse(&q, w.e.cfg.Lease)
	return q
}

// attendLoop keeps the worker visible to others, and hears of runs to claim.
func (w *worker) attendLoop(ctx context.Context) {
	hear := func(h store.Hint) {
		if h == store.HintNotification {
			w.news.poke()
		} else {
			w.hint()
		}
	}
	if err := w.e.store.Listen(ctx, w.id, hear); err != nil && ctx.Err() == nil {
		w.stopFor(err)
		w.log.Warn("no hints and no fast takeover; polling and lease expiry do the work", telemetry.KeyError, err)
	}
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
