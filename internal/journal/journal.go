// Package journal is the group-commit writer of everything that a run makes
// durable: starts, checkpoints, signals, ends.
//
// Callers append an entry and wait. Whatever is pending when a flush begins goes
// into one transaction, so the commit in flight is the window in which the next
// batch gathers: one caller alone pays one commit each, a thousand callers share
// one. There is no ticker and no delay.
//
//	append ──► pending ──► take (up to a limit) ──► Store.Commit ──► answer each
//	              ▲                                     │
//	              └──────── the next batch gathers ◄────┘
//
// A flush runs in a goroutine that lives while there is something to flush, or in that of
// a caller who comes when there is no other; Close waits for it. One flush is in flight; a
// second writer joins only when what waits is large, since two small transactions cost more
// than one, and never where the store makes commits take turns (see OneWriter). What a run
// records and its leave are then kept in order, see flight.go.
//
// What a failed flush does:
//   - The database is away, or undid the transaction: the same batch is replayed,
//     with backoff. An answer lost after the commit is found by that replay, since
//     stores answer Written for a row that is already as it was wanted.
//   - A value was refused, or the database rejected a statement: the batch is bisected, so
//     that one bad row never fails its neighbours; the row alone gets the error.
//   - A row or a name was locked by another transaction: what waits for no locks is flushed at
//     once, and each other caller gets ErrLocked. It then writes by Alone, in transactions
//     for which nobody else waits. See alone.go.
//
// The journal does not retry what was rejected or locked: the caller does, by Alone.
//
// The journal is the only caller of Store.Commit. It is not the history: that is
// the record of one run, in the store.
package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Limits of one flush. Measured on two cores; see docs/decisions.md.
const (
	maxItems     = 512
	maxBytes     = 8 << 20
	secondWriter = 32                     // waiting entries that call a second writer
	yields       = 3                      // scheduler turns given to callers that are about to append
	longGather   = 200 * time.Microsecond // the longest wait for callers that were just answered
	mostTurns    = 4096                   // of the scheduler in it: a test's clock may stand still
	gatherTrial  = 16                     // one in so many flushes waits for them although few came lately
	flushTimeout = 30 * time.Second
	firstRetry   = 5 * time.Millisecond
	maxRetry     = time.Second
)

// DefaultPatience is how long a batch is replayed while the database is away.
const DefaultPatience = time.Minute

// ErrClosed is the answer to entries that come after Close.
var ErrClosed = errors.New("the journal is closed")

// Commit is the one function that the journal needs of a store.
type Commit func(ctx context.Context, b *store.Batch) error

// Flush describes one finished flush to an observer.
type Flush struct {
	Items   int
	Bytes   int
	Took    time.Duration
	Retries int
}

// Journal gathers entries and commits them in groups. Make it with New.
type Journal struct {
	commit   Commit
	observe  func(Flush)
	patience time.Duration
	counters counters

	ctx    context.Context // of all flushes; ends when Close gives up waiting
	cancel context.CancelFunc
	alone  bool      // no second writer joins
	free   sync.Pool // of entries

	lone chan struct{} // bounds the transactions of Alone that are under way

	mu      sync.Mutex
	pending []*Entry
	writers int
	flights [2]flight
	apart   map[string]int // what entries that are written alone wait for, and how many of them
	loners  []*flight      // of transactions of Alone that are under way
	closed  bool
	idle    chan struct{} // closed when the last writer leaves after Close
	back    float64       // the part of the callers answered by a flush that were back for the next, lately
}

// New makes a journal over commit. The observer, which may be nil, is called after
// each flush and must not block. A patience of zero means DefaultPatience.
func New(commit Commit, observe func(Flush), patience time.Duration) *Journal {
	if observe == nil {
		observe = func(Flush) {}
	}
	if patience <= 0 {
		patience = DefaultPatience
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Journal{
		commit: commit, observe: observe, patience: patience,
		ctx: ctx, cancel: cancel, idle: make(chan struct{}),
		lone: make(chan struct{}, lonely), apart: make(map[string]int),
	}
}

// OneWriter keeps a second writer from joining: commits that take turns anyway are fewer, and
// larger, if one waits for the other here. It is called before anything is appended.
func (j *Journal) OneWriter() { j.alone = true }

// Depth is the number of entries that wait for a flush to begin.
func (j *Journal) Depth() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pending)
}

// append queues the entry and sees to it that somebody will flush it: the caller, if it
// offers to and is given a flight for it, by writeOnce.
func (j *Journal) append(e *Entry, offers bool) (own *flight, err error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	if len(j.apart) > 0 && j.stuck(e) {
		j.mu.Unlock()
		e.done <- errApart
		return nil, nil
	}
	j.pending = append(j.pending, e)
	first := j.writers == 0
	if first || (j.writers == 1 && !j.alone && len(j.pending) >= secondWriter) {
		own = j.enlist()
	}
	j.mu.Unlock()
	if own != nil && !(first && offers) {
		go j.write(own, 0)
		return nil, nil
	}
	return own, nil
}

// withdraw takes back an entry that no flush has taken yet.
func (j *Journal) withdraw(e *Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range j.pending {
		if p == e {
			j.pending = append(j.pending[:i], j.pending[i+1:]...)
			return true
		}
	}
	return false
}

// write flushes until nothing is pending. append enlisted it. It begins after a flush that has
// answered so many callers.
func (j *Journal) write(own *flight, answered int) {
	var batch store.Batch
	var entries []*Entry
	for {
		j.gather(answered)
		entries = j.take(entries[:0], own)
		if len(entries) == 0 {
			return
		}
		j.flush(entries, &batch, false)
		answered = len(entries)
		clear(entries)
	}
}

