// Package journal commits all writes of runs (starts, checkpoints, signals, ends) in groups.
//
// A caller appends an entry and waits for its commit. A flush commits all pending entries in one
// transaction. Entries that arrive during a commit are pending until the next flush. So a single
// caller pays for one commit each time, and a thousand concurrent callers share a commit. There is
// no ticker and no fixed delay.
//
//	append ──► pending ──► takeBatch (up to a limit) ──► Store.Commit ──► send each result
//	              ▲                                           │
//	              └──────── meanwhile callers append ◄────────┘
//
// A writer is a goroutine that flushes as long as entries are pending. It is the goroutine of a
// caller if that caller can wait without a limit and no writer is active. Usually there is one
// writer. A second one starts only when many entries are pending and no writer sleeps (see
// await_callers.go), because two small transactions cost more than one, and never where the store
// serializes commits (see UseSingleWriter). Two writers keep the writes of a run and its release in
// order; see transaction_runs.go.
//
// A flush can fail for three reasons:
//   - The database is unavailable, or rolled the transaction back. The journal retries the same batch with backoff, including the
//     batches of SeparateTxWriters. If the first attempt was committed although its result was lost, the retry finds the rows in the
//     wanted state, and their outcome is Written.
//   - The database rejected a value or a statement. The journal bisects the batch, so that only the
//     entry with the rejected row fails.
//   - Another transaction has locked a row or a name. The journal flushes the entries that wait for
//     no locks at once, and returns ErrLocked to each other caller. Those callers then write with SeparateTxWriter, in transactions
//     for which no other caller waits. See separate_tx_writer.go.
//
// The journal does not retry rejected or locked writes. The caller retries them with SeparateTxWriter.
//
// Only the journal calls Store.Commit. The journal is not the history: the history is the list of
// checkpoints of one run, and the store keeps it.
package journal

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Limits of one flush, measured on two cores; see docs/decisions.md.
const (
	maxFlushRows          = 512
	maxFlushBytes         = 8 << 20
	secondWriterThreshold = 32 // pending entries at which a second writer starts
	flushTimeout          = 30 * time.Second
	firstRetryDelay       = 5 * time.Millisecond
	maxRetryDelay         = time.Second
)

// DefaultPatience is how long the journal retries a batch while the database is unavailable.
const DefaultPatience = time.Minute

// ErrClosed is returned for writes after the journal was closed.
var ErrClosed = errors.New("the journal is closed")

// CommitFunc is the type of Store.Commit, the only method of a store that the journal calls.
type CommitFunc func(ctx context.Context, b *store.Batch) error

// FlushStats describes one finished flush to an observer.
type FlushStats struct {
	Rows     int
	Bytes    int
	Duration time.Duration
	Retries  int
}

// Journal collects entries and commits them in groups. Create a Journal with New.
type Journal struct {
	commit   CommitFunc
	onFlush  func(FlushStats)
	patience time.Duration
	counters journalCounters

	flushCtx        context.Context // the context of all flushes; Close cancels it when Close's own context ends
	cancelFlushes   context.CancelFunc
	hasSingleWriter bool      // no second writer starts
	entryPool       sync.Pool // of *Entry

	separateTxSlots chan struct{} // limits the concurrent transactions of SeparateTxWriter

	mu                   sync.Mutex
	pendingEntries       []*Entry
	activeWriters        int
	openTxRunsByWriter   [2]transactionRuns
	waiterCountByLockKey map[string]int     // the number of SeparateTxWriter writers that wait for each lock, by the key of the lock
	openSeparateTxRuns   []*transactionRuns // one for each transaction of SeparateTxWriter that is in progress
	closed               bool
	writersDone          chan struct{} // closed when the last writer ends after Close
	callerReturnRate     float64       // moving average: the fraction of a flush's callers that append to the next flush in time
	sleep                writerSleep   // of the writer that waits for the callers of its last flush
}

