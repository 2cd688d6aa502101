package durable

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/token"
)

// Errors to test for with errors.Is. The table in the package comment lists when each error is returned, and what to do.
var (
	// ErrSuspended is returned by every durable call of a run that leaves this process. A workflow function that gets
	// ErrSuspended should return it: the library ignores what the function of a suspended run returns.
	ErrSuspended = engine.ErrSuspended
	// When a run is suspended, its Ctx ends, and context.Cause of the Ctx is ErrShutdown, ErrLeaseLost, ErrParked, ErrPaused or
	// ErrHeld.
	ErrShutdown  = engine.ErrShutdown
	ErrLeaseLost = engine.ErrLeaseLost
	ErrParked    = engine.ErrParked
	ErrPaused    = engine.ErrPaused
	// ErrHeld is the cause of the end of the Ctx of a run that is held. A run is held if the database has rejected the run's
	// writes for longer than Config.Patience: the run is released, and claimed again after 1 s to 5 min. A run is also held if
	// the code does not fit its history: the run is paused; see [DriftHolds]. A held run is claimed again every 30 seconds,
	// without a limit, if the codec lacks a key, if the queue of a child with a [GroupKey] has no settings, or if the run
	// begins its next generation and a worker of an older version of durable lives. A hold because of a missing key, missing
	// queue settings or an older worker does not count as a crash of the run.
	ErrHeld = engine.ErrHeld
	// ErrReturned is returned by a durable call that begins, or is still in progress, after the workflow function has returned.
	// An ErrReturned error also wraps ErrSuspended. To avoid ErrReturned, start goroutines with [Ctx.Go], and wait for the
	// branches with [Future.Wait] or [All].
	ErrReturned = engine.ErrReturned

	// ErrDuplicateStep is returned when a name is used twice in one scope of a run.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep is returned by a durable call inside a step's function.
	ErrNestedStep = engine.ErrNestedStep
	// ErrOutsideStep is returned when a workflow function passes its own Ctx, or a context derived from its Ctx, to a call of
	// an Engine, a Workflow or a store that writes, such as StartTx. The library refuses such a call with a workflow's Ctx,
	// because every replay would repeat the write. Use [Ctx.Start], [Ctx.StartChild], [Ctx.Signal] or [Ctx.SetTags] instead, or
	// make the call in a step, with the step's context. [IdempotencyKey] panics with this error when it gets the Ctx of a
	// workflow. Calls that only read are allowed with the Ctx of a workflow; their results are not recorded.
	ErrOutsideStep = engine.ErrOutsideStep
	// ErrInsideTx is returned when an engine on SQLite is called inside the function of a Tx step. Such a call would deadlock:
	// the call would wait for the step's transaction, and the step would wait for the call.
	ErrInsideTx = engine.ErrInsideTx
	// ErrDiverged is returned when the code makes a call that does not match the recorded history.
	ErrDiverged = engine.ErrDiverged
	// ErrNoGraph is returned by [Engine.Graph] for a run that has recorded no graph, and by [Engine.Edges] and
	// [Engine.Edge] for an unknown node or edge.
	ErrNoGraph = errors.New("durable: no such graph")
	// ErrUndeclaredNeed is returned for a run of a graph in which a node read the value of another node without a declared need.
	// Declare the need with [Needs], [After], [NeedsAny] or [NeedsQuorum].
	ErrUndeclaredNeed = errors.New("durable: the need is not declared")
	// ErrNodeSkipped is returned in place of the value of a skipped node of a graph; see [NodeError].
	ErrNodeSkipped = errors.New("durable: the node was skipped")
	// ErrNotChosen is returned when a node with [NeedsAny] or [NeedsQuorum] reads the value of a node that is not among the winners.
	ErrNotChosen = errors.New("durable: the node is not among the winners")
	// ErrInvalidName is returned for an invalid name, ID, key or tag; see [MaxNameBytes].
	ErrInvalidName = naming.ErrInvalid

	// ErrInvalidToken is returned for the token of a [Callback] that was forged or altered, or that is of another database.
	ErrInvalidToken = token.ErrInvalid

	// ErrIDConflict is returned when the ID belongs to a run with another workflow or input, or when the SignalKey belongs to
	// another signal.
	ErrIDConflict = engine.ErrIDConflict
	// ErrLive is returned by a start with [Singleton] and [SingletonRefuse] while a run with the same key is live. Every
	// [*LiveError] wraps ErrLive.
	ErrLive = startkey.ErrLive
	// ErrThrottled is returned by a start with [Throttle] if no further start with the key is allowed in the period. Every
	// [*ThrottledError] wraps ErrThrottled.
	ErrThrottled = startkey.ErrSkipped
	// ErrNotFound is returned when no run, queue, limit, schedule or worker has the given ID or name.
	ErrNotFound = engine.ErrNotFound
	// ErrNotRegistered is returned by [Workflow.Call] when the workflow is not in Config.Workflows.
	ErrNotRegistered = errors.New("durable: the workflow is not registered")
	// ErrRunning is returned by [Engine.Run] when Run is already active for the engine.
	ErrRunning = engine.ErrRunning
	// ErrInvalidConfig is returned for an invalid Config, option, argument or definition.
	ErrInvalidConfig = engine.ErrInvalidConfig

	// ErrQueueFull is returned for the start of a root run if the start would exceed the Depth of its queue, which bounds the
	// number of waiting runs; see [QueueSettings].
	ErrQueueFull = engine.ErrQueueFull
	// ErrQueueClosed is returned for the start of a root run in a queue whose setting Closed is true; see [QueueSettings].
	ErrQueueClosed = engine.ErrQueueClosed

	// ErrNotEncodable is returned for a value that JSON cannot represent, or that does not decode again.
	ErrNotEncodable = errors.New("durable: the value cannot be encoded")
	// ErrPayloadTooLarge is returned for a value whose encoding is larger than Config.MaxPayload.
	ErrPayloadTooLarge = errors.New("durable: the value is too large")

	// ErrTimeout is returned when an attempt, a step, a wait or a run takes longer than its timeout allows.
	ErrTimeout = engine.ErrTimeout
	// ErrCancelled is returned when the run was cancelled, or a choice ended the branch. A workflow function or a branch that
	// gets ErrCancelled should return it.
	ErrCancelled = engine.ErrCancelled
	// ErrTerminated is returned for a run that [Engine.Terminate] ended. The error of a terminated run also wraps ErrCancelled.
	ErrTerminated = engine.ErrTerminated
	// ErrCrashLoop is the failure of a run whose process died Config.MaxCrashes times in a row without a new checkpoint. If the
	// database rejects the run's writes, so that the run is held ([ErrHeld]), the hold also counts as a death of the process.
	// Without Config.FailAtMaxCrashes, a run that crashed too often is paused and does not fail.
	ErrCrashLoop = errors.New("durable: the run crashed too often without a new checkpoint")
	// ErrCompensation is returned for a run that did not undo all its effects: one of its compensations failed and has no attempts
	// left, or the run ended before its function reached calls that a repair has kept. The error names the compensations or the
	// calls.
	ErrCompensation = errors.New("durable: effects of the run were not undone")
	// ErrState is returned when the run's current state does not allow the operation. Every [*StateError] wraps ErrState.
	ErrState = errors.New("durable: the run's state does not allow the operation")
	// ErrInvalidCursor is returned for a cursor that was not returned by [Engine.List] or [Engine.Events] of this database.
	ErrInvalidCursor = errors.New("durable: invalid cursor")
	// ErrPanic is returned when a function of a step, a branch or a workflow panicked. StepError.Stack or RunError.Stack holds
	// the stack.
	ErrPanic = errors.New("durable: a function panicked")
	// ErrOutcomeUnknown is returned for a step whose process died and that must not be executed again, because it has the option
	// [AtMostOnce] or no attempts left. After ErrOutcomeUnknown, check outside of the library whether the step took effect.
	ErrOutcomeUnknown = errors.New("durable: it is not known whether the step took effect")
	// ErrRefused is returned when the database refuses an encoded value.
	ErrRefused = errors.New("durable: the database refused the value")
	// ErrGoexit is returned when a function of a step, a branch or a workflow called runtime.Goexit.
	ErrGoexit = errors.New("durable: the function called runtime.Goexit")

	// ErrUnavailable is returned when the database was not available for longer than Config.Patience. If you get
	// ErrUnavailable, make the same call again; see [WriteError].
	ErrUnavailable = store.ErrUnavailable
	// ErrRejected is returned when the database has rejected a statement for longer than Config.Patience for a reason other than its
	// values: for example, a privilege is missing, a table was renamed, or an index is damaged. An error that wraps ErrRejected
	// also wraps the database's own error.
	ErrRejected = store.ErrRejected
	// ErrPermission is returned when the database denies a privilege that the call needs. An error that wraps ErrPermission
	// also wraps ErrRejected. Callers outside of runs get ErrPermission at once. Grant the privilege to the database's role
	// (see docs/operations.md) or make the SQLite file writable, and make the same call again.
	ErrPermission = store.ErrPermission
	// ErrLocked is returned when another transaction, for example a transaction with StartTx or SignalTx, holds a lock on a row
	// or a name that the call needs. Before returning ErrLocked, the call waits for the lock for as long as Config.Patience and
	// its context permit. A StartTx or SignalTx of package postgres waits as long as its context and the lock_timeout of the
	// caller's own session permit, and also returns ErrLocked if PostgreSQL aborts the caller's transaction because of a conflict
	// with another transaction. Then roll the transaction back, and repeat it from its beginning.
	ErrLocked = store.ErrLocked
	// ErrClosed is returned when the store was closed before or during the call.
	ErrClosed = store.ErrClosed
	// ErrMoved is returned when the file of an SQLite database, or its write-ahead log, was deleted, moved or replaced while this
	// process had it open. The store cannot be used any more, and [Engine.Run] returns the error.
	ErrMoved = store.ErrMoved
	// ErrSchema is returned when the schema of the database is newer or older than the code requires. ErrSchema is also
	// returned when a limit, a queue or a schedule is set while a live worker has a version of durable that would ignore the
	// setting.
	ErrSchema = store.ErrSchema
)

