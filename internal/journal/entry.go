package journal

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Entry holds the writes of one call of the journal. One transaction commits all writes of an Entry. The journal owns the Entry from the
// time a caller appends it until the journal has sent the result.
type Entry struct {
	starts       []*store.StartWrite
	step         *store.StepWrite
	receive      *store.ReceiveWrite
	signal       *store.SignalWrite
	ownershipEnd *store.OwnershipEnd
	itemCount    int
	payloadBytes int
	result       chan error // receives the result; has a buffer of one, so that the sender never waits

	mayHaveCommitted bool // a failed transaction with this entry may have been committed
}

// rowOverhead is the approximate size of a row without its payloads, in bytes.
const rowOverhead = 128

// newEntry returns an entry of one item, from the pool if possible, because a new entry for every step was a tenth of a step's
// allocations. Each journal has its own pool, because a channel belongs to the synctest bubble that created it.
func (j *Journal) newEntry() *Entry {
	e, used := j.entryPool.Get().(*Entry)
	if !used {
		e = &Entry{result: make(chan error, 1)}
	}
	e.itemCount, e.payloadBytes = 1, rowOverhead
	return e
}

// recycleEntry returns an entry to the pool. The caller must have received the result of the entry, and nothing else may refer to the
// entry.
func (j *Journal) recycleEntry(e *Entry) {
	*e = Entry{result: e.result}
	j.entryPool.Put(e)
}

// addToBatch adds the entry's items to the batch.
func (e *Entry) addToBatch(b *store.Batch) {
	b.Starts = append(b.Starts, e.starts...)
	if e.step != nil {
		b.Steps = append(b.Steps, e.step)
	}
	if e.receive != nil {
		b.Receives = append(b.Receives, e.receive)
	}
	if e.signal != nil {
		b.Signals = append(b.Signals, e.signal)
	}
	if e.ownershipEnd != nil {
		b.OwnershipEnds = append(b.OwnershipEnds, e.ownershipEnd)
	}
}

// releasedRun returns the run that the entry releases without ending it.
func (e *Entry) releasedRun() (run uuid.UUID, ok bool) {
	if e.ownershipEnd == nil || e.ownershipEnd.Status.IsTerminal() {
		return uuid.UUID{}, false
	}
	return e.ownershipEnd.UUID, true
}

// runWithAddedHistory returns the run to whose history the entry adds.
func (e *Entry) runWithAddedHistory() (run uuid.UUID, ok bool) {
	switch {
	case e.step != nil:
		return e.step.Step.Run, true
	case e.receive != nil:
		return e.receive.Step.Run, true
	}
	return uuid.UUID{}, false
}

// CommittingWriter commits the writes of one caller. Each method of CommittingWriter commits its arguments in one transaction, waits until
// the transaction has ended, and stores an outcome in each item. If ctx ends before the transaction ends, the items may or may not become
// durable, and the caller must not access the items again. Every error that a CommittingWriter returns is a *WriteError or ErrClosed.
type CommittingWriter interface {
	// WriteStarts commits new runs.
	WriteStarts(ctx context.Context, starts []*store.StartWrite) error
	// WriteStep commits a new state of a step's checkpoint.
	WriteStep(ctx context.Context, w *store.StepWrite) error
	// WriteStartWithStep commits, in one transaction, the start of a run and a step. The step belongs to the started run, or to the parent
	// that starts it.
	WriteStartWithStep(ctx context.Context, s *store.StartWrite, w *store.StepWrite) error
	// WriteReceive commits one attempt to receive a signal.
	WriteReceive(ctx context.Context, r *store.ReceiveWrite) error
	// WriteSignal commits a signal.
	WriteSignal(ctx context.Context, s *store.SignalWrite) error
	// WriteOwnershipEnd commits the end of a worker's ownership of a run.
	WriteOwnershipEnd(ctx context.Context, w *store.OwnershipEnd) error
}

// WriteStarts commits new runs; see [CommittingWriter]. Like the other methods of Journal, WriteStarts shares its transaction with the
// writes of other callers.
func (j *Journal) WriteStarts(ctx context.Context, starts []*store.StartWrite) error {
	return j.appendAndAwait(ctx, j.newStartEntry(starts))
}

// WriteStep commits a new state of a step's checkpoint; see [CommittingWriter].
func (j *Journal) WriteStep(ctx context.Context, w *store.StepWrite) error {
	return j.appendAndAwait(ctx, j.newStepEntry(w))
}

