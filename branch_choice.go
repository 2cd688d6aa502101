package durable

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/engine"
)

// LoserPolicy determines what a choice, such as [Any], does with the branches that did not win.
type LoserPolicy uint8

// The policies for the losers of a choice.
const (
	// KeepLosers lets the branches that did not win continue. The code can pass a losing branch to a later choice, or wait for
	// its end with [Future.Wait].
	KeepLosers LoserPolicy = iota
	// CancelLosers ends the branches that did not win. The record of the choice lists the branches that the choice ended. In a
	// replay, a losing branch is ended before it makes a call that is not recorded:
	//
	//   - If a branch has not returned when the choice ends it, the calls of the branch that are not recorded return
	//     [ErrCancelled]. The ended branch starts no further child and receives no further signal, and the contexts of its
	//     running steps end. If a step succeeds although its context has ended, the step's value is recorded, and the step's
	//     call returns the value.
	//   - If a call of the ended branch returned ErrCancelled, [Future.Wait] returns ErrCancelled once the branch has returned.
	//     If no call of the branch returned ErrCancelled, Wait returns the result of the branch. In both cases, Wait returns
	//     the same result in every replay.
	//   - The children that the ended branch and its inner branches started are cancelled, unless they are [Detached]. The
	//     children of a losing branch that has already returned are cancelled, too.
	//   - The compensations that the ended branch registered with [Ctx.Compensate] stay registered.
	//   - A wait for a handle that was created outside of the ended branch, such as [Child.Wait], [Callback.Wait] or Future.Wait,
	//     is not a call of the branch. The choice does not end such a wait, and the ended branch returns only when the wait is
	//     over. To let a choice end the wait, start the child or create the callback in the branch.
	//
	// If a losing branch received a signal before the choice ended the branch, no other call receives that signal. If an ended
	// branch returns a received signal without making a further durable call, Future.Wait returns the signal. To lose no
	// signal, check the result of every branch after the choice. Alternatively, keep the losing branches with KeepLosers, and
	// start only the branch that won again, as in the example "SelectorLoop" of [Any].
	CancelLosers
)

// Any waits until one of the branches has succeeded, and records that branch as the winner of the choice with the given name.
// Any returns the winner's index in futures, and the winner's value. Any returns the same winner in every replay. The argument
// others determines what Any does with the branches that did not win. If all branches fail, Any returns -1 and an error that
// wraps the errors of all branches. Apart from the errors of its branches, Any returns the same errors as [Quorum].
func Any[T any](c *Ctx, name string, others LoserPolicy, futures ...*Future[T]) (int, T, error) {
	var zero T
	winners, err := awaitQuorum(c, name, 1, others, futures)
	if err != nil {
		return -1, zero, err
	}
	value, err := futures[winners[0]].Wait()
	return winners[0], value, err
}

// Quorum waits until k of the branches have succeeded, and records the k branches as the winners of the choice with the given
// name. Quorum returns the winners' indexes in futures. Quorum returns the same winners in every replay. The argument others
// determines what Quorum does with the branches that did not win. If so many branches fail that k branches can no longer
// succeed, Quorum waits for all branches and returns an error that wraps the errors of the failed branches.
//
// Quorum returns the indexes in the order in which the branches succeeded in the execution that records the choice. The indexes
// of branches that had succeeded in an earlier execution are in no particular order. Once the choice is recorded, the order of
// its winners does not change.
//
// Quorum returns [ErrInvalidConfig] if k is not between 1 and the number of branches, if a branch is nil or given twice, and if
// others is unknown. Quorum returns [ErrDiverged] if the choice is recorded with other branches, in another order, with another
// k or with another policy. Quorum also returns ErrDiverged if a branch that is recorded as a winner fails in a replay. If a
// recorded winner fails because a repair has repeated one of its calls, Quorum returns the winner's error. Quorum also returns
// the errors of [Ctx.Step].
func Quorum[T any](c *Ctx, name string, k int, others LoserPolicy, futures ...*Future[T]) ([]int, error) {
	return awaitQuorum(c, name, k, others, futures)
}

