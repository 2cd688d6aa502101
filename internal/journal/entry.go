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

// Start commits new runs, all of them in one transaction, and waits. The outcomes
// are in the items. If ctx ends first, the starts may or may not become durable.
func (j *Journal) Start(ctx context.Context, starts []*store.Start) error {
	e := j.newEntry()
	e.starts = starts
	e.items = len(starts)
	e.bytes = 0
	for _, s := range starts {
		e.bytes += overhead + len(s.Run.Input)
	}
	return j.await(ctx, e)
}

// Step commits one state of a step and waits for it.
func (j *Journal) Step(ctx context.Context, w *store.StepWrite) error {
	return j.await(ctx, j.stepEntry(w))
}

// Child commits the start of a child together with its parent's step, and waits.
func (j *Journal) Child(ctx context.Context, s *store.Start, w *store.StepWrite) error {
	e := j.stepEntry(w)
	e.starts = []*store.Start{s}
	e.items++
	e.bytes += overhead + len(s.Run.Input)
	return j.await(ctx, e)
}

// Receive commits what a receive comes to and waits for it.
func (j *Journal) Receive(ctx context.Context, r *store.Receive) error {
	e := j.newEntry()
	e.receive = r
	e.bytes += len(r.Step.Output) + len(r.Step.Error)
	return j.await(ctx, e)
}

// Signal commits a signal and waits for it.
func (j *Journal) Signal(ctx context.Context, s *store.Signal) error {
	e := j.newEntry()
	e.signal = s
	e.bytes += len(s.Payload)
	return j.await(ctx, e)
}

// Run commits the end of one ownership of a run and waits for it.
func (j *Journal) Run(ctx context.Context, w *store.RunWrite) error {
	e := j.newEntry()
	e.run = w
	e.bytes += len(w.Output) + len(w.Error)
	return j.await(ctx, e)
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

func (j *Journal) stepEntry(w *store.StepWrite) *Entry {
	e := j.newEntry()
	e.step = w
	e.bytes += len(w.Step.Output) + len(w.Step.Error)
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
		j.reuse(e)
		return err
	case <-ctx.Done():
		j.withdraw(e)
		return context.Cause(ctx)
	}
}
