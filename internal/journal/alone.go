package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// lonely is how many transactions of Alone are under way at once. Each may wait for a lock,
// and has a connection meanwhile.
const lonely = 4

// landing is how long a caller whose context has ended waits for a transaction under way, so that it
// can mostly be told whether anything was written.
const landing = 100 * time.Millisecond

// errApart is returned for an entry that concerns what another one is waiting for.
var errApart = errors.Join(store.ErrLocked, errors.New("others wait for it already"))

// WriteError says that a write was given up. Err tells why; errors.Is looks into it.
type WriteError struct {
	// MayHaveCommitted is true if the write may be durable all the same: its answer was lost,
	// or was not waited for. The same call, made again, finds out. Otherwise nothing was
	// written, and nothing will be.
	MayHaveCommitted bool
	Err              error
}

// Error is Err's text, and whether anything may have been written.
func (e *WriteError) Error() string {
	if e.MayHaveCommitted {
		return e.Err.Error() + " (it may have been committed: the same call, made again, finds out)"
	}
	return e.Err.Error() + " (nothing was written)"
}

// Unwrap is Err.
func (e *WriteError) Unwrap() error { return e.Err }

// written makes a WriteError of a flush's error.
func written(err error, doubtful bool) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	return &WriteError{MayHaveCommitted: doubtful || errors.Is(err, store.ErrUnavailable), Err: err}
}

// Alone writes one caller's items again and again until they are taken, each time in a
// transaction of their own: nobody waits with them. As long as it is not closed, new entries
// that concern the same runs or names get ErrLocked at once, so that they hold up no batch
// either. It belongs to one goroutine. Make it with Journal.Alone, and close it.
type Alone struct {
	j    *Journal
	keys []string
}

var _ Writer = (*Alone)(nil)

// Alone makes a writer for a caller whose items the database rejected, or which another
// transaction holds up.
func (j *Journal) Alone() *Alone { return &Alone{j: j} }

// Close lets others write together with what the last write concerned.
func (a *Alone) Close() {
	a.j.mu.Lock()
	defer a.j.mu.Unlock()
	for _, key := range a.keys {
		if a.j.apart[key]--; a.j.apart[key] <= 0 {
			delete(a.j.apart, key)
		}
	}
	a.keys = nil
}

// Start is described at Writer.
func (a *Alone) Start(ctx context.Context, starts []*store.Start) error {
	return a.write(ctx, a.j.startEntry(starts))
}

// Step is described at Writer.
func (a *Alone) Step(ctx context.Context, w *store.StepWrite) error {
	return a.write(ctx, a.j.stepEntry(w))
}

// Child is described at Writer.
func (a *Alone) Child(ctx context.Context, s *store.Start, w *store.StepWrite) error {
	return a.write(ctx, a.j.childEntry(s, w))
}

// Receive is described at Writer.
func (a *Alone) Receive(ctx context.Context, r *store.Receive) error {
	return a.write(ctx, a.j.receiveEntry(r))
}

// Signal is described at Writer.
func (a *Alone) Signal(ctx context.Context, s *store.Signal) error {
	return a.write(ctx, a.j.signalEntry(s))
}

// Run is described at Writer.
func (a *Alone) Run(ctx context.Context, w *store.RunWrite) error {
	return a.write(ctx, a.j.runEntry(w))
}

// write makes one transaction of the entry. An entry that may not be
// under way beside another one of its run gets ErrLocked.
func (a *Alone) write(ctx context.Context, e *Entry) error {
	j := a.j
	select {
	case j.lone <- struct{}{}:
	case <-ctx.Done():
		j.reuse(e)
		return &WriteError{Err: context.Cause(ctx)}
	}
	own, err := a.embark(e)
	if err != nil {
		<-j.lone
		j.reuse(e)
		return err
	}
	// Not ctx: a transaction that is given up in flight may have been committed.
	fly := func() {
		batch := store.Batch{Brief: true}
		e.join(&batch)
		err := j.once(j.ctx, &batch)
		j.counters.alone.Add(1)
		<-j.lone
		e.done <- err
		j.disembark(own)
	}
	if ctx.Done() == nil {
		fly()
	} else {
		go fly() // it is over with its transaction, which Close waits for
	}
	select {
	case err = <-e.done:
	case <-ctx.Done():
		soon := time.NewTimer(landing)
		defer soon.Stop()
		select {
		case err = <-e.done:
		case <-soon.C:
			return &WriteError{MayHaveCommitted: true, Err: context.Cause(ctx)}
		}
	}
	j.reuse(e)
	if err != nil {
		return written(err, false)
	}
	return nil
}

// embark notes the entry as under way, and what it concerns as waited for.
func (a *Alone) embark(e *Entry) (*flight, error) {
	j := a.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, ErrClosed
	}
	if a.keys == nil {
		a.keys = e.keys()
		for _, key := range a.keys {
			j.apart[key]++
		}
	}
	if j.flights[0].bars(e) || j.flights[1].bars(e) || j.lonersBar(e) {
		return nil, &WriteError{Err: errApart}
	}
	own := new(flight)
	own.load(e)
	j.loners = append(j.loners, own)
	return own, nil
}

// disembark notes that the flight is over. A writer may have left entries to it.
func (j *Journal) disembark(own *flight) {
	j.mu.Lock()
	i := slices.Index(j.loners, own)
	j.loners = slices.Delete(j.loners, i, i+1)
	var heir *flight
	if len(j.pending) > 0 && j.writers == 0 {
		heir = j.enlist()
	}
	if j.closed && j.resting() {
		close(j.idle)
	}
	j.mu.Unlock()
	if heir != nil {
		go j.write(heir, 0)
	}
}

// lonersBar reports whether the entry may not be under way together with a transaction of
// Alone. j.mu is held.
func (j *Journal) lonersBar(e *Entry) bool {
	return slices.ContainsFunc(j.loners, func(f *flight) bool { return f.bars(e) })
}

// stuck reports whether the entry concerns what another one is waiting for. j.mu is held.
func (j *Journal) stuck(e *Entry) bool {
	return slices.ContainsFunc(e.keys(), func(key string) bool { return j.apart[key] > 0 })
}

// dismiss moves the entries that wait for no locks to the front, and returns how many there
// are. If there are others, those get the error.
func (j *Journal) dismiss(entries []*Entry, err error) (free int) {
	for i, e := range entries {
		if len(e.keys()) == 0 {
			entries[free], entries[i] = entries[i], entries[free]
			free++
		}
	}
	for _, e := range entries[free:] {
		e.done <- err
	}
	return free
}

// keys are the runs, and the names of runs, whose locks the entry may have to wait for. A step of a
// run locks its own row only, which nobody else writes but the user's transaction in which a Tx
// step is recorded. A name that was made for its run is nobody else's.
func (e *Entry) keys() (keys []string) {
	add := func(run uuid.UUID) {
		if run != uuid.Nil {
			keys = append(keys, string(run[:]))
		}
	}
	for _, s := range e.starts {
		switch {
		case s.Run.Parent.Valid:
			add(s.Run.Parent.UUID)
		case !store.NamedByID(&s.Run):
			keys = append(keys, "name "+s.Run.Name)
		}
	}
	if e.step != nil && e.step.Step.Kind == store.KindTx {
		keys = append(keys, "step "+string(e.step.Step.RunID[:])+e.step.Step.Name)
	}
	if e.receive != nil {
		add(e.receive.Step.RunID)
	}
	if e.signal != nil {
		add(e.signal.Run)
	}
	if e.run != nil {
		add(e.run.ID)
		add(e.run.Parent.UUID)
	}
	return keys
}
