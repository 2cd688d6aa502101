package durable

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Future is the result of a branch that was started by Go. It is safe for concurrent
// use.
type Future[T any] struct {
	done   chan struct{}  // closed when value and err hold
	branch *engine.Branch // nil: it could not begin
	value  T
	err    error

	mu       sync.Mutex
	closed   bool  // by a choice: what the branch returns is kept back until tell
	verdict  error // of a closed one, once the choice is recorded
	returned bool
	watchers []func()
}

// Go runs fn at the same time as what follows, in a scope of its own: the names of its
// durable calls are prefixed by name, so that each branch may use the same ones. What fn
// returns is in the Future; it is not recorded itself, since what its calls record
// leads it to the same result in a replay. The workflow function's end waits for its
// branches.
func (c *Ctx) Go[T any](name string, fn func(*Ctx) (T, error)) *Future[T] {
	f := &Future[T]{done: make(chan struct{})}
	var zero T
	if fn == nil {
		f.end(zero, fmt.Errorf("%w: branch %q has no function", ErrInvalidConfig, name))
		return f
	}
	branch, err := c.calls().Branch(name, site(0))
	if err != nil {
		f.end(zero, err)
		return f
	}
	f.branch = branch
	if branch.Ended() { // by a choice, in the execution before: it only comes to where it was
		f.close()
		f.tell(ErrCancelled)
	}
	scope := branch.Scope()
	sub := &Ctx{Context: scope.Context(), scope: scope, maxPayload: c.maxPayload}
	err = scope.Go(func() { f.end(fn(sub)) }, func(failure *engine.Failure) { f.end(zero, branchError(c.scope.Full(name), failure)) })
	if err != nil {
		f.end(zero, err)
	}
	return f
}

// end is called once, with what the branch returned.
func (f *Future[T]) end(value T, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returned = true
	switch {
	case !f.closed:
		f.set(value, err)
	case f.verdict != nil:
		f.conclude(value, err)
	default:
		f.value, f.err = value, err // until tell
	}
}

// close decides that a choice has ended the branch. It reports whether the branch had returned
// before, which then holds. After false, tell follows.
func (f *Future[T]) close() (returned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = f.closed || !f.returned
	return !f.closed
}

// tell gives the result of a branch that was closed.
func (f *Future[T]) tell(verdict error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.verdict = verdict
	if f.returned {
		f.conclude(f.value, f.err)
	}
}

// conclude gives the result of a branch that was closed and has returned. f.mu is held.
func (f *Future[T]) conclude(value T, err error) {
	if f.verdict == ErrCancelled && !f.branch.Refused() { // it came to its own end, and does in every replay
		f.set(value, err)
		return
	}
	f.set(*new(T), f.verdict)
}

// set is called once, with f.mu held.
func (f *Future[T]) set(value T, err error) {
	f.value, f.err = value, err
	close(f.done) // its contexts stay: a handle of a child that it has started may be waited by
	for _, tell := range f.watchers {
		tell()
	}
}

// watch has tell called at the branch's end, or now if that has come. tell must not
// block.
func (f *Future[T]) watch(tell func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.done:
		tell()
	default:
		f.watchers = append(f.watchers, tell)
	}
}

// Wait returns what the branch returned, once it has. If a choice ended the branch while it made a durable call, or
// before it made its last one, Wait returns ErrCancelled, whatever the branch returned then, in every replay too; see
// [CancelLosers]. Wait always
// returns: a branch of a run that leaves this process ends with ErrSuspended.
func (f *Future[T]) Wait() (T, error) {
	<-f.done
	return f.value, f.err
}

// All waits for every branch and answers their values in order. The error joins those
// of the branches that failed.
func All[T any](futures ...*Future[T]) ([]T, error) {
	if i := slices.Index(futures, nil); i >= 0 {
		return nil, fmt.Errorf("%w: All got nil as branch %d of %d: give it what Go returned", ErrInvalidConfig, i, len(futures))
	}
	values := make([]T, len(futures))
	errs := make([]error, len(futures))
	for i, f := range futures {
		values[i], errs[i] = f.Wait()
	}
	return values, suspendedOr(errs)
}

// suspendedOr answers ErrSuspended alone if a branch met it: then nothing else counts.
func suspendedOr(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, ErrSuspended) {
			return ErrSuspended
		}
	}
	return joined(errs)
}