// StepError is the recorded failure of a step. The first execution and every replay return the same StepError. Message, Type
// and Stack are recorded up to 16 KiB each; a longer text is cut, and ends with " (cut)". In a StepError, errors.Is finds the
// sentinels that were passed to [RegisterError], and the library's own sentinels:
//
//	var failed *durable.StepError
//	if errors.As(err, &failed) { log.Print(failed.Step, failed.Attempts) }
//	if errors.Is(err, ErrCardDeclined) { ... }
type StepError struct {
	Step          string // the step's name with its scope; for a panic of a branch, the branch's name
	Attempts      int
	Message       string // the text of the error that the last attempt returned
	Type          string // the Go type of the error that the last attempt returned, for people to read
	Stack         string // the stack of a panic; else empty
	sentinelCodes []string
	stateError    *StateError // what the recorded error wrapped; nil: no StateError
	isPermanent   bool        // it was marked by Permanent
	isBranchPanic bool        // it is the failure of a branch that Go started, not of a step
	otherItems    []string    // for the error of a Map: the step names of the other items that failed
}

// Error returns a text with the step, the number of attempts and the message.
func (e *StepError) Error() string {
	switch {
	case e.isBranchPanic:
		return fmt.Sprintf("branch %q failed: %s", e.Step, e.Message)
	case e.Attempts == 1:
		return fmt.Sprintf("step %q failed: %s", e.Step, e.Message)
	}
	return fmt.Sprintf("step %q failed after %d attempts: %s", e.Step, e.Attempts, e.Message)
}