func awaitQuorum[T any](c *Ctx, name string, k int, others LoserPolicy, futures []*Future[T]) ([]int, error) {
	if k < 1 || k > len(futures) {
		return nil, fmt.Errorf("%w: choice %q wants %d of %d branches: pass as many futures as it wants, or more, and ask for at least one", ErrInvalidConfig, name, k, len(futures))
	}
	spec, err := newChoiceSpec(c, name, callSite(1), k, others, futures)
	if err != nil {
		return nil, err
	}
	if !c.scope.HasCallOutcome(name) {
		// Wait outside of the call that records the choice: a run that only waits for branches may leave memory.
		if spec.DecidingBranches, err = awaitSuccesses(k, futures); err != nil {
			return nil, err
		}
	}
	winners, err := recordOrReadChoice(c, spec, futures)
	if err != nil {
		return nil, err
	}
	for _, i := range winners {
		switch _, err := futures[i].Wait(); {
		case err == nil || c.Err() != nil:
		case wrapsErrorOfCallRepeatedByRepair(c, name, err):
			return nil, err
		default:
			return nil, c.scope.ReportDivergence(name, fmt.Errorf("%w: choice %q in run %q recorded that branch %q succeeded, and now it failed: %w", ErrDiverged, c.scope.DisplayName(name), c.ID(), spec.Branches[i].Name(), err))
		}
	}
	return winners, nil
}

// wrapsErrorOfCallRepeatedByRepair reports whether the error of a recorded winner wraps that of a call which a repair has repeated since.
func wrapsErrorOfCallRepeatedByRepair(c *Ctx, choice string, err error) (repeated bool) {
	walkErrorTree(err, func(err error) (wrapsMore bool) {
		switch e := err.(type) {
		case *StepError:
			repeated = repeated || c.scope.WasCallRepeatedSinceChoice(choice, e.Step)
		case *RunError:
			repeated = repeated || c.scope.WasCallRepeatedSinceChoice(choice, e.Name)
		}
		return true
	})
	return repeated
}

// newChoiceSpec returns the specification of a choice among the branches. wanted is the number of branches that have to succeed; with
// zero the first failure decides the choice.
func newChoiceSpec[T any](c *Ctx, name string, where uintptr, wanted int, others LoserPolicy, futures []*Future[T]) (*engine.ChoiceSpec, error) {
	if others != KeepLosers && others != CancelLosers {
		return nil, fmt.Errorf("%w: choice %q got Losers(%d), which is unknown: use KeepLosers or CancelLosers", ErrInvalidConfig, name, others)
	}
	spec := &engine.ChoiceSpec{Name: name, CallSite: where, MinSuccesses: wanted}
	for i, f := range futures {
		if f == nil {
			return nil, fmt.Errorf("%w: choice %q got nil as branch %d of %d: give it what Go returned", ErrInvalidConfig, name, i, len(futures))
		}
		if f.isUnstarted() {
			return nil, fmt.Errorf("%w: choice %q got an empty *Future as branch %d of %d: give it what Go returned", ErrInvalidConfig, name, i, len(futures))
		}
		if first := slices.Index(futures, f); first < i {
			return nil, fmt.Errorf("%w: choice %q got one branch twice, as %d and %d of %d: give it each branch once", ErrInvalidConfig, name, first, i, len(futures))
		}
		spec.Branches = append(spec.Branches, f.branch)
	}
	if others == CancelLosers {
		spec.SelectLosers = func(won []int) []engine.LoserBranch { return losersAmong(won, futures) }
	}
	return spec, nil
}

// recordOrReadChoice records the choice, or reads its record. It returns the indexes of the branches that decided the choice, after these
// have returned.
func recordOrReadChoice[T any](c *Ctx, spec *engine.ChoiceSpec, futures []*Future[T]) ([]int, error) {
	res, err := c.callScope().RecordChoiceAndEndLosers(spec)
	if err := callResultError(c, spec.Name, &res, err); err != nil {
		return nil, err
	}
	deciders, err := c.scope.DecodeDecidingBranches(spec, res.Output)
	if err != nil {
		return nil, err
	}
	for _, i := range deciders { // in a replay they may not have returned yet
		if _, err := futures[i].Wait(); errors.Is(err, ErrSuspended) {
			return nil, ErrSuspended
		}
	}
	return deciders, nil
}

