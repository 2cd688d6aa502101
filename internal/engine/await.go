package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	firstLook = 2 * time.Millisecond
	longLook  = 500 * time.Millisecond
	lookAtOne = 1000             // runs whose statuses are read by one query
	oneLook   = 10 * time.Second // timeout of one query
	toldAgain = time.Minute      // the time between two log lines about failed queries

	resultsAtOnce = 16 // runs whose outputs are read by one query
)

// end is the result of a wait for a run. It is the zero value if the run does not exist.
type end struct {
	run *store.Run
	err error // why the result cannot be read
}

// waiter is one caller that waits for the end of a run.
type waiter struct {
	ended    chan end
	outside  bool      // the caller is no run: it receives errors that an operator must fix
	rejected time.Time // since when the database has rejected every query for this run; zero: it does not reject them
}

// waiters holds the waiters by the run that they wait for. A run that ends in this process is delivered at
// once. One goroutine, look, reads the ends of all other runs from the database, at growing intervals. It
// exists while there are waiters.
type waiters struct {
	e       *Engine
	mu      sync.Mutex
	wanted  map[uuid.UUID][]*waiter
	looking bool
	looks   uint64
	denied  bool     // some waiters have a rejected time
	fresh   notifier // wakes the look goroutine early: a caller waits for a run that is not executed here

	logged time.Time // when a failed query was last logged; only look uses it
}

func (w *waiters) init(e *Engine) {
	w.e, w.wanted, w.fresh = e, make(map[uuid.UUID][]*waiter), newNotifier()
}

// Await waits until the run has ended, and returns the run. It returns ErrNotFound if the run does not
// exist or was deleted. While the database is unavailable it keeps waiting. It returns ErrPermission at
// once, and returns ErrRejected and ErrSchema after Config.Patience.
func (e *Engine) Await(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	if err := e.Outside(ctx, "a wait for a result"); err != nil {
		return nil, err
	}
	e.awaited.Add(1)
	defer e.awaited.Add(-1)
	defer lent(ctx)()
	if e.probe != nil {
		return e.awaitProbed(ctx, id)
	}
	return e.await(ctx, id, &waiter{outside: true})
}

func (e *Engine) await(ctx context.Context, id uuid.UUID, who *waiter) (*store.Run, error) {
	who.ended = make(chan end, 1)
	e.waiters.add(id, who)
	defer e.waiters.remove(id, who)
	select {
	case it := <-who.ended:
		if it.run == nil && it.err == nil {
			return nil, fmt.Errorf("%w: there is no run %s in this database", ErrNotFound, id)
		}
		return it.run, it.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lastLook is the timeout of the final read of a run whose caller no longer waits.
const lastLook = 250 * time.Millisecond

func (w *waiters) add(id uuid.UUID, who *waiter) {
	worker := w.e.worker()
	here := worker != nil && worker.executing(id)
	w.mu.Lock()
	w.wanted[id] = append(w.wanted[id], who)
	start := !w.looking
	w.looking = true
	w.mu.Unlock()
	switch {
	case start:
		go w.look()
	case !here:
		w.fresh.notify()
	}
}

// moved wakes the look goroutine if callers wait for the run. It is called when the run leaves this
// process and will end elsewhere, or later.
func (w *waiters) moved(id uuid.UUID) {
	w.mu.Lock()
	_, wanted := w.wanted[id]
	w.mu.Unlock()
	if wanted {
		w.fresh.notify()
	}
}

func (w *waiters) remove(id uuid.UUID, who *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.wanted[id]
	for i, c := range left {
		if c == who {
			left = append(left[:i], left[i+1:]...)
			break
		}
	}
	if len(left) == 0 {
		delete(w.wanted, id)
		if len(w.wanted) == 0 {
			w.fresh.notify() // there are no waiters left: look returns
		}
		return
	}
	w.wanted[id] = left
}

// deliver sends the ended run to those who wait for it.
func (w *waiters) deliver(run *store.Run) { w.tell(run.UUID, end{run: run}) }

func (w *waiters) tell(id uuid.UUID, it end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.wanted[id] {
		c.tell(it)
	}
}

func (c *waiter) tell(it end) {
	select {
	case c.ended <- it:
	default: // it has received an end already
	}
}

// look queries the database for ended runs until there are no waiters. It runs in a goroutine of its own.
func (w *waiters) look() {
	wait := firstLook
	for {
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-t.C:
		case <-w.fresh:
			t.Stop()
			wait = firstLook
		}
		ids, anybody := w.remote()
		if !anybody {
			return
		}
		wait = min(wait*3/2, longLook)
		for len(ids) > 0 {
			n := min(len(ids), lookAtOne)
			w.ask(ids[:n])
			ids = ids[n:]
		}
		w.mu.Lock()
		w.looks++
		w.mu.Unlock()
	}
}

// remote returns the awaited runs that this process does not execute. It includes runs that no longer
// count as executed here, since a run whose function does not return may have ended elsewhere. If there
// are no waiters, it notes that the look goroutine ends and reports false.
func (w *waiters) remote() (ids []uuid.UUID, anybody bool) {
	worker := w.e.worker()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wanted) == 0 {
		w.looking = false
		return nil, false
	}
	for id := range w.wanted {
		if worker == nil || !worker.executing(id) {
			ids = append(ids, id)
		}
	}
	return ids, true
}