// Unwrap returns the registered sentinels that the recorded error matched, and the [*StateError] that the recorded error
// wrapped, if any. Unwrap returns nil for a nil *StepError, such as the Checkpoint.Err of a step that has not failed.
func (e *StepError) Unwrap() []error {
	if e == nil {
		return nil
	}
	all := registeredSentinels(e.sentinelCodes)
	if e.stateError != nil {
		all = append(all, e.stateError)
	}
	return all
}

// RunError is the recorded failure, cancellation or expiry of a run. Message, Type and Stack are recorded up to 16 KiB each, as
// in a [StepError].
type RunError struct {
	ID            string // the ID that addresses the run: the caller's ID of a root run, or the UUID of a child
	Name          string // the name of the call that started a child, with its scope; empty for a root run
	Workflow      string
	Status        Status // StatusFailed, StatusCancelled or StatusExpired
	Message       string // the text of the error that the workflow function returned
	Type          string // the Go type of the error that the workflow function returned, for people to read
	Step          string // the name of the step or child call whose error the function returned; empty if it returned another error
	Stack         string // the stack of a panic; else empty
	isPermanent   bool   // see StepError
	sentinelCodes []string
}

// Error returns a text with the run, its workflow and the message.
func (e *RunError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("child %q (run %s) of workflow %q %s: %s", e.Name, e.ID, e.Workflow, e.Status, e.Message)
	}
	return fmt.Sprintf("run %q of workflow %q %s: %s", e.ID, e.Workflow, e.Status, e.Message)
}

// Unwrap returns the registered sentinels that the recorded error matched. Unwrap returns nil for a nil *RunError, such as the
// RunInfo.Err of a run that has not failed.
func (e *RunError) Unwrap() []error {
	if e == nil {
		return nil
	}
	return registeredSentinels(e.sentinelCodes)
}

// WriteError is returned by calls that write, such as a start, a signal, a pause or a repair, if the database did not acknowledge
// the write. The field MayHaveCommitted of a WriteError tells whether the call may have taken effect:
//
//	var failed *durable.WriteError
//	if errors.As(err, &failed) && failed.MayHaveCommitted { /* make the same call again */ }
//
// A WriteError has two fields:
//
//   - MayHaveCommitted bool is true if the write may be committed, because the reply of the database was lost, or the call did
//     not wait for the reply. Make the same call again to find out whether the write was committed. A repair, such as
//     [Engine.Rerun], would take effect twice: before you repeat it, call [Engine.Generations] to find out whether it was
//     committed. MayHaveCommitted is false if nothing was written, and nothing will be written later.
//   - Err error is the error of the last attempt to write. errors.Is and errors.As unwrap Err.
//
// Err wraps [ErrUnavailable], [ErrRejected], [ErrLocked] or [ErrSchema]. If the context of the call ended before the write
// succeeded, Err wraps the error and the context.Cause of the context, and the error of the last attempt, if there was one.
type WriteError = engine.WriteError

