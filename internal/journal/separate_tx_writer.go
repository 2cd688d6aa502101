package journal

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// maxSeparateTransactions limits the concurrent transactions of SeparateTxWriter. Each of them may wait for a lock,
// and occupies a connection meanwhile.
const maxSeparateTransactions = 4

// waitAfterCancel is how long a call whose context has ended still waits for its transaction, so that it
// can usually report whether anything was written.
const waitAfterCancel = 100 * time.Millisecond

// errLockAwaited is the error of an entry that needs a lock for which another transaction of this
// process already waits.
var errLockAwaited = errors.Join(store.ErrLocked, errors.New("another transaction of this process already waits for the same lock"))

// WriteError is returned when a write has failed and is not retried.
type WriteError struct {
	// MayHaveCommitted reports whether the write may be durable nevertheless, because the connection was lost during the commit, or because
	// the caller did not wait for its end. To find out whether the write is durable, repeat the same call of the journal. If
	// MayHaveCommitted is false, nothing was written.
	MayHaveCommitted bool
	Err              error // the cause; errors.Is and errors.As inspect it

	howToFindOut string // how to find out whether the write is durable; empty: by repeating the same call
}

// WithHowToFindOut returns err with another text about how to find out whether the write is durable, if err wraps a WriteError. It is for
// calls that would take effect twice if they were repeated.
func WithHowToFindOut(err error, how string) error {
	e, ok := errors.AsType[*WriteError](err)
	if !ok {
		return err
	}
	return &WriteError{MayHaveCommitted: e.MayHaveCommitted, Err: e.Err, howToFindOut: how}
}

// Error returns the text of Err, and says whether the database may have committed the write.
func (e *WriteError) Error() string {
	text := "durable: a write failed" // for a WriteError without an Err
	if e.Err != nil {
		text = e.Err.Error()
	}
	if e.MayHaveCommitted {
		return text + " (it may have been committed: " + cmp.Or(e.howToFindOut, "repeat the same call to find out") + ")"
	}
	return text + " (nothing was written)"
}

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// newWriteError wraps the error of a flush in a WriteError. It returns ErrClosed unchanged.
func newWriteError(err error, mayHaveCommitted bool) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	return &WriteError{MayHaveCommitted: mayHaveCommitted || errors.Is(err, store.ErrUnavailable), Err: err}
}

// SeparateTxWriter writes the items of one caller in transactions of their own, so that no other caller waits for the same locks. While the
// database is unavailable, a SeparateTxWriter retries its transactions, but all together for no longer than the journal's patience. The
// caller itself retries writes that the database rejected or that needed a locked row. Until a SeparateTxWriter is closed, the journal
// returns ErrLocked at once for other entries that need the same locks as its first write, so that these entries do not delay a batch.
// SeparateTxWriter is not safe for concurrent use. Create a SeparateTxWriter with [Journal.NewSeparateTxWriter], and close it.
type SeparateTxWriter struct {
	journal      *Journal
	lockKeys     []string
	retriesUntil time.Time // when the journal's patience, counted from the first write, ends
}

var _ CommittingWriter = (*SeparateTxWriter)(nil)

// NewSeparateTxWriter returns a writer for a caller whose items the database has rejected, or whose items need rows that another
// transaction has locked.
func (j *Journal) NewSeparateTxWriter() *SeparateTxWriter { return &SeparateTxWriter{journal: j} }

// Close ends the reservation of the writer's locks: the journal accepts other entries that need the same locks again.
func (a *SeparateTxWriter) Close() {
	a.journal.mu.Lock()
	defer a.journal.mu.Unlock()
	for _, key := range a.lockKeys {
		if a.journal.waiterCountByLockKey[key]--; a.journal.waiterCountByLockKey[key] <= 0 {
			delete(a.journal.waiterCountByLockKey, key)
		}
	}
	a.lockKeys = nil
}

// WriteStarts commits new runs; see [CommittingWriter].
func (a *SeparateTxWriter) WriteStarts(ctx context.Context, starts []*store.StartWrite) error {
	return a.writeAlone(ctx, a.journal.newStartEntry(starts))
}

// WriteStep commits a new state of a step's checkpoint; see [CommittingWriter].
func (a *SeparateTxWriter) WriteStep(ctx context.Context, w *store.StepWrite) error {
	return a.writeAlone(ctx, a.journal.newStepEntry(w))
}

// WriteStartWithStep commits, in one transaction, the start of a run and a step of that run or of its parent; see [CommittingWriter].
func (a *SeparateTxWriter) WriteStartWithStep(ctx context.Context, s *store.StartWrite, w *store.StepWrite) error {
	return a.writeAlone(ctx, a.journal.newStartWithStepEntry(s, w))
}

// WriteReceive commits one attempt to receive a signal; see [CommittingWriter].
func (a *SeparateTxWriter) WriteReceive(ctx context.Context, r *store.ReceiveWrite) error {
	return a.writeAlone(ctx, a.journal.newReceiveEntry(r))
}

// WriteSignal commits a signal; see [CommittingWriter].
func (a *SeparateTxWriter) WriteSignal(ctx context.Context, s *store.SignalWrite) error {
	return a.writeAlone(ctx, a.journal.newSignalEntry(s))
}

// WriteOwnershipEnd commits the end of a worker's ownership of a run; see [CommittingWriter].
func (a *SeparateTxWriter) WriteOwnershipEnd(ctx context.Context, w *store.OwnershipEnd) error {
	return a.writeAlone(ctx, a.journal.newOwnershipEndEntry(w))
}

