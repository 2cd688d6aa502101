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
)

const (
	firstLook = 2 * time.Millisecond
	longLook  = 500 * time.Millisecond
	lookAtOne = 1000             // runs in one look
	oneLook   = 10 * time.Second // bounds one look

	resultsAtOnce = 16 // runs whose outputs are read together
)

// end is what became of a run that is waited for: nothing, if it does not exist.
type end struct {
	run *store.Run
	err error // the store is closed
}

// waiters holds who waits for which run's end. A run that ends in this process is
// delivered at once. For the others one goroutine, which lives while there are any,
// asks the database about all of them together, more and more rarely.
type waiters struct {
	e       *Engine
	mu      sync.Mutex
	wanted  map[uuid.UUID][]chan end
	looking bool
	looks   uint64
	fresh   bell // somebody waits for what is not executed here: look soon again
}

func (w *waiters) init(e *Engine) {
	w.e, w.wanted, w.fresh = e, make(map[uuid.UUID][]chan end), newBell()
}

// Await waits until the run has ended, and answers it. It answers ErrNotFound for a run
// that does not exist, or no longer does.
func (e *Engine) Await(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	if err := e.Outside(ctx, "a wait for a result"); err != nil {
		return nil, err
	}
	e.awaited.Add(1)
	defer e.awaited.Add(-1)
	defer lent(ctx)()
	return e.await(ctx, id)
}

func (e *Engine) await(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	ended := make(chan end, 1)
	e.waiters.add(id, ended)
	defer e.waiters.remove(id, ended)
	select {
	case it := <-ended:
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

// StateFor returns words about the run's state for the error of a caller whose context has ended, or
// nothing if the database does not tell it soon.
func (e *Engine) StateFor(ctx context.Context, id uuid.UUID) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	statuses, err := e.store.Statuses(ctx, []uuid.UUID{id})
	if err != nil || len(statuses) != 1 || statuses[0] == 0 {
		return ""
	}
	return ", which is " + statuses[0].String()
}

func (w *waiters) add(id uuid.UUID, ended chan end) {
	worker := w.e.worker()
	here := worker != nil && worker.executing(id)
	w.mu.Lock()
	w.wanted[id] = append(w.wanted[id], ended)
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

func (w *waiters) remove(id uuid.UUID, ended chan end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.wanted[id]
	for i, c := range left {
		if c == ended {
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
		select {
		case c <- it:
		default: // told already
		}
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

// ask looks once at some runs. A database that is away is asked again later: how long
// to wait is for the callers' contexts to say.
func (w *waiters) ask(ids []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), oneLook)
	defer cancel()
	ended, err := w.e.ended(ctx, ids)
	if errors.Is(err, store.ErrClosed) { // for good
		for _, id := range ids {
			w.tell(id, end{err: err})
		}
	}
	for _, it := range ended { // of those that were read before an error, too
		w.tell(it.id, end{run: it.run})
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
