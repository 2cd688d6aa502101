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
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	firstQueryDelay    = 2 * time.Millisecond
	maxQueryDelay      = 500 * time.Millisecond
	runsPerQuery       = 1000             // runs whose statuses are read by one query
	queryTimeout       = 10 * time.Second // timeout of one query
	failureLogInterval = time.Minute      // the time between two log lines about failed queries
)

// Host is what Waiters need to know from the engine.
type Host interface {
	// IsExecuting reports whether this process executes the run, and will deliver its end.
	IsExecuting(id uuid.UUID) bool
	// Patience returns how long a caller waits although the database rejects the queries for its run.
	Patience() time.Duration
}

// awaitResult is the result of a wait for a run. It is the zero value if the run does not exist.
type awaitResult struct {
	run *store.Run
	err error // why the result cannot be read
}

// waiter is one caller that waits for the end of a run.
type waiter struct {
	resultChan    chan awaitResult
	queryAtStart  uint64    // the number of the last query that began before the wait, which may have read an end before a repair
	isOutsideRun  bool      // the caller is no run: it receives errors that an operator must fix
	rejectedSince time.Time // since when the database has rejected every query for this run; zero: it does not reject them
	count         *Count    // nil: the waiter is not counted, or has its result
}

// Count is the number of waiters without a result, and how often the number has changed. The zero value is ready to use.
type Count struct {
	waiting atomic.Int32
	changes atomic.Uint64
}

// Read returns the number of waiters without a result. changes tells whether others began or ended their wait since an earlier Read.
func (c *Count) Read() (waiting int, changes uint64) {
	return int(c.waiting.Load()), c.changes.Load()
}

func (c *Count) add(n int32) {
	c.waiting.Add(n)
	c.changes.Add(1)
}

// Waiters holds the waiters by the run that they wait for. A run that ends in this process is delivered at
// once. One goroutine, look, reads the ends of all other runs from the database, at growing intervals. It
// exists while there are waiters.
type Waiters struct {
	store    Reader
	host     Host
	log      *slog.Logger
	wakeLoop chan struct{} // has capacity one; a value wakes the look goroutine early

	mu            sync.Mutex
	waitersByRun  map[uuid.UUID][]*waiter
	loopIsRunning bool
	queryCount    uint64
	lastQuery     uint64 // the number of the last query that began
	hasRejections bool   // some waiters have a rejected time

	lastLoggedAt time.Time // when a failed query was last logged; only look uses it
}

// New returns Waiters without any waiter.
func New(s Reader, host Host, log *slog.Logger) *Waiters {
	return &Waiters{store: s, host: host, log: log, wakeLoop: make(chan struct{}, 1), waitersByRun: make(map[uuid.UUID][]*waiter)}
}

// Await waits until the run has ended, and returns it, or nil if the run does not exist. While the database
// is unavailable it keeps waiting. outside says that the caller is no run: it gets store.ErrPermission at
// once, and store.ErrRejected and store.ErrSchema after the host's patience. count, if it is not nil, is increased until the result
// is there; the caller may go on later.
func (w *Waiters) Await(ctx context.Context, id uuid.UUID, isOutsideRun bool, count *Count) (*store.Run, error) {
	who := &waiter{resultChan: make(chan awaitResult, 1), isOutsideRun: isOutsideRun, count: count}
	w.addWaiter(id, who)
	defer w.removeWaiter(id, who)
	select {
	case it := <-who.resultChan:
		return it.run, it.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *Waiters) addWaiter(id uuid.UUID, who *waiter) {
	here := w.host.IsExecuting(id)
	if who.count != nil {
		who.count.add(1)
	}
	w.mu.Lock()
	who.queryAtStart = w.lastQuery
	w.waitersByRun[id] = append(w.waitersByRun[id], who)
	start := !w.loopIsRunning
	w.loopIsRunning = true
	w.mu.Unlock()
	switch {
	case start:
		go w.queryLoop()
	case !here:
		w.QueryNow()
	}
}

// QueryNow makes the look goroutine, if there is one, query the database now.
func (w *Waiters) QueryNow() {
	select {
	case w.wakeLoop <- struct{}{}:
	default:
	}
}

// QueryCount returns how often the database was queried. looking is false if nobody waits for a result.
func (w *Waiters) QueryCount() (looks uint64, looking bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queryCount, w.loopIsRunning
}

// NoteRunLeft wakes the look goroutine if callers wait for the run. It is called when the run leaves this
// process and will end elsewhere, or later.
func (w *Waiters) NoteRunLeft(id uuid.UUID) {
	w.mu.Lock()
	_, wanted := w.waitersByRun[id]
	w.mu.Unlock()
	if wanted {
		w.QueryNow()
	}
}

func (w *Waiters) removeWaiter(id uuid.UUID, who *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	who.uncount()
	left := w.waitersByRun[id]
	for i, c := range left {
		if c == who {
			left = append(left[:i], left[i+1:]...)
			break
		}
	}
	if len(left) == 0 {
		delete(w.waitersByRun, id)
		if len(w.waitersByRun) == 0 {
			w.QueryNow() // there are no waiters left: look returns
		}
		return
	}
	w.waitersByRun[id] = left
}

// Deliver sends the ended run to those who wait for it.
func (w *Waiters) Deliver(run *store.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waitersByRun[run.UUID] {
		c.deliver(awaitResult{run: run})
	}
}

// deliverQueried sends what the current query has read to those who waited before it began. Somebody who waits since then may have
// repaired the run before.
func (w *Waiters) deliverQueried(id uuid.UUID, it awaitResult) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.waitersByRun[id] {
		if c.queryAtStart < w.lastQuery {
			c.deliver(it)
		}
	}
}