// AllOrCancel waits for every branch and returns the values of the branches, in the order of the futures, as [All] does, but
// stops at the first failure. After a failure, AllOrCancel records the failed branch as the choice with the given name, and
// ends the other branches as [CancelLosers] does. The error of AllOrCancel wraps the error of the failed branch. In every
// replay, AllOrCancel ends the same branches and returns the same error. If the run fails with an error that wraps the error of
// AllOrCancel, a repair makes the choice again. If no branch fails, AllOrCancel records nothing. Apart from the errors of its
// branches, AllOrCancel returns the same errors as [Quorum].
func AllOrCancel[T any](c *Ctx, name string, futures ...*Future[T]) ([]T, error) {
	spec, err := newChoiceSpec(c, name, callSite(0), 0, CancelLosers, futures)
	if err != nil {
		return nil, err
	}
	if !c.scope.HasCallOutcome(name) {
		failed, err := awaitFirstFailure(futures)
		if err != nil {
			return nil, err
		}
		if failed < 0 {
			if err := c.callScope().ReserveName("choice", name, spec.CallSite); err != nil {
				return nil, err
			}
			return All(futures...)
		}
		spec.DecidingBranches = []int{failed}
	}
	deciders, err := recordOrReadChoice(c, spec, futures)
	if err != nil {
		return nil, err
	}
	branch := spec.Branches[deciders[0]].Name()
	if _, err = futures[deciders[0]].Wait(); err == nil {
		return nil, c.scope.ReportDivergence(name, fmt.Errorf("%w: choice %q in run %q recorded that branch %q failed, and now it did not", ErrDiverged, c.scope.DisplayName(name), c.ID(), branch))
	}
	return nil, &choiceDecidingError{err, branch}
}

// choiceDecidingError is the error of a branch whose failure decided a choice. If the run fails with it, a repair makes the choice again.
type choiceDecidingError struct {
	error
	branch string // as people see it
}

func (e *choiceDecidingError) Unwrap() error { return e.error }

// awaitFirstFailure waits until a branch has failed, and returns its index. If all branches succeed, it returns -1.
func awaitFirstFailure[T any](futures []*Future[T]) (int, error) {
	ends := watchBranchEnds(futures)
	defer engine.NoteFunctionAwaits(openBranches(futures))()
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

// openBranches returns the branches of the futures that have one.
func openBranches[T any](futures []*Future[T]) []*engine.Branch {
	var branches []*engine.Branch
	for _, f := range futures {
		if f.branch != nil {
			branches = append(branches, f.branch)
		}
	}
	return branches
}

// watchBranchEnds returns a channel of the indexes of the futures, in the order in which their branches end.
func watchBranchEnds[T any](futures []*Future[T]) <-chan int {
	ends := make(chan int, len(futures))
	for i, f := range futures {
		f.notifyWhenFinal(func() { ends <- i })
	}
	return ends
}

// losersAmong returns the branches that are not among the winners.
func losersAmong[T any](won []int, futures []*Future[T]) (all []engine.LoserBranch) {
	for i, f := range futures {
		if !slices.Contains(won, i) {
			all = append(all, engine.LoserBranch{Branch: f.branch, WithholdResult: f.withholdResult, DeliverResult: f.deliverChoiceOutcome})
		}
	}
	return all
}

// awaitSuccesses waits until k branches have succeeded, and returns their indexes in the order in which they succeeded.
func awaitSuccesses[T any](k int, futures []*Future[T]) ([]int, error) {
	ends := watchBranchEnds(futures)
	defer engine.NoteFunctionAwaits(openBranches(futures))()
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
	return nil, joinErrorsUnlessSuspended(errs)
}
