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
	closed   bool  // by a choice: what the branch returns counts for nobody
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
		f.set(*new(T), f.verdict)
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
		f.set(*new(T), verdict)
	}
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

// Wait returns what the branch returned, once it has. For a branch that a choice ended before it
// had returned, that is ErrCancelled, whatever it returned then, in every replay too. Wait always
// returns: a branch of a run that leaves this process ends with ErrSuspended.
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

// AllOrCancel waits for every branch and returns their values in order, as [All] does, but stops at the first
// failure: it records as the choice called name which branch has failed, ends the others as [CancelRest] does, and
// returns the error of the one that failed. A replay ends the same branches, and returns the same error. If no branch fails,
// nothing is recorded.
func AllOrCancel[T any](c *Ctx, name string, futures ...*Future[T]) ([]T, error) {
	spec := engine.ChoiceSpec{Name: name, Site: site(0), Failing: true}
	spec.Losers = func(failed []int) []engine.Loser { return losers(failed, futures) }
	if !c.scope.Recorded(name) {
		failed, err := firstFailure(futures)
		if err != nil {
			return nil, err
		}
		if failed < 0 {
			if err := c.calls().UseName("choice", name, spec.Site); err != nil {
				return nil, err
			}
			return All(futures...)
		}
		spec.Won = []int{failed}
	}
	deciders, err := choose(c, &spec, futures)
	if err != nil {
		return nil, err
	}
	if len(deciders) != 1 {
		return nil, fmt.Errorf("%w: choice %q in run %q recorded %d branches that decided it, and AllOrCancel has one: give the new call another name",
			ErrDiverged, name, c.ID(), len(deciders))
	}
	if _, err = futures[deciders[0]].Wait(); err == nil {
		return nil, fmt.Errorf("%w: choice %q in run %q recorded that branch %d failed, and now it did not", ErrDiverged, name, c.ID(), deciders[0])
	}
	return nil, err
}

// firstFailure waits until a branch has failed, and returns its place, or until all have succeeded: -1.
func firstFailure[T any](futures []*Future[T]) (int, error) {
	ends := make(chan int, len(futures))
	for i, f := range futures {
		f.watch(func() { ends <- i })
	}
	for range futures {
		i := <-ends
		switch _, err := futures[i].Wait(); {
		case errors.Is(err, ErrSuspended):
			return -1, ErrSuspended
		case err != nil:
			return i, nil
		}
	}
	return -1, nil
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

// Rest says what becomes of the branches that a choice leaves.
type Rest uint8

// The rests of a choice.
const (
	// KeepRest lets the other branches go on unheeded.
	KeepRest Rest = iota
	// CancelRest ends the others. The choice records who was ended, so that a replay ends them
	// before they do anything that is not recorded:
	//
	//   - Wait of a branch that had not returned returns ErrCancelled from now on.
	//   - Its calls that are not recorded return ErrCancelled. It starts no child and receives no signal any
	//     more; its running steps see their contexts end. A step that succeeds all the same is
	//     recorded, and its value goes to the branch only.
	//   - The children that it started, and those of branches in it, are cancelled, unless they are
	//     Detached. This is also so for a branch that had returned.
	//   - What it registered with Compensate stays registered.
	CancelRest
)

// Any waits until one of the branches has succeeded, records which one as the choice called
// name, and returns its place and value: a replay goes on with the same one. rest decides what
// happens to the others. If all fail, the error joins theirs.
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
// called name, and returns their places, in the order in which they succeeded: a replay goes on
// with the same ones. rest decides what happens to the others. If too many fail, the error
// joins theirs.
func Quorum[T any](c *Ctx, name string, k int, rest Rest, futures ...*Future[T]) ([]int, error) {
	return quorum(c, name, k, rest, futures)
}

func quorum[T any](c *Ctx, name string, k int, rest Rest, futures []*Future[T]) ([]int, error) {
	if k < 1 || k > len(futures) {
		return nil, fmt.Errorf("%w: choice %q wants %d of %d branches: pass as many futures as it wants, or more, and ask for at least one", ErrInvalidConfig, name, k, len(futures))
	}
	spec := engine.ChoiceSpec{Name: name, Site: site(1)}
	if rest == CancelRest {
		spec.Losers = func(won []int) []engine.Loser { return losers(won, futures) }
	}
	if !c.scope.Recorded(name) {
		// Not within the call that records it: to wait for a branch is nothing that keeps
		// a run in memory.
		var err error
		if spec.Won, err = firstOf(k, futures); err != nil {
			return nil, err
		}
	}
	return choose(c, &spec, futures)
}

// choose records the choice, or reads its record, and returns the places of the branches that decided it
// once these have returned.
func choose[T any](c *Ctx, spec *engine.ChoiceSpec, futures []*Future[T]) ([]int, error) {
	name := spec.Name
	res, err := c.calls().Choose(spec)
	switch {
	case err != nil:
		return nil, err
	case res.Failure != nil:
		return nil, stepError(c.scope.Full(name), res.Failure)
	}
	winners, err := engine.Deciders(res.Output)
	if err != nil {
		return nil, fmt.Errorf("%w: the record of choice %q in run %q (%d bytes) does not decode: %w", ErrDiverged, name, c.ID(), len(res.Output), err)
	}
	for _, i := range winners { // in a replay they may still be on their way
		if i < 0 || i >= len(futures) {
			return nil, fmt.Errorf("%w: choice %q in run %q recorded branch %d, and there are now %d", ErrDiverged, name, c.ID(), i, len(futures))
		}
		if _, err := futures[i].Wait(); errors.Is(err, ErrSuspended) {
			return nil, ErrSuspended
		}
	}
	return winners, nil
}

// losers are the branches that have not won.
func losers[T any](won []int, futures []*Future[T]) (all []engine.Loser) {
	for i, f := range futures {
		same := func(w int) bool { return w == i || w >= 0 && w < len(futures) && futures[w] == f }
		if !slices.ContainsFunc(won, same) {
			all = append(all, engine.Loser{Branch: f.branch, Close: f.close, Tell: f.tell})
		}
	}
	return all
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
