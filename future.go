package durable

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
)

// Future is the handle of a branch that [Ctx.Go] started. A Future is safe for concurrent use.
type Future[T any] struct {
	branch *engine.Branch // nil: the branch could not begin
	value  T
	err    error

	hasResult      atomic.Bool // value and err are final
	mu             sync.Mutex
	done           chan struct{} // closed when value and err are final; nil: nobody has waited for that
	isWithheld     bool          // a choice has ended the branch before fn returned: the result is withheld until deliverChoiceOutcome is called
	choiceOutcome  error         // what deliverChoiceOutcome got; nil: it was not called yet
	hasReturned    bool          // fn has returned
	finalCallbacks []func()
}

// Go starts a branch, which executes fn in a goroutine of the run, and returns at once. The branch has a scope of its own: the
// names of its durable calls are prefixed by name, so that different branches may use the same names. [Future.Wait] returns
// what fn returned. The result of fn is not recorded: in every replay the recorded calls of fn return the same values, so that
// fn returns the same result. The run does not end before its branches have returned.
//
// A branch that only waits for the end of its Ctx should return context.Cause of the Ctx. If such a branch returns nil when the run is
// unloaded from memory, nil may be a result that the run lacks, so the run is executed again after delays that double each time.
func (c *Ctx) Go[T any](name string, fn func(*Ctx) (T, error)) *Future[T] {
	f := new(Future[T])
	var zero T
	if fn == nil {
		f.storeResult(zero, noFunctionError("branch", name))
		return f
	}
	branch, err := c.callScope().OpenBranch(name, callSite(0))
	if err != nil {
		f.storeResult(zero, err)
		return f
	}
	f.branch = branch
	if branch.WasEndedByChoice() { // by a choice that is recorded: the branch only replays its recorded calls
		f.withholdResult()
		f.deliverChoiceOutcome(ErrCancelled)
	}
	sub := c.withScope(branch.Scope())
	finish := func(value T, err error) {
		if diverged := branch.CheckMissingCallsAtReturn(); diverged != nil {
			value, err = zero, diverged
		}
		branch.Scope().NoteBranchReturned(withoutRecordedFailure(err))
		f.storeResult(value, err)
	}
	err = sub.scope.Go(func() { finish(fn(sub)) }, func(failure *record.Failure) { finish(zero, newBranchPanicError(c.scope.DisplayName(name), failure)) })
	if err != nil {
		f.storeResult(zero, err)
	}
	return f
}

// withoutRecordedFailure returns nil if err is the recorded failure of a step or a run and does not also say that the run was suspended. A
// recorded failure may wrap context.Canceled, but the end of a Ctx has not caused it.
func withoutRecordedFailure(err error) error {
	if isRecordedFailure(err) && !errors.Is(err, ErrSuspended) {
		return nil
	}
	return err
}

// isRecordedFailure reports whether err is, or wraps, the recorded failure of a step or a run.
func isRecordedFailure(err error) bool {
	_, isOfStep := errors.AsType[*StepError](err)
	_, isOfRun := errors.AsType[*RunError](err)
	return isOfStep || isOfRun
}

// storeResult stores what the branch returned. It is called once.
func (f *Future[T]) storeResult(value T, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hasReturned = true
	switch {
	case !f.isWithheld:
		f.setAndNotify(value, err)
	case f.choiceOutcome != nil:
		f.setFinal(value, err)
	default:
		f.value, f.err = value, err // deliverChoiceOutcome makes them final, or replaces them
	}
}

// withholdResult is called when a choice ends the branch. It reports whether the branch had returned before: then its result stays. If
// withholdResult returns false, the result is withheld until deliverChoiceOutcome is called.
func (f *Future[T]) withholdResult() (returned bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.isWithheld = f.isWithheld || !f.hasReturned
	return !f.isWithheld
}

// deliverChoiceOutcome ends the withholding that withholdResult began. outcome is ErrCancelled if the choice was recorded, and
// ErrSuspended if it was not.
func (f *Future[T]) deliverChoiceOutcome(outcome error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choiceOutcome = outcome
	if f.hasReturned {
		f.setFinal(f.value, f.err)
	}
}

