package durable

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Losers says what becomes of the branches that a choice leaves.
type Losers uint8

// The rests of a choice.
const (
	// KeepLosers lets the other branches go on. They can be given to a later choice, or waited for.
	KeepLosers Losers = iota
	// CancelLosers ends the others. The choice records who was ended, so that a replay ends them
	// before they do anything that is not recorded:
	//
	//   - The calls of a branch that had not returned return ErrCancelled, unless they are recorded. It starts no
	//     child and receives no signal any more; its running steps see their contexts end. A step that succeeds all the
	//     same is recorded.
	//   - Wait of such a branch returns ErrCancelled once one of its calls has. A branch that comes to its end without
	//     such a call has all its calls recorded, and Wait returns what it returned, in every replay too.
	//   - The children that it started, and those of branches in it, are cancelled, unless they are
	//     Detached. This is also so for a branch that had returned.
	//   - What it registered with Compensate stays registered.
	//
	// A signal that another branch has received, just before it was ended or as it was ended, is not received
	// again. If that branch returns what it received and does nothing else, no signal is lost: its Wait returns the
	// signal. So look at every branch when the choice has returned, or keep the listeners with KeepLosers and start
	// only the one that won again, as in the example "SelectorLoop" of [Any].
	CancelLosers
)

// Any waits until one of the branches has succeeded, records which one as the choice called
// name, and returns its place and value: a replay goes on with the same one. others decides what
// happens to the others. If all fail, the error joins theirs.
func Any[T any](c *Ctx, name string, others Losers, futures ...*Future[T]) (int, T, error) {
	var zero T
	winners, err := quorum(c, name, 1, others, futures)
	if err != nil {
		return -1, zero, err
	}
	value, err := futures[winners[0]].Wait()
	return winners[0], value, err
}

// Quorum waits until k of the branches have succeeded, records which as the choice
// called name, and returns their places: a replay goes on with the same ones. others decides what happens to the others. If
// too many fail, the error joins theirs.
//
// The places come in the order in which the branches succeeded in the execution that records the choice. Branches that had
// succeeded before that, in a process that died or when the run was last in memory, come in any order. Once the
// choice is recorded its order stays.
//
// Errors: ErrInvalidConfig for a k that is not between 1 and the number of branches, a branch that is nil or given
// twice, and an unknown others. ErrDiverged if the choice is recorded with other branches, in another order, or with another k or
// others, or if a branch that succeeded then fails now.
func Quorum[T any](c *Ctx, name string, k int, others Losers, futures ...*Future[T]) ([]int, error) {
	return quorum(c, name, k, others, futures)
}

func quorum[T any](c *Ctx, name string, k int, others Losers, futures []*Future[T]) ([]int, error) {
	if k < 1 || k > len(futures) {
		return nil, fmt.Errorf("%w: choice %q wants %d of %d branches: pass as many futures as it wants, or more, and ask for at least one", ErrInvalidConfig, name, k, len(futures))
	}
	spec, err := choiceOf(c, name, site(1), k, others, futures)
	if err != nil {
		return nil, err
	}
	if !c.scope.Recorded(name) {
		// Not within the call that records it: to wait for a branch is nothing that keeps
		// a run in memory.
		if spec.Won, err = firstOf(k, futures); err != nil {
			return nil, err
		}
	}
	winners, err := choose(c, spec, futures)
	if err != nil {
		return nil, err
	}
	for _, i := range winners {
		if _, err := futures[i].Wait(); err != nil && c.Err() == nil {
			return nil, fmt.Errorf("%w: choice %q in run %q recorded that branch %q succeeded, and now it failed: %w", ErrDiverged, name, c.ID(), spec.Of[i].Name(), err)
		}
	}
	return winners, nil
}

// choiceOf is a choice among the branches, of which wanted have to succeed; with zero the first failure decides.
func choiceOf[T any](c *Ctx, name string, where uintptr, wanted int, others Losers, futures []*Future[T]) (*engine.ChoiceSpec, error) {
	if others != KeepLosers && others != CancelLosers {
		return nil, fmt.Errorf("%w: choice %q got Losers(%d), which is unknown: use KeepLosers or CancelLosers", ErrInvalidConfig, name, others)
	}
	spec := &engine.ChoiceSpec{Name: name, Site: where, Wanted: wanted}
	for i, f := range futures {
		if f == nil {
			return nil, fmt.Errorf("%w: choice %q got nil as branch %d of %d: give it what Go returned", ErrInvalidConfig, name, i, len(futures))
		}
		if first := slices.Index(futures, f); first < i {
			return nil, fmt.Errorf("%w: choice %q got one branch twice, as %d and %d of %d: give it each branch once", ErrInvalidConfig, name, first, i, len(futures))
		}
		spec.Of = append(spec.Of, f.branch)
	}
	if others == CancelLosers {
		spec.Losers = func(won []int) []engine.Loser { return losers(won, futures) }
	}
	return spec, nil
}

// choose records the choice, or reads its record, and returns the places of the branches that decided it
// once these have returned.
func choose[T any](c *Ctx, spec *engine.ChoiceSpec, futures []*Future[T]) ([]int, error) {
	res, err := c.calls().Choose(spec)
	switch {
	case err != nil:
		return nil, err
	case res.Failure != nil:
		return nil, stepError(c.scope.Full(spec.Name), res.Failure)
	}
	deciders, err := c.scope.Deciders(spec, res.Output)
	if err != nil {
		return nil, err
	}
	for _, i := range deciders { // in a replay they may still be on their way
		if _, err := futures[i].Wait(); errors.Is(err, ErrSuspended) {
			return nil, ErrSuspended
		}
	}
	return deciders, nil
}

// AllOrCancel waits for every branch and returns their values in order, as [All] does, but stops at the first
// failure: it records as the choice called name which branch has failed, ends the others as [CancelLosers] does, and
// returns the error of the one that failed. A replay ends the same branches, and returns the same error. If no branch fails,
// nothing is recorded. Errors of the choice itself are those of [Quorum].
func AllOrCancel[T any](c *Ctx, name string, futures ...*Future[T]) ([]T, error) {
	spec, err := choiceOf(c, name, site(0), 0, CancelLosers, futures)
	if err != nil {
		return nil, err
	}
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
	deciders, err := choose(c, spec, futures)
	if err != nil {
		return nil, err
	}
	if _, err = futures[deciders[0]].Wait(); err == nil {
		return nil, fmt.Errorf("%w: choice %q in run %q recorded that branch %q failed, and now it did not", ErrDiverged, name, c.ID(), spec.Of[deciders[0]].Name())
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

// losers are the branches that have not won.
func losers[T any](won []int, futures []*Future[T]) (all []engine.Loser) {
	for i, f := range futures {
		if !slices.Contains(won, i) {
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
