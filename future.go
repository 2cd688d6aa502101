package durable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Future is the result of a branch that was started by Go. It is safe for concurrent
// use.
type Future[T any] struct {
	done  chan struct{} // closed when value and err hold
	stop  func()        // cancels the branch
	value T
	err   error

	mu       sync.Mutex
	watchers []func()
}

// Go runs fn at the same time as what follows, in a scope of its own: the names of its
// durable calls are prefixed by name, so that each branch may use the same ones. What fn
// returns is in the Future; it is not recorded itself, since what its calls record
// leads it to the same result in a replay. The workflow function's end waits for its
// branches.
func (c *Ctx) Go[T any](name string, fn func(*Ctx) (T, error)) *Future[T] {
	f := &Future[T]{done: make(chan struct{}), stop: func() {}}
	var zero T
	if fn == nil {
		f.end(zero, fmt.Errorf("%w: branch %q has no function", ErrInvalidConfig, name))
		return f
	}
	scope, err := c.scope.Sub(name, site(0))
	if err != nil {
		f.end(zero, err)
		return f
	}
	f.stop = scope.Cancellable()
	branch := &Ctx{Context: scope.Context(), scope: scope, maxPayload: c.maxPayload}
	scope.Go(func() { f.end(fn(branch)) }, func(failure *engine.Failure) { f.end(zero, stepError(c.scope.Full(name), failure)) })
	return f
}

// end is called once, with the result.
func (f *Future[T]) end(value T, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

// Wait answers what the branch returned, once it has. It always comes back: a branch of a
// run that leaves this process ends with ErrSuspended.
func (f *Future[T]) Wait() (T, error) {
	<-f.done
	return f.value, f.err
}

// All waits for every branch and answers their values in order. The error joins those
// of the branches that failed.
func All[T any](futures ...*Future[T]) ([]T, error) {
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
	return errors.Join(errs...)
}

// Rest says what becomes of the branches that a choice leaves.
type Rest uint8

// The rests of a choice.
const (
	// KeepRest lets the other branches go on unheeded.
	KeepRest Rest = iota
	// CancelRest ends the others: their running steps see their contexts end, and their
	// further calls answer ErrCancelled.
	CancelRest
)

// Any waits until one of the branches has succeeded, records which as the choice called
// name, and answers its place and value: a replay goes on with the same one. What becomes
// of the others, rest says. If all fail, the error joins theirs.
func Any[T any](c *Ctx, name string, rest Rest, futures ...*Future[T]) (int, T, error) {
	var zero T
	winners, err := quorum(c, name, 1, rest, futures)
	if err != nil {
		return -1, zero, err
	}
	value, err := futures[winners[0]].Wait()
	return winners[0], value, err
}

// Quorum waits until k of the branches have succeeded, records which as the choice
// called name, and answers their places, in the order in which they succeeded: a replay goes on
// with the same ones. What becomes of the others, rest says. If too many fail, the error
// joins theirs.
func Quorum[T any](c *Ctx, name string, k int, rest Rest, futures ...*Future[T]) ([]int, error) {
	return quorum(c, name, k, rest, futures)
}

func quorum[T any](c *Ctx, name string, k int, rest Rest, futures []*Future[T]) ([]int, error) {
	if k < 1 || k > len(futures) {
		return nil, fmt.Errorf("%w: choice %q wants %d of %d branches", ErrInvalidConfig, name, k, len(futures))
	}
	var winners []int
	var err error
	if !c.scope.Recorded(name) {
		// Not within the step that records it: to wait for a branch is nothing that keeps
		// a run in memory.
		if winners, err = firstOf(k, futures); err != nil {
			return nil, err
		}
	}
	call := newCall[[]int](c, name, store.KindChoice, nil)
	call.spec.Site = site(1)
	call.spec.Attempt = func(context.Context) (engine.Output, *engine.Failure) { return call.record(winners, nil) }
	if winners, err = call.do(); err != nil {
		return nil, err
	}
	for _, i := range winners { // in a replay they may still be on their way
		if i < 0 || i >= len(futures) {
			return nil, fmt.Errorf("%w: choice %q in run %q recorded branch %d, and there are now %d", ErrDiverged, name, c.ID(), i, len(futures))
		}
		if _, err := futures[i].Wait(); errors.Is(err, ErrSuspended) {
			return nil, ErrSuspended
		}
	}
	if rest == CancelRest {
		for i, f := range futures {
			if !slices.Contains(winners, i) {
				f.stop()
			}
		}
	}
	return winners, nil
}

// firstOf waits for the first k successes.
func firstOf[T any](k int, futures []*Future[T]) ([]int, error) {
	ends := make(chan int, len(futures))
	for i, f := range futures {
		f.watch(func() { ends <- i })
	}
	var winners []int
	errs := make([]error, len(futures))
	for range futures {
		i := <-ends
		if _, errs[i] = futures[i].Wait(); errs[i] != nil {
			continue
		}
		if winners = append(winners, i); len(winners) == k {
			return winners, nil
		}
	}
	return nil, suspendedOr(errs)
}