// setFinal sets the final result of a branch that a choice has ended and that has returned: its own result if none of its calls
// was refused, and otherwise the outcome of the choice. f.mu is held.
func (f *Future[T]) setFinal(value T, err error) {
	// A skip has no record, unless a condition led to it: only the record of the choice tells a replay that the choice came first.
	skip, _ := err.(*nodeSkippedError)
	isUnrecordedSkip := skip != nil && !skip.byCondition
	if f.choiceOutcome == ErrCancelled && !isUnrecordedSkip && !f.branch.HasCallRefusedAfterEnd() { // all its calls are recorded, so every replay returns the same result
		f.setAndNotify(value, err)
		return
	}
	f.setAndNotify(*new(T), f.choiceOutcome)
}

// setAndNotify sets the final result and notifies the watchers. It is called once, with f.mu held.
func (f *Future[T]) setAndNotify(value T, err error) {
	f.value, f.err = value, err
	f.hasResult.Store(true) // the branch's contexts do not end: the handle of a child that it started may still be waited for
	if f.done != nil {
		close(f.done)
	}
	for _, tell := range f.finalCallbacks {
		tell()
	}
}

// notifyWhenFinal registers a function that is called when the result is final, or at once if it is final already. The function
// must not block.
func (f *Future[T]) notifyWhenFinal(notify func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isFinal() {
		notify()
	} else {
		f.finalCallbacks = append(f.finalCallbacks, notify)
	}
}

// isFinal reports whether the result is final. Then value and err may be read.
func (f *Future[T]) isFinal() bool { return f.hasResult.Load() }

// isUnstarted reports whether Go did not return this Future, so that it never has a result.
func (f *Future[T]) isUnstarted() bool { return f == nil || f.branch == nil && !f.isFinal() }

// await returns when the result is final.
func (f *Future[T]) await() {
	if f.isFinal() {
		return
	}
	f.mu.Lock()
	if f.isFinal() {
		f.mu.Unlock()
		return
	}
	if f.done == nil {
		f.done = make(chan struct{})
	}
	done := f.done
	f.mu.Unlock()
	<-done
}

// Wait waits until the branch has returned, and returns the branch's result. If a choice ended the branch, and a durable call
// of the branch returned [ErrCancelled] for that reason, Wait returns ErrCancelled, whatever the branch returned; see
// [CancelLosers]. If the run leaves this process, the durable calls of the branch return [ErrSuspended], so that the branch and
// Wait can return.
func (f *Future[T]) Wait() (T, error) {
	if f.isUnstarted() {
		var zero T
		return zero, fmt.Errorf("%w: a *Future that is nil or empty: wait for what Go returned", ErrInvalidConfig)
	}
	if !f.isFinal() && f.branch != nil {
		defer engine.NoteFunctionAwaits([]*engine.Branch{f.branch})()
	}
	return f.wait()
}

// wait does what Wait does, for a Future that has a result or gets one, including the Future of a graph's node whose branch is
// opened later.
func (f *Future[T]) wait() (T, error) {
	f.await()
	if f.branch != nil && errors.Is(f.err, ErrSuspended) {
		f.branch.Scope().NoteBranchSuspensionSeen()
	}
	return f.value, f.err
}

// All waits for every branch and returns the values of the branches, in the order of the futures. The error of All wraps the
// errors of all branches that failed. All returns [ErrInvalidConfig] for a nil future.
func All[T any](futures ...*Future[T]) ([]T, error) {
	if i := slices.Index(futures, nil); i >= 0 {
		return nil, fmt.Errorf("%w: All got nil as branch %d of %d: give it what Go returned", ErrInvalidConfig, i, len(futures))
	}
	values := make([]T, len(futures))
	errs := make([]error, len(futures))
	for i, f := range futures {
		values[i], errs[i] = f.Wait()
	}
	return values, joinErrorsUnlessSuspended(errs)
}

// joinErrorsUnlessSuspended returns ErrSuspended if one of the errors wraps it, because the other errors do not matter then. Else it returns
// all errors joined.
func joinErrorsUnlessSuspended(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, ErrSuspended) {
			return ErrSuspended
		}
	}
	return joinErrors(errs)
}