// ask queries the database once for the ends of the given runs.
func (w *waiters) ask(ids []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), oneLook)
	ended, err := w.e.ended(ctx, ids)
	cancel()
	for _, it := range ended { // also the runs that were read before an error
		w.tell(it.id, end{run: it.run})
	}
	switch {
	case err == nil:
		w.answered(ids)
	case errors.Is(err, store.ErrClosed): // the store stays closed
		for _, id := range ids {
			w.tell(id, end{err: err})
		}
	case rejected(err) && !errors.Is(err, store.ErrPermission) && !errors.Is(err, store.ErrSchema) && len(ids) > 1:
		w.ask(ids[:len(ids)/2]) // the error may concern only one of the runs
		w.ask(ids[len(ids)/2:])
	case w.failed(ids, err):
		w.log(err)
	}
}

// rejected reports whether the database refused the query, and will refuse it again until somebody fixes
// the cause. All other errors pass by themselves. The contexts of the callers decide how long to wait for
// that.
func rejected(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrBadData)
}

// answered notes that the database no longer rejects queries for these runs.
func (w *waiters) answered(ids []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.denied {
		return
	}
	for _, id := range ids {
		for _, c := range w.wanted[id] {
			c.rejected = time.Time{}
		}
	}
}

// failed delivers the error to the callers that need not wait any longer, and reports whether others keep
// waiting. Waiting runs get no error: they may be unloaded from memory meanwhile, and they are held when
// the database rejects their own reads or writes.
func (w *waiters) failed(ids []uuid.UUID, err error) (others bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for _, c := range w.wanted[id] {
			if !c.outside || !rejected(err) {
				others = true
				continue
			}
			if w.denied = true; c.rejected.IsZero() {
				c.rejected = time.Now()
			}
			if errors.Is(err, store.ErrPermission) || time.Since(c.rejected) > w.e.patience() {
				c.tell(end{err: err})
				continue
			}
			others = true
		}
	}
	return others
}

// log logs, at most once a minute, that the ends of runs cannot be read.
func (w *waiters) log(err error) {
	if now := time.Now(); w.logged.IsZero() || now.Sub(w.logged) >= toldAgain {
		w.logged = now
		w.e.tel.Log.Warn("could not read the results that callers wait for; trying again", telemetry.KeyError, err)
	}
}

// endedRun is a run that has ended, without its input. run is nil if the run does not exist.
type endedRun struct {
	id  uuid.UUID
	run *store.Run
}

// ended returns those of the runs that have ended or do not exist. It first reads the statuses, and then
// the outcomes of the ended runs only. So even a large outcome is read once per waiter, at the run's end.
func (e *Engine) ended(ctx context.Context, ids []uuid.UUID) (all []endedRun, err error) {
	statuses, err := e.store.Statuses(ctx, ids)
	if err != nil {
		return nil, err
	}
	var refs []store.Ref
	for i, status := range statuses {
		switch {
		case status == 0:
			all = append(all, endedRun{id: ids[i]})
		case status.Terminal():
			refs = append(refs, store.Ref{Text: ids[i].String()})
		}
	}
	for len(refs) > 0 {
		some := refs[:min(len(refs), resultsAtOnce)]
		refs = refs[len(some):]
		runs, err := e.store.Find(ctx, some, store.WithOutcome)
		if err != nil {
			return all, err
		}
		for i, run := range runs {
			id, _ := some[i].UUID()
			all = append(all, endedRun{id, run})
		}
	}
	return all, nil
}
