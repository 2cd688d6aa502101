package journal

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Entry is one caller's unit: what it holds is committed in one transaction. From
// append to the answer it belongs to the journal.
type Entry struct {
	starts  []*store.Start
	step    *store.StepWrite
	receive *store.Receive
	signal  *store.Signal
	run     *store.RunWrite
	items   int
	bytes   int
	done    chan error // holds the one answer, so that nobody need wait for it

	doubtful bool // a transaction with it may have been committed although it failed
}

// overhead is the rough size of a row beside its payloads.
const overhead = 128

// newEntry answers an entry of one item. Those whose answer has been taken are used again: one
// a step was a tenth of what a step allocates. The pool is the journal's, since a channel
// belongs to the bubble of the test that made it.
func (j *Journal) newEntry() *Entry {
	e, used := j.free.Get().(*Entry)
	if !used {
		e = &Entry{done: make(chan error, 1)}
	}
	e.items, e.bytes = 1, overhead
	return e
}

// reuse gives back an entry whose answer its caller has: nobody else knows it any more.
func (j *Journal) reuse(e *Entry) {
	*e = Entry{done: e.done}
	j.free.Put(e)
}

// join adds the entry's items to the batch.
func (e *Entry) join(b *store.Batch) {
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
	if e.run != nil {
		b.Runs = append(b.Runs, e.run)
	}
}

// leaves answers the run whose ownership the entry ends without ending the run.
func (e *Entry) leaves() (run uuid.UUID, ok bool) {
	if e.run == nil || e.run.Status.Terminal() {
		return uuid.UUID{}, false
	}
	return e.run.ID, true
}

// records answers the run whose history the entry adds to.
func (e *Entry) records() (run uuid.UUID, ok bool) {
	switch {
	case e.step != nil:
		return e.step.Step.RunID, true
	case e.receive != nil:
		return e.receive.Step.RunID, true
	}
	return uuid.UUID{}, false
}

// Writer commits what one caller writes, all of it in one transaction, and waits. The
// outcomes are in the items. If ctx ends first, the items may or may not become durable, and
// the caller must not touch them again. Every error but ErrClosed is a *WriteError.
type Writer interface {
	// Start commits new runs.
	Start(ctx context.Context, starts []*store.Start) error
	// Step commits one state of a step.
	Step(ctx context.Context, w *store.StepWrite) error
	// Child commits the start of a child together with its parent's step.
	Child(ctx context.Context, s *store.Start, w *store.StepWrite) error
	// Receive commits what a receive comes to.
	Receive(ctx context.Context, r *store.Receive) error
	// Signal commits a signal.
	Signal(ctx context.Context, s *store.Signal) error
	// Run commits the end of one ownership of a run.
	Run(ctx context.Context, w *store.RunWrite) error
}

// Start implements Writer, as the following methods do: together with what others write.
func (j *Journal) Start(ctx context.Context, starts []*store.Start) error {
	return j.await(ctx, j.startEntry(starts))
}

// Step is described at Writer.
func (j *Journal) Step(ctx context.Context, w *store.StepWrite) error {
	return j.await(ctx, j.stepEntry(w))
}

// Child is described at Writer.
func (j *Journal) Child(ctx context.Context, s *store.Start, w *store.StepWrite) error {
	return j.await(ctx, j.childEntry(s, w))
}

// Receive is described at Writer.
func (j *Journal) Receive(ctx context.Context, r *store.Receive) error {
	return j.await(ctx, j.receiveEntry(r))
}

// Signal is described at Writer.
func (j *Journal) Signal(ctx context.Context, s *store.Signal) error {
	return j.await(ctx, j.signalEntry(s))
}

// Run is described at Writer.
func (j *Journal) Run(ctx context.Context, w *store.RunWrite) error {
	return j.await(ctx, j.runEntry(w))
}

// Mark appends a started marker without waiting. The caller must Settle it before it
// writes the step again.
func (j *Journal) Mark(w *store.StepWrite) (*Entry, error) {
	e := j.stepEntry(w)
	_, err := j.append(e, false)
	return e, err
}

// Settle ends a marker: one that no flush has taken is withdrawn, one in flight is
// waited for. It reports whether the marker was committed, so that its outcome in
// the item holds.
func (j *Journal) Settle(e *Entry) (committed bool, err error) {
	select {
	case err := <-e.done:
		return err == nil, err
	default:
	}
	if j.withdraw(e) {
		return false, nil
	}
	err = <-e.done
	return err == nil, err
}

func (j *Journal) startEntry(starts []*store.Start) *Entry {
	e := j.newEntry()
	e.starts = starts
	e.items = len(starts)
	e.bytes = 0
	for _, s := range starts {
		e.bytes += overhead + len(s.Run.Input)
	}
	return e
}

func (j *Journal) stepEntry(w *store.StepWrite) *Entry {
	e := j.newEntry()
	e.step = w
	e.bytes += len(w.Step.Output) + len(w.Step.Error)
	return e
}

func (j *Journal) childEntry(s *store.Start, w *store.StepWrite) *Entry {
	e := j.stepEntry(w)
	e.starts = []*store.Start{s}
	e.items++
	e.bytes += overhead + len(s.Run.Input)
	return e
}

func (j *Journal) receiveEntry(r *store.Receive) *Entry {
	e := j.newEntry()
	e.receive = r
	e.bytes += len(r.Step.Output) + len(r.Step.Error)
	return e
}

func (j *Journal) signalEntry(s *store.Signal) *Entry {
	e := j.newEntry()
	e.signal = s
	e.bytes += len(s.Payload)
	return e
}

func (j *Journal) runEntry(w *store.RunWrite) *Entry {
	e := j.newEntry()
	e.run = w
	e.bytes += len(w.Output) + len(w.Error)
	return e
}

// await appends and waits. An entry whose caller leaves first is withdrawn if no
// flush has taken it; otherwise the journal keeps it, and the caller must not
// touch its items again. A caller that cannot leave first is the writer itself if there is
// none: alone, it need not wake another goroutine and be woken by it.
func (j *Journal) await(ctx context.Context, e *Entry) error {
	own, err := j.append(e, ctx.Done() == nil)
	if err != nil {
		return err
	}
	if own != nil {
		j.writeOnce(own)
	}
	select {
	case err := <-e.done:
		if err != nil {
			err = written(err, e.doubtful)
		}
		j.reuse(e)
		return err
	case <-ctx.Done():
		return &WriteError{MayHaveCommitted: !j.withdraw(e), Err: context.Cause(ctx)}
	}
}