// WriteStartWithStep commits, in one transaction, the start of a run and a step of that run or of its parent; see [CommittingWriter].
func (j *Journal) WriteStartWithStep(ctx context.Context, s *store.StartWrite, w *store.StepWrite) error {
	return j.appendAndAwait(ctx, j.newStartWithStepEntry(s, w))
}

// WriteReceive commits one attempt to receive a signal; see [CommittingWriter].
func (j *Journal) WriteReceive(ctx context.Context, r *store.ReceiveWrite) error {
	return j.appendAndAwait(ctx, j.newReceiveEntry(r))
}

// WriteSignal commits a signal; see [CommittingWriter].
func (j *Journal) WriteSignal(ctx context.Context, s *store.SignalWrite) error {
	return j.appendAndAwait(ctx, j.newSignalEntry(s))
}

// WriteOwnershipEnd commits the end of a worker's ownership of a run; see [CommittingWriter].
func (j *Journal) WriteOwnershipEnd(ctx context.Context, w *store.OwnershipEnd) error {
	return j.appendAndAwait(ctx, j.newOwnershipEndEntry(w))
}

// AppendStartedMarker appends the started marker of a step, and does not wait until the marker is committed. The caller must call
// WithdrawOrAwaitStartedMarker before it writes the same step again.
func (j *Journal) AppendStartedMarker(w *store.StepWrite) (*Entry, error) {
	e := j.newStepEntry(w)
	_, err := j.appendEntry(e, false)
	return e, err
}

// WithdrawOrAwaitStartedMarker withdraws a started marker that no flush contains yet. If a flush contains the marker, it waits for the end
// of the flush. It reports whether the marker was committed; if so, the StepWrite of the marker holds the outcome.
func (j *Journal) WithdrawOrAwaitStartedMarker(e *Entry) (committed bool, err error) {
	select {
	case err := <-e.result:
		return err == nil, err
	default:
	}
	if j.withdrawEntry(e) {
		return false, nil
	}
	err = <-e.result
	return err == nil, err
}

func (j *Journal) newStartEntry(starts []*store.StartWrite) *Entry {
	e := j.newEntry()
	e.starts = starts
	e.itemCount = len(starts)
	e.payloadBytes = 0
	for _, s := range starts {
		e.payloadBytes += rowOverhead + len(s.Run.Input)
	}
	return e
}

func (j *Journal) newStepEntry(w *store.StepWrite) *Entry {
	e := j.newEntry()
	e.step = w
	e.payloadBytes += len(w.Step.Output) + len(w.Step.Error)
	return e
}

func (j *Journal) newStartWithStepEntry(s *store.StartWrite, w *store.StepWrite) *Entry {
	e := j.newStepEntry(w)
	e.starts = []*store.StartWrite{s}
	e.itemCount++
	e.payloadBytes += rowOverhead + len(s.Run.Input)
	return e
}

func (j *Journal) newReceiveEntry(r *store.ReceiveWrite) *Entry {
	e := j.newEntry()
	e.receive = r
	e.payloadBytes += len(r.Step.Output) + len(r.Step.Error)
	return e
}

func (j *Journal) newSignalEntry(s *store.SignalWrite) *Entry {
	e := j.newEntry()
	e.signal = s
	e.payloadBytes += len(s.Payload)
	return e
}

func (j *Journal) newOwnershipEndEntry(w *store.OwnershipEnd) *Entry {
	e := j.newEntry()
	e.ownershipEnd = w
	e.payloadBytes += len(w.Output) + len(w.Error)
	return e
}

// appendAndAwait appends the entry and waits for its result. If ctx has ended already, nothing is written. If ctx ends before there is
// a result, appendAndAwait withdraws the entry if no flush contains it yet. If a flush contains it, the journal keeps the entry, and
// the caller must not access its items again. If ctx cannot end and no writer is active, the calling goroutine flushes the entry
// itself, which saves two goroutine switches.
func (j *Journal) appendAndAwait(ctx context.Context, e *Entry) error {
	if ctx.Err() != nil { // otherwise, if a flush were fast enough, the select below would choose between both at random
		j.recycleEntry(e)
		return &WriteError{Err: context.Cause(ctx)}
	}
	own, err := j.appendEntry(e, ctx.Done() == nil)
	if err != nil {
		return err
	}
	if own != nil {
		j.writeOnce(own)
	}
	select {
	case err := <-e.result:
		if err != nil {
			err = newWriteError(err, e.mayHaveCommitted)
		}
		j.recycleEntry(e)
		return err
	case <-ctx.Done():
		return &WriteError{MayHaveCommitted: !j.withdrawEntry(e), Err: context.Cause(ctx)}
	}
}