// writeOnce flushes once, for the caller whose entry is the oldest one pending, and leaves
// what came meanwhile to a writer of its own. append enlisted it.
func (j *Journal) writeOnce(own *flight) {
	var batch store.Batch
	j.gather(0)
	entries := j.take(nil, own)
	if len(entries) == 0 {
		return // a second writer has taken all, and this one is signed off
	}
	j.flush(entries, &batch, false)
	j.mu.Lock()
	own.land()
	more := len(j.pending) > 0
	if !more {
		j.leave(own)
	}
	j.mu.Unlock()
	if more {
		go j.write(own, len(entries))
	}
}

// gather lets callers append before a batch is taken. A few scheduler turns cost nothing
// when nobody else is runnable. The callers that the last flush has answered are waited for
// longer, since most of them tend to come back at once with their next step: while they run on
// another processor, turns alone pass too quickly, and the batch would leave without them. If
// few came lately, because their steps take their time, nobody waits for them, but for a trial
// now and then.
func (j *Journal) gather(answered int) {
	first := j.Depth()
	want := 0
	if j.awaits(answered) {
		want = answered
	}
	began, seen := time.Now(), first
	limit := min(longGather, time.Duration(j.counters.recent.Load())/2)
	for turn := 1; ; turn++ {
		runtime.Gosched()
		now := j.Depth()
		still := turn < yields && now != seen
		if !still && (now-first >= want || turn >= mostTurns || time.Since(began) >= limit) {
			break
		}
		seen = now
	}
	j.came(j.Depth()-first, answered)
}

// awaits reports whether the callers that were answered are worth a wait.
func (j *Journal) awaits(answered int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return answered > 0 && (j.back >= 0.5 || j.counters.flushes.Load()%gatherTrial == 0)
}

// came notes how many of the callers that were answered were back in time.
func (j *Journal) came(came, answered int) {
	if answered == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.back += (min(1, float64(came)/float64(answered)) - j.back) / 4
}

// take moves the oldest pending entries, up to the limits of one flush, to entries, for a writer
// whose last flush is over. With nothing to take it signs the writer off: what has to wait for the
// other one's flight is left to that one.
func (j *Journal) take(entries []*Entry, own *flight) []*Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	own.land()
	other := j.other(own)
	items, bytes := 0, 0
	rest := j.pending[:0]
	for i, e := range j.pending {
		if len(entries) > 0 && (items+e.items > maxItems || bytes+e.bytes > maxBytes) {
			rest = append(rest, j.pending[i:]...)
			break
		}
		if other.bars(e) || len(j.loners) > 0 && j.lonersBar(e) {
			rest = append(rest, e)
			continue
		}
		items += e.items
		bytes += e.bytes
		entries = append(entries, e)
		own.load(e)
	}
	clear(j.pending[len(rest):])
	j.pending = rest
	if len(entries) == 0 {
		j.leave(own)
	}
	return entries
}

// flush commits the entries and answers each of them. With brief, locks are hardly waited for.
func (j *Journal) flush(entries []*Entry, batch *store.Batch, brief bool) {
	batch.Starts, batch.Steps, batch.Runs = batch.Starts[:0], batch.Steps[:0], batch.Runs[:0]
	batch.Receives, batch.Signals, batch.Brief = batch.Receives[:0], batch.Signals[:0], brief
	bytes := 0
	for _, e := range entries {
		e.join(batch)
		bytes += e.bytes
	}
	began := time.Now()
	retries, err := j.persist(batch)
	took := time.Since(began)
	j.counters.flushed(batch.Len(), bytes, took, retries, err)
	j.observe(Flush{Items: batch.Len(), Bytes: bytes, Took: took, Retries: retries})
	if err == nil || len(entries) == 1 || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) {
		for _, e := range entries {
			e.doubtful = e.doubtful || retries > 0
			e.done <- err
		}
		return
	}
	for _, e := range entries {
		e.doubtful = e.doubtful || retries > 0
	}
	if errors.Is(err, store.ErrLocked) {
		brief = true
		if free := j.dismiss(entries, err); free < len(entries) {
			if free > 0 {
				j.flush(entries[:free], batch, brief)
			}
			return
		}
	}
	half := len(entries) / 2
	j.flush(entries[:half], batch, brief)
	j.flush(entries[half:], batch, brief)
}

// persist commits the batch, replaying it while the database is away.
func (j *Journal) persist(batch *store.Batch) (retries int, err error) {
	var until time.Time
	wait := firstRetry
	for {
		if err = j.once(j.ctx, batch); err == nil {
			return retries, nil
		}
		if !errors.Is(err, store.ErrUnavailable) || j.ctx.Err() != nil {
			return retries, err
		}
		if until.IsZero() {
			until = time.Now().Add(j.patience)
		}
		if time.Now().After(until) {
			return retries, err
		}
		retries++
		pause := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-pause.C:
		case <-j.ctx.Done():
			pause.Stop()
			return retries, err
		}
		wait = min(2*wait, maxRetry)
	}
}

// once makes one transaction. One that takes too long counts as a database that is away.
func (j *Journal) once(parent context.Context, batch *store.Batch) error {
	ctx, cancel := context.WithTimeout(parent, flushTimeout)
	defer cancel()
	err := j.commit(ctx, batch)
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		err = errors.Join(store.ErrUnavailable, err)
	}
	return err
}

// Close refuses further entries and waits until the pending ones are answered, or
// until ctx ends; then the flush in flight is given up.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		if j.resting() {
			close(j.idle)
		}
	}
	j.mu.Unlock()
	defer j.cancel()
	select {
	case <-j.idle:
		return nil
	case <-ctx.Done():
		j.cancel()
		<-j.idle
		return context.Cause(ctx)
	}
}