// writeAlone commits the entry in a transaction of its own. It returns ErrLocked if the entry conflicts
// with a transaction in progress (see transactionRuns).
func (a *SeparateTxWriter) writeAlone(ctx context.Context, e *Entry) error {
	j := a.journal
	if ctx.Err() != nil { // otherwise a free slot could still be taken, because a select chooses at random
		j.recycleEntry(e)
		return &WriteError{Err: context.Cause(ctx)}
	}
	if a.retriesUntil.IsZero() { // set before the wait for a slot: in an outage, the patience of a caller would otherwise begin only when that of others has ended
		a.retriesUntil = time.Now().Add(j.patience)
	}
	select {
	case j.separateTxSlots <- struct{}{}:
	case <-ctx.Done():
		j.recycleEntry(e)
		return &WriteError{Err: context.Cause(ctx)}
	}
	own, err := a.registerTransaction(e)
	if err != nil {
		<-j.separateTxSlots
		j.recycleEntry(e)
		return err
	}
	// The transaction does not end with ctx: a transaction that is cancelled may have been committed.
	commit := func() {
		batch := store.Batch{ShortLockWait: true}
		e.addToBatch(&batch)
		retries, err := j.commitWithRetry(&batch, a.retriesUntil)
		if err != nil {
			err = newWriteError(err, retries > 0)
		}
		j.counters.separateTransactions.Add(1)
		<-j.separateTxSlots
		e.result <- err
		j.unregisterTransaction(own)
	}
	if ctx.Done() == nil {
		commit()
	} else {
		go commit() // ends with its transaction, for which Journal.Close waits
	}
	select {
	case err = <-e.result:
	case <-ctx.Done():
		grace := time.NewTimer(waitAfterCancel)
		defer grace.Stop()
		select {
		case err = <-e.result:
		case <-grace.C:
			return &WriteError{MayHaveCommitted: true, Err: context.Cause(ctx)}
		}
	}
	j.recycleEntry(e)
	return err
}

// registerTransaction notes the runs of the entry as part of a transaction in progress, and the locks that it
// needs as awaited.
func (a *SeparateTxWriter) registerTransaction(e *Entry) (*transactionRuns, error) {
	j := a.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	if a.lockKeys == nil {
		a.lockKeys = e.keysToLock()
		for _, key := range a.lockKeys {
			j.waiterCountByLockKey[key]++
		}
	}
	if j.openTxRunsByWriter[0].conflictsWith(e) || j.openTxRunsByWriter[1].conflictsWith(e) || j.conflictsWithSeparateTx(e) {
		return nil, &WriteError{Err: errLockAwaited}
	}
	own := new(transactionRuns)
	own.addEntry(e)
	j.openSeparateTxRuns = append(j.openSeparateTxRuns, own)
	return own, nil
}

// unregisterTransaction removes the runs of a transaction that has ended. If entries are pending and no writer
// is active, because the entries conflicted with this transaction, unregisterTransaction starts a writer.
func (j *Journal) unregisterTransaction(own *transactionRuns) {
	j.mu.Lock()
	i := slices.Index(j.openSeparateTxRuns, own)
	j.openSeparateTxRuns = slices.Delete(j.openSeparateTxRuns, i, i+1)
	var writer *transactionRuns
	if len(j.pendingEntries) > 0 && j.activeWriters == 0 {
		writer = j.addWriter()
	}
	if j.closed && j.hasNoWriters() {
		close(j.writersDone)
	}
	j.mu.Unlock()
	if writer != nil {
		go j.writeUntilEmpty(writer, 0)
	}
}

// conflictsWithSeparateTx reports whether the entry must not be written concurrently with a transaction
// of SeparateTxWriter that is in progress. The caller holds j.mu.
func (j *Journal) conflictsWithSeparateTx(e *Entry) bool {
	return slices.ContainsFunc(j.openSeparateTxRuns, func(f *transactionRuns) bool { return f.conflictsWith(e) })
}

// needsLockOfSeparateTxWriter reports whether the entry needs a lock for which another entry already waits.
// The caller holds j.mu.
func (j *Journal) needsLockOfSeparateTxWriter(e *Entry) bool {
	return slices.ContainsFunc(e.keysToLock(), func(key string) bool { return j.waiterCountByLockKey[key] > 0 })
}

// failEntriesThatLock moves the entries that wait for no locks to the front, and returns their number. It
// sends err to all other entries.
func (j *Journal) failEntriesThatLock(entries []*Entry, err error) (free int) {
	for i, e := range entries {
		if len(e.keysToLock()) == 0 {
			entries[free], entries[i] = entries[i], entries[free]
			free++
		}
	}
	for _, e := range entries[free:] {
		e.result <- err
	}
	return free
}

// keysToLock returns keys of the runs, run names and steps whose row locks the entry may have to wait
// for. A step write locks only the row of the step, and only the user's transaction of a Tx step can hold that lock. A start locks no
// name if the name is the run's own UUID, because no other run can have this name.
func (e *Entry) keysToLock() (keys []string) {
	add := func(run uuid.UUID) {
		if run != uuid.Nil {
			keys = append(keys, string(run[:]))
		}
	}
	for _, s := range e.starts {
		switch {
		case s.Run.Parent.Valid:
			add(s.Run.Parent.UUID)
		case !store.IsNamedByUUID(&s.Run):
			keys = append(keys, "name "+s.Run.Name)
		}
	}
	if e.step != nil && e.step.Step.Kind == store.KindTx {
		keys = append(keys, "step "+string(e.step.Step.Run[:])+e.step.Step.Name)
	}
	if e.receive != nil {
		add(e.receive.Step.Run)
	}
	if e.signal != nil {
		add(e.signal.Run)
	}
	if e.ownershipEnd != nil {
		add(e.ownershipEnd.UUID)
		add(e.ownershipEnd.ParentToWake.UUID)
	}
	return keys
}