func (c *waiter) deliver(it awaitResult) {
	select {
	case c.resultChan <- it:
		c.uncount()
	default: // it has received an end already
	}
}

// uncount takes the waiter out of its count, once. The mutex of the Waiters is held.
func (c *waiter) uncount() {
	if c.count != nil {
		c.count.add(-1)
		c.count = nil
	}
}

// queryLoop queries the database for ended runs until there are no waiters. It runs in a goroutine of its own.
func (w *Waiters) queryLoop() {
	wait := firstQueryDelay
	for {
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-t.C:
		case <-w.wakeLoop:
			t.Stop()
			wait = firstQueryDelay
		}
		ids, anybody := w.beginQuery()
		if !anybody {
			return
		}
		wait = min(wait*3/2, maxQueryDelay)
		for len(ids) > 0 {
			n := min(len(ids), runsPerQuery)
			w.queryEnds(ids[:n])
			ids = ids[n:]
		}
		w.mu.Lock()
		w.queryCount++
		w.mu.Unlock()
	}
}

// beginQuery returns the awaited runs that this process does not execute. It includes runs that no longer
// count as executed here, since a run whose function does not return may have ended elsewhere. If there
// are no waiters, it notes that the look goroutine ends and reports false.
func (w *Waiters) beginQuery() (ids []uuid.UUID, anybody bool) {
	w.mu.Lock()
	ids = slices.Collect(maps.Keys(w.waitersByRun))
	w.loopIsRunning = len(ids) > 0
	w.lastQuery++
	w.mu.Unlock()
	return slices.DeleteFunc(ids, w.host.IsExecuting), len(ids) > 0
}

// queryEnds queries the database once for the ends of the given runs.
func (w *Waiters) queryEnds(ids []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	ended, err := ReadEnded(ctx, w.store, ids)
	cancel()
	for _, it := range ended { // also the runs that were read before an error
		w.deliverQueried(it.ID, awaitResult{run: it.Run})
	}
	switch {
	case err == nil:
		w.noteQuerySucceeded(ids)
	case errors.Is(err, store.ErrClosed): // the store stays closed
		for _, id := range ids {
			w.deliverQueried(id, awaitResult{err: err})
		}
	case isRejection(err) && !errors.Is(err, store.ErrPermission) && !errors.Is(err, store.ErrSchema) && len(ids) > 1:
		w.queryEnds(ids[:len(ids)/2]) // the error may concern only one of the runs
		w.queryEnds(ids[len(ids)/2:])
	case w.deliverError(ids, err):
		w.logQueryFailure(err)
	}
}

// isRejection reports whether the database refused the query, and will refuse it again until somebody fixes
// the cause. All other errors pass by themselves. The contexts of the callers decide how long to wait for
// that.
func isRejection(err error) bool {
	return errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrSchema) || errors.Is(err, store.ErrBadData)
}

// noteQuerySucceeded notes that the database no longer rejects queries for these runs.
func (w *Waiters) noteQuerySucceeded(ids []uuid.UUID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasRejections {
		return
	}
	for _, id := range ids {
		for _, c := range w.waitersByRun[id] {
			c.rejectedSince = time.Time{}
		}
	}
}

// deliverError delivers the error to the callers that need not wait any longer, and reports whether others keep
// waiting. Waiting runs get no error: they may be unloaded from memory meanwhile, and they are held when
// the database rejects their own reads or writes.
func (w *Waiters) deliverError(ids []uuid.UUID, err error) (others bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for _, c := range w.waitersByRun[id] {
			if !c.isOutsideRun || !isRejection(err) {
				others = true
				continue
			}
			if w.hasRejections = true; c.rejectedSince.IsZero() {
				c.rejectedSince = time.Now()
			}
			if errors.Is(err, store.ErrPermission) || time.Since(c.rejectedSince) > w.host.Patience() {
				c.deliver(awaitResult{err: err})
				continue
			}
			others = true
		}
	}
	return others
}

// logQueryFailure logs, at most once a minute, that the ends of runs cannot be read.
func (w *Waiters) logQueryFailure(err error) {
	if now := time.Now(); w.lastLoggedAt.IsZero() || now.Sub(w.lastLoggedAt) >= failureLogInterval {
		w.lastLoggedAt = now
		w.log.Warn("could not read the results that callers wait for; trying again", telemetry.KeyError, err)
	}
}