// New returns a journal that commits batches with the given function. If observe is not nil, the journal calls observe after each flush;
// observe must not block. A patience of zero means DefaultPatience.
func New(commit CommitFunc, observe func(FlushStats), patience time.Duration) *Journal {
	if observe == nil {
		observe = func(FlushStats) {}
	}
	if patience <= 0 {
		patience = DefaultPatience
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Journal{
		commit: commit, onFlush: observe, patience: patience,
		flushCtx: ctx, cancelFlushes: cancel, writersDone: make(chan struct{}), sleep: newWriterSleep(),
		separateTxSlots: make(chan struct{}, maxSeparateTransactions), waiterCountByLockKey: make(map[string]int),
	}
}

// UseSingleWriter prevents the journal from starting a second writer. Where the store serializes commits, a single writer needs fewer
// and larger commits. Call UseSingleWriter before the first write.
func (j *Journal) UseSingleWriter() { j.hasSingleWriter = true }

// PendingEntries returns the number of entries that wait for a flush to begin.
func (j *Journal) PendingEntries() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.pendingEntries)
}

// appendEntry queues the entry. If no writer is active, or many entries are pending and no writer sleeps, it starts a writer. If no
// writer is active and callerMayWrite is true, appendEntry starts no goroutine and returns own, with which the caller must then call
// writeOnce.
func (j *Journal) appendEntry(e *Entry, callerMayWrite bool) (own *transactionRuns, err error) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	if len(j.waiterCountByLockKey) > 0 && j.needsLockOfSeparateTxWriter(e) {
		j.mu.Unlock()
		e.result <- errLockAwaited
		return nil, nil
	}
	j.pendingEntries = append(j.pendingEntries, e)
	j.sleep.wakeIfReached(len(j.pendingEntries))
	first := j.activeWriters == 0
	if first || (j.activeWriters == 1 && !j.hasSingleWriter && !j.sleep.taken && len(j.pendingEntries) >= secondWriterThreshold) {
		own = j.addWriter()
	}
	j.mu.Unlock()
	if own != nil && !(first && callerMayWrite) {
		go j.writeUntilEmpty(own, 0)
		return nil, nil
	}
	return own, nil
}

// withdrawEntry removes the entry if it is still pending, and reports whether it was.
func (j *Journal) withdrawEntry(e *Entry) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, p := range j.pendingEntries {
		if p == e {
			j.pendingEntries = append(j.pendingEntries[:i], j.pendingEntries[i+1:]...)
			return true
		}
	}
	return false
}

// writeUntilEmpty flushes until nothing is pending. The caller has registered the writer with addWriter. The argument returning is
// the number of callers that received results from the previous flush, or zero.
func (j *Journal) writeUntilEmpty(own *transactionRuns, returning int) {
	var batch store.Batch
	var entries []*Entry
	for {
		j.awaitMoreEntries(returning)
		entries = j.takeBatch(entries[:0], own)
		if len(entries) == 0 {
			return
		}
		j.flushBatch(entries, &batch, false)
		returning = len(entries)
		clear(entries)
	}
}

// writeOnce flushes once, in the goroutine of the caller whose entry is the oldest pending one. If entries are pending afterwards, it
// starts a writer for them. appendEntry has registered the writer own.
func (j *Journal) writeOnce(own *transactionRuns) {
	var batch store.Batch
	j.awaitMoreEntries(0)
	entries := j.takeBatch(nil, own)
	if len(entries) == 0 {
		return // a second writer has taken all entries, and takeBatch has unregistered this one
	}
	j.flushBatch(entries, &batch, false)
	j.mu.Lock()
	own.clear()
	more := len(j.pendingEntries) > 0
	if !more {
		j.removeWriter(own)
	}
	j.mu.Unlock()
	if more {
		go j.writeUntilEmpty(own, len(entries))
	}
}