// Permanent marks an error of a step as an error that is not retried: the step fails at once, whatever its retry policy.
// Permanent(nil) returns nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// toRecordedFailure converts an error of user code to its recorded form.
func toRecordedFailure(err error) *record.Failure {
	f := &record.Failure{Message: err.Error(), Type: typeNameOf(err), Suspended: errors.Is(err, ErrSuspended)}
	var permanent *permanentError
	if errors.As(err, &permanent) {
		f.Permanent = true
		f.Type = typeNameOf(permanent.error)
	}
	var step *StepError
	if errors.As(err, &step) {
		f.Step, f.Stack, f.CauseType = step.Step, step.Stack, step.Type
	}
	var child *RunError
	if f.Step == "" && errors.As(err, &child) {
		f.Step, f.CauseType = child.Name, child.Type
	}
	var panicked *codecPanicError
	if errors.As(err, &panicked) {
		f.Stack = string(panicked.stack)
	}
	var state *StateError
	if errors.As(err, &state) {
		f.State = &record.FailedState{Run: state.ID, Verb: string(state.Verb), Status: string(state.Status), Detail: state.Detail}
	}
	registry.RLock()
	defer registry.RUnlock()
	for _, code := range registry.codes {
		for _, sentinel := range registry.errors[code] {
			if errors.Is(err, sentinel) {
				f.Codes = append(f.Codes, code)
				break
			}
		}
	}
	return f
}

// typeNameOf returns the Go type of an error of user code.
func typeNameOf(err error) string {
	for d, is := err.(*choiceDecidingError); is; d, is = err.(*choiceDecidingError) {
		err = d.error
	}
	return fmt.Sprintf("%T", err)
}

// toPermanentFailure returns the recorded form of an error that is not retried, because further attempts would return it again.
func toPermanentFailure(err error) *record.Failure {
	f := toRecordedFailure(err)
	f.Permanent = true
	return f
}

// toRecordedRunFailure converts the error of a workflow function to its recorded form. The failure is permanent if the error wraps one of
// a step or child that is. It names all steps whose errors it wraps, because a retry of the run executes them again, and all branches whose
// failures decided a choice, because it makes these choices again.
func toRecordedRunFailure(err error) *record.Failure {
	f := toRecordedFailure(err)
	addCalls := func(names []string, permanent bool) {
		f.Permanent = f.Permanent || permanent
		for _, name := range names {
			f.AddStep(name)
		}
	}
	walkErrorTree(err, func(err error) (wrapsMore bool) {
		switch e := err.(type) {
		case *StepError:
			addCalls(append([]string{e.Step}, e.otherItems...), e.isPermanent)
			return false
		case *RunError:
			addCalls([]string{e.Name}, e.isPermanent)
			return false
		case *choiceDecidingError:
			f.AddBranch(e.branch)
		}
		return true
	})
	return f
}

// walkErrorTree calls f for err and for all errors that it wraps, apart from those within an error for which f returns false.
func walkErrorTree(err error, f func(err error) bool) {
	if err == nil || !f(err) {
		return
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			walkErrorTree(each, f)
		}
	case interface{ Unwrap() error }:
		walkErrorTree(e.Unwrap(), f)
	}
}

func newStepError(name string, f *record.Failure) *StepError {
	err := &StepError{
		Step: name, Attempts: int(max(f.Attempts, 1)), Message: f.Message, Type: f.Type, Stack: f.Stack, sentinelCodes: f.Codes, isPermanent: f.Permanent,
	}
	if s := f.State; s != nil {
		err.stateError = &StateError{ID: s.Run, Verb: Verb(s.Verb), Status: Status(s.Status), Detail: s.Detail}
	}
	return err
}

// newBranchPanicError returns the error of a branch whose function panicked or called runtime.Goexit. It is not recorded.
func newBranchPanicError(name string, f *record.Failure) *StepError {
	err := newStepError(name, f)
	err.isBranchPanic = true
	return err
}

func newRunError(r *store.Run) *RunError {
	f := &record.Failure{Message: "no error was recorded"}
	if len(r.Error) > 0 {
		f = record.DecodeFailure(r.Error)
	}
	return &RunError{
		ID: r.NameOrUUID(), Name: childCallName(r), Workflow: r.Workflow, Status: Status(r.Status.String()), Message: f.Message,
		Type: f.Type, Step: f.Step, Stack: f.Stack, sentinelCodes: f.Codes, isPermanent: f.Permanent,
	}
}
