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
	lookAtOne = 1000             // runs in one look
	oneLook   = 10 * time.Second // bounds one look
	toldAgain = time.Minute      // between two lines of the log about looks that fail

	resultsAtOnce = 16 // runs whose outputs are read together
)

// end is what became of a run that is waited for: nothing, if it does not exist.
type end struct {
	run *store.Run
	err error // nobody gets to know
}

// waiter is one who waits for a run's end.
type waiter struct {
	ended    chan end
	outside  bool      // it is no run: it is told of errors that somebody has to mend
	rejected time.Time // since when the database has rejected each look; zero: it answers
}

// waiters holds who waits for which run's end. A run that ends in this process is
// delivered at once. For the others one goroutine, which lives while there are any,
// asks the database about all of them together, more and more rarely.
type waiters struct {
	e       *Engine
	mu      sync.Mutex
	wanted  map[uuid.UUID][]*waiter
	looking bool
	looks   uint64
	denied  bool // some waiters were rejected
	fresh   bell // somebody waits for what is not executed here: look soon again

	logged time.Time // when the log was told of a look that failed; the goroutine's own
}

func (w *waiters) init(e *Engine) {
	w.e, w.wanted, w.fresh = e, make(map[uuid.UUID][]*waiter), newBell()
}

// Await waits until the run has ended, and returns it. It returns ErrNotFound for a run
// that does not exist, or no longer does. While the database is away it goes on waiting. It returns
// ErrPermission at once, and ErrRejected and ErrSchema after Config.Patience.
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

// lastLook bounds the look at a run whose caller does not wait any longer.
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
		w.fresh.poke()
	}
}

// moved says that a run which was executed here will end elsewhere, or later.
func (w *waiters) moved(id uuid.UUID) {
	w.mu.Lock()
	_, wanted := w.wanted[id]
	w.mu.Unlock()
	if wanted {
		w.fresh.poke()
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
			w.fresh.poke() // nobody is left: the goroutine goes
		}
		return
	}
	w.wanted[id] = left
}

// deliver tells those who wait for the run; nil says that it does not exist.
func (w *waiters) deliver(run *store.Run) { w.tell(run.ID, end{run: run}) }

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
	default: // told already
	}
}

// look asks the database until nobody waits.
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

// remote lists the awaited runs that this process is not executing, or no longer
// should: one whose function does not return may have ended elsewhere. With nobody
// waiting it signs the goroutine off.
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

// ask looks once at some runs.
func (w *waiters) ask(ids []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), oneLook)
	ended, err := w.e.ended(ctx, ids)
	cancel()
	for _, it := range ended { // of those that were read before an error, too
		w.tell(it.id, end{run: it.run})
	}
	switch {
	case err == nil:
		w.answered(ids)
	case errors.Is(err, store.ErrClosed): // for good
		for _, id := range ids {
			w.tell(id, end{err: err})
		}
	case rejected(err) && !errors.Is(err, store.ErrPermission) && !errors.Is(err, store.ErrSchema) && len(ids) > 1:
		w.ask(ids[:len(ids)/2]) // it may be for one run only
		w.ask(ids[len(ids)/2:])
	case w.failed(ids, err):
		w.log(err)
	}
}

// rejected reports whether the database has answered, and will not answer otherwise until somebody
// mends it. All else passes by itself, sooner or later: how long to wait is for the callers' contexts
// to say.
func rejected(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrBadData)
}

// answered notes that the database does not reject the look at these runs any more.
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

// failed tells the callers that need not wait any longer of the error, and reports whether anybody else
// waits on. Runs do: they leave memory while they wait, and are held by what they write or read then.
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

// log tells the log that the ends of runs cannot be read, once a minute.
func (w *waiters) log(err error) {
	if now := time.Now(); w.logged.IsZero() || now.Sub(w.logged) >= toldAgain {
		w.logged = now
		w.e.tel.Log.Warn("could not read the results that callers wait for; trying again", telemetry.KeyError, err)
	}
}

// gone is a run that has ended, without its input; nil: it does not exist.
type gone struct {
	id  uuid.UUID
	run *store.Run
}

// ended looks which of the runs have ended. It asks for their statuses, and then for what became
// of those that have: however large a run is, that is read once for each who waits, at its end.
func (e *Engine) ended(ctx context.Context, ids []uuid.UUID) (all []gone, err error) {
	statuses, err := e.store.Statuses(ctx, ids)
	if err != nil {
		return nil, err
	}
	var refs []store.Ref
	for i, status := range statuses {
		switch {
		case status == 0:
			all = append(all, gone{id: ids[i]})
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
			id, _ := some[i].ID()
			all = append(all, gone{id, run})
		}
	}
	return all, nil
}
