// Package results waits for the ends of runs, for callers that need the result of a run that may be executed
// in any process. The engine has one [Waiters]. Calls that wait for a result, and runs that wait for their
// children, wait here. The engine delivers the ends of the runs that it executes itself.
package results

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
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
)

// Host is what Waiters need to know from the engine.
type Host interface {
	// Executing reports whether this process executes the run, and will deliver its end.
	Executing(id uuid.UUID) bool
	// Patience returns how long a caller waits although the database rejects the queries for its run.
	Patience() time.Duration
}

// end is the result of a wait for a run. It is the zero value if the run does not exist.
type end struct {
	run *store.Run
	err error // why the result cannot be read
}

// waiter is one caller that waits for the end of a run.
type waiter struct {
	ended    chan end
	query    uint64    // the number of the last query that began before the wait, which may have read an end before a repair
	outside  bool      // the caller is no run: it receives errors that an operator must fix
	rejected time.Time // since when the database has rejected every query for this run; zero: it does not reject them
}

// Waiters holds the waiters by the run that they wait for. A run that ends in this process is delivered at
// once. One goroutine, look, reads the ends of all other runs from the database, at growing intervals. It
// exists while there are waiters.
type Waiters struct {
	store Reader
	host  Host
	log   *slog.Logger
	fresh chan struct{} // has capacity one; a value wakes the look goroutine early

	mu      sync.Mutex
	wanted  map[uuid.UUID][]*waiter
	looking bool
	looks   uint64
	query   uint64 // the number of the last query that began
	denied  bool   // some waiters have a rejected time

	logged time.Time // when a failed query was last logged; only look uses it
}

// New returns Waiters without any waiter.
func New(s Reader, host Host, log *slog.Logger) *Waiters {
	return &Waiters{store: s, host: host, log: log, fresh: make(chan struct{}, 1), wanted: make(map[uuid.UUID][]*waiter)}
}

// Await waits until the run has ended, and returns it, or nil if the run does not exist. While the database
// is unavailable it keeps waiting. outside says that the caller is no run: it gets store.ErrPermission at
// once, and store.ErrRejected and store.ErrSchema after the host's patience.
func (w *Waiters) Await(ctx context.Context, id uuid.UUID, outside bool) (*store.Run, error) {
	who := &waiter{ended: make(chan end, 1), outside: outside}
	w.add(id, who)
	defer w.remove(id, who)
	select {
	case it := <-who.ended:
		return it.run, it.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *Waiters) add(id uuid.UUID, who *waiter) {
	here := w.host.Executing(id)
	w.mu.Lock()
	who.query = w.query
	w.wanted[id] = append(w.wanted[id], who)
	start := !w.looking
	w.looking = true
	w.mu.Unlock()
	switch {
	case start:
		go w.look()
	case !here:
		w.Recheck()
	}
}

// Recheck makes the look goroutine, if there is one, query the database now.
func (w *Waiters) Recheck() {
	select {
	case w.fresh <- struct{}{}:
	default:
	}
}

// Looks returns how often the database was queried. looking is false if nobody waits for a result.
func (w *Waiters) Looks() (looks uint64, looking bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, w.looking
}

// Moved wakes the look goroutine if callers wait for the run. It is called when the run leaves this
// process and will end elsewhere, or later.
func (w *Waiters) Moved(id uuid.UUID) {
	w.mu.Lock()
	_, wanted := w.wanted[id]
	w.mu.Unlock()
	if wanted {
		w.Recheck()
	}
}

func (w *Waiters) remove(id uuid.UUID, who *waiter) {
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
			w.Recheck() // there are no waiters left: look returns
		}
		return
	}
	w.wanted[id] = left
}

// Deliver sends the ended run to those who wait for it.
func (w *Waiters) Deliver(run *store.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.wanted[run.UUID] {
		c.tell(end{run: run})
	}
}

// tellQueried sends what the current query has read to those who waited before it began. Somebody who waits since then may have
// repaired the run before.
func (w *Waiters) tellQueried(id uuid.UUID, it end) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.wanted[id] {
		if c.query < w.query {
			c.tell(it)
		}
	}
}

func (c *waiter) tell(it end) {
	select {
	case c.ended <- it:
	default: // it has received an end already
	}
}

// look queries the database for ended runs until there are no waiters. It runs in a goroutine of its own.
func (w *Waiters) look() {
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
func (w *Waiters) remote() (ids []uuid.UUID, anybody bool) {
	w.mu.Lock()
	ids = slices.Collect(maps.Keys(w.wanted))
	w.looking = len(ids) > 0
	w.query++
	w.mu.Unlock()
	return slices.DeleteFunc(ids, w.host.Executing), len(ids) > 0
}

// ask queries the database once for the ends of the given runs.
func (w *Waiters) ask(ids []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), oneLook)
	ended, err := Ended(ctx, w.store, ids)
	cancel()
	for _, it := range ended { // also the runs that were read before an error
		w.tellQueried(it.ID, end{run: it.Run})
	}
	switch {
	case err == nil:
		w.noteQuerySucceeded(ids)
	case errors.Is(err, store.ErrClosed): // the store stays closed
		for _, id := range ids {
			w.tellQueried(id, end{err: err})
		}
	case rejected(err) && !errors.Is(err, store.ErrPermission) && !errors.Is(err, store.ErrSchema) && len(ids) > 1:
		w.ask(ids[:len(ids)/2]) // the error may concern only one of the runs
		w.ask(ids[len(ids)/2:])
	case w.failed(ids, err):
		w.report(err)
	}
}

// rejected reports whether the database refused the query, and will refuse it again until somebody fixes
// the cause. All other errors pass by themselves. The contexts of the callers decide how long to wait for
// that.
func rejected(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrBadData)
}

// noteQuerySucceeded notes that the database no longer rejects queries for these runs.
func (w *Waiters) noteQuerySucceeded(ids []uuid.UUID) {
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
func (w *Waiters) failed(ids []uuid.UUID, err error) (others bool) {
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
			if errors.Is(err, store.ErrPermission) || time.Since(c.rejected) > w.host.Patience() {
				c.tell(end{err: err})
				continue
			}
			others = true
		}
	}
	return others
}

// report logs, at most once a minute, that the ends of runs cannot be read.
func (w *Waiters) report(err error) {
	if now := time.Now(); w.logged.IsZero() || now.Sub(w.logged) >= toldAgain {
		w.logged = now
		w.log.Warn("could not read the results that callers wait for; trying again", telemetry.KeyError, err)
	}
}