// takeBatch moves the oldest pending entries, up to the limits of one flush, to entries. The last
// flush of the writer has ended. takeBatch skips entries that conflict with another transaction in
// progress. If it finds no entry, it unregisters the writer; the other transaction's writer later
// flushes the skipped entries.
func (j *Journal) takeBatch(entries []*Entry, own *transactionRuns) []*Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	own.clear()
	other := j.otherWriterRuns(own)
	items, bytes := 0, 0
	rest := j.pendingEntries[:0]
	for i, e := range j.pendingEntries {
		if len(entries) > 0 && (items+e.itemCount > maxFlushRows || bytes+e.payloadBytes > maxFlushBytes) {
			rest = append(rest, j.pendingEntries[i:]...)
			break
		}
		if other.conflictsWith(e) || len(j.openSeparateTxRuns) > 0 && j.conflictsWithSeparateTx(e) {
			rest = append(rest, e)
			continue
		}
		items += e.itemCount
		bytes += e.payloadBytes
		entries = append(entries, e)
		own.addEntry(e)
	}
	clear(j.pendingEntries[len(rest):])
	j.pendingEntries = rest
	if len(entries) == 0 {
		j.removeWriter(own)
	}
	return entries
}

// flushBatch commits the entries and sends each of them its result. If shortLockWait is true, statements wait only a short time for
// locks.
func (j *Journal) flushBatch(entries []*Entry, batch *store.Batch, shortLockWait bool) {
	batch.Starts, batch.Steps, batch.OwnershipEnds = batch.Starts[:0], batch.Steps[:0], batch.OwnershipEnds[:0]
	batch.Receives, batch.Signals, batch.ShortLockWait = batch.Receives[:0], batch.Signals[:0], shortLockWait
	bytes := 0
	for _, e := range entries {
		e.addToBatch(batch)
		bytes += e.payloadBytes
	}
	began := time.Now()
	retries, err := j.commitWithRetry(batch, time.Time{})
	took := time.Since(began)
	j.counters.countFlush(batch.Len(), bytes, took, retries, err)
	j.onFlush(FlushStats{Rows: batch.Len(), Bytes: bytes, Duration: took, Retries: retries})
	if err == nil || len(entries) == 1 || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) {
		for _, e := range entries {
			e.mayHaveCommitted = e.mayHaveCommitted || retries > 0
			e.result <- err
		}
		return
	}
	for _, e := range entries {
		e.mayHaveCommitted = e.mayHaveCommitted || retries > 0
	}
	if errors.Is(err, store.ErrLocked) {
		shortLockWait = true
		if free := j.failEntriesThatLock(entries, err); free < len(entries) {
			if free > 0 {
				j.flushBatch(entries[:free], batch, shortLockWait)
			}
			return
		}
	}
	half := len(entries) / 2
	j.flushBatch(entries[:half], batch, shortLockWait)
	j.flushBatch(entries[half:], batch, shortLockWait)
}

// commitWithRetry commits the batch. While the database is unavailable, it retries until the given time. If that time is zero, it
// retries for the journal's patience after the first failure.
func (j *Journal) commitWithRetry(batch *store.Batch, until time.Time) (retries int, err error) {
	wait := firstRetryDelay
	for {
		if err = j.commitOnce(j.flushCtx, batch); err == nil {
			return retries, nil
		}
		if !errors.Is(err, store.ErrUnavailable) || j.flushCtx.Err() != nil {
			return retries, err
		}
		if until.IsZero() {
			until = time.Now().Add(j.patience)
		}
		if time.Now().After(until) {
			return retries, err
		}
		retries++
		backoff := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-backoff.C:
		case <-j.flushCtx.Done():
			backoff.Stop()
			return retries, err
		}
		wait = min(2*wait, maxRetryDelay)
	}
}

// commitOnce commits the batch in one transaction. After a timeout it returns ErrUnavailable.
func (j *Journal) commitOnce(parent context.Context, batch *store.Batch) error {
	ctx, cancel := context.WithTimeout(parent, flushTimeout)
	defer cancel()
	err := j.commit(ctx, batch)
	if err != nil && ctx.Err() != nil && parent.Err() == nil {
		err = errors.Join(store.ErrUnavailable, err)
	}
	return err
}

// Close rejects further entries and waits until all pending entries have their results. If ctx ends first, Close cancels the
// flush in progress.
func (j *Journal) Close(ctx context.Context) error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		if j.hasNoWriters() {
			close(j.writersDone)
		}
	}
	j.mu.Unlock()
	defer j.cancelFlushes()
	select {
	case <-j.writersDone:
		return nil
	case <-ctx.Done():
		j.cancelFlushes()
		<-j.writersDone
		return context.Cause(ctx)
	}
}
