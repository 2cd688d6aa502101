package durable

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Errors to test for with errors.Is. The table in the package comment says when each
// appears.
var (
	// ErrSuspended is what every durable call answers once its run leaves this
	// process: return it. What the workflow function returns then is ignored.
	ErrSuspended = engine.ErrSuspended
	// ErrShutdown, ErrLeaseLost, ErrParked, ErrPaused and ErrHeld are the causes (context.Cause) of a
	// suspended run's Ctx.
	ErrShutdown  = engine.ErrShutdown
	ErrLeaseLost = engine.ErrLeaseLost
	ErrParked    = engine.ErrParked
	ErrPaused    = engine.ErrPaused
	// ErrHeld is a further one: the database has rejected what the run records for longer than
	// Config.Patience; or the code does not register a compensation that a failed run has yet to execute. The run
	// is released, and comes back after 1 s to 5 min.
	ErrHeld = engine.ErrHeld
	// ErrReturned is returned by a durable call that is made after the workflow function has returned, or
	// was under way then: by a goroutine that the function did not await. Such an error is ErrSuspended
	// as well. Start goroutines with Ctx.Go, and await them with Wait or All.
	ErrReturned = engine.ErrReturned

	// ErrDuplicateStep: one name was used twice in one scope of one run.
	ErrDuplicateStep = engine.ErrDuplicateStep
	// ErrNestedStep: a durable call was made inside a step's function.
	ErrNestedStep = engine.ErrNestedStep
	// ErrOutsideStep: a workflow function gave its Ctx, or a context derived from it, to IdempotencyKey, which panics
	// with it, or outside of its steps to a call of an Engine, a Workflow or a store's StartTx or SignalTx that writes. Such a
	// call would be made again in every replay: use Ctx.Start, Ctx.StartChild, Ctx.Signal or Ctx.SetTags, or make it in a
	// step. Calls that only read are made; what they return is not recorded.
	ErrOutsideStep = engine.ErrOutsideStep
	// ErrInsideTx: an engine that works on SQLite was called inside a Tx step's function, for which it
	// would wait.
	ErrInsideTx = engine.ErrInsideTx
	// ErrDiverged: the code asks for something else than history holds.
	ErrDiverged = engine.ErrDiverged
	// ErrInvalidName: a text that cannot be a name (see MaxName).
	ErrInvalidName = engine.ErrInvalidName

	// ErrInvalidToken: a text that is not, or not unaltered, a token of this database's.
	ErrInvalidToken = engine.ErrInvalidToken

	// ErrIDConflict: the ID exists with another workflow or input.
	ErrIDConflict = engine.ErrIDConflict
	// ErrNotFound: no run has that ID.
	ErrNotFound = engine.ErrNotFound
	// ErrNotRegistered: Config.Workflows lacks the workflow.
	ErrNotRegistered = errors.New("durable: the workflow is not registered")
	// ErrRunning: Run was called twice.
	ErrRunning = engine.ErrRunning
	// ErrInvalidConfig: a Config, an option or a definition that cannot work.
	ErrInvalidConfig = errors.New("durable: invalid configuration")

	// ErrNotEncodable: a value has no faithful JSON form.
	ErrNotEncodable = errors.New("durable: the value cannot be encoded")
	// ErrPayloadTooLarge: an encoded value exceeds Config.MaxPayload.
	ErrPayloadTooLarge = errors.New("durable: the value is too large")

	// ErrTimeout: the time of a step's attempt, of a whole step, of a wait or of a run is over.
	ErrTimeout = engine.ErrTimeout
	// ErrCancelled: the run, or the branch, was cancelled. Return it.
	ErrCancelled = engine.ErrCancelled
	// ErrTerminated: the run was ended by Terminate. Such a run is ErrCancelled as well.
	ErrTerminated = engine.ErrTerminated
	// ErrCrashLoop: the run's process died, or the run was held, Config.MaxCrashes times in a row without a new
	// checkpoint, and Config.FailAtMaxCrashes is set.
	ErrCrashLoop = errors.New("durable: the run crashed too often without a new checkpoint")
	// ErrCompensation: a compensation of the run finally failed.
	ErrCompensation = errors.New("durable: a compensation failed")
	// ErrState: a run is in no state for what was asked; it is in every *StateError.
	ErrState = errors.New("durable: the run's state does not allow it")
	// ErrInvalidCursor: a text that no list or outbox of this database answered.
	ErrInvalidCursor = errors.New("durable: invalid cursor")
	// ErrPanic: a step or a workflow panicked; StepError.Stack and RunError.Stack say where.
	ErrPanic = errors.New("durable: panicked")
	// ErrOutcomeUnknown: an AtMostOnce step began, its process died, and nobody knows
	// whether it took effect.
	ErrOutcomeUnknown = errors.New("durable: it is not known whether the step took effect")
	// ErrRefused: the database refused a value that was encoded well.
	ErrRefused = errors.New("durable: the database refused the value")
	// ErrGoexit: a step or a workflow ended its goroutine by runtime.Goexit.
	ErrGoexit = errors.New("durable: the function left by runtime.Goexit")

	// ErrUnavailable: the database could not be reached for longer than Config.Patience.
	// The same call may be made again; see WriteError.
	ErrUnavailable = store.ErrUnavailable
	// ErrRejected: the database rejected a statement for longer than Config.Patience, and no
	// value is the cause: a privilege is missing, a table was renamed, an index is damaged. The
	// database's own error is beneath it.
	ErrRejected = store.ErrRejected
	// ErrPermission: the database refused a privilege. It is an ErrRejected, and callers outside of runs
	// get it at once: grant the privilege to the database's role, see docs/operations.md, or make the
	// SQLite file writable, and make the same call again.
	ErrPermission = store.ErrPermission
	// ErrLocked: another transaction, perhaps one with StartTx or SignalTx, has held a row or
	// a name that the call needs for longer than Config.Patience, or than the call's context.
	ErrLocked = store.ErrLocked
	// ErrClosed: the store was closed before, or meanwhile.
	ErrClosed = store.ErrClosed
	// ErrMoved: the file of an SQLite database, or its write-ahead log, was deleted, moved or
	// replaced under this process. The store is of no more use, and [Engine.Run] returns the error.
	ErrMoved = store.ErrMoved
	// ErrSchema: the database's schema is newer or older than this code's.
	ErrSchema = store.ErrSchema
)

// StepError is the recorded failure of a step: the same on the first run and on every
// replay. Message, Type and Stack are recorded up to 16 KiB each; the rest is cut off, and " (cut)" says so.
// Sentinels given to RegisterError, and the library's own, are found in it:
//
//	var failed *durable.StepError
//	if errors.As(err, &failed) { log.Print(failed.Step, failed.Attempts) }
//	if errors.Is(err, ErrCardDeclined) { ... }
type StepError struct {
	Step     string // with its scope; of a panic in a branch: the branch
	Attempts int
	Message  string // the text of the error that the last attempt returned
	Type     string // its Go type, for people
	Stack    string // of a panic
	codes    []string
	state    *StateError // that the recorded error was
	branch   bool        // it is that of a branch started by Go, and not of a step
}

// Error tells the step, the attempts and the last message.
func (e *StepError) Error() string {
	switch {
	case e.branch:
		return fmt.Sprintf("branch %q failed: %s", e.Step, e.Message)
	case e.Attempts == 1:
		return fmt.Sprintf("step %q failed: %s", e.Step, e.Message)
	}
	return fmt.Sprintf("step %q failed after %d attempts: %s", e.Step, e.Attempts, e.Message)
}

// Unwrap returns the registered sentinels that the recorded error matched, and the *StateError that it
// was, if it was one; none of nil, as Checkpoint.Err is where nothing has failed.
func (e *StepError) Unwrap() []error {
	if e == nil {
		return nil
	}
	all := sentinels(e.codes)
	if e.state != nil {
		all = append(all, e.state)
	}
	return all
}

// RunError is the recorded failure, cancellation or expiry of a run. Message, Type and Stack are recorded up to 16 KiB
// each, as those of a StepError.
type RunError struct {
	ID       string // a root's: the caller's ID; a child's: its UUID
	Name     string // a child's: of the call that started it, with its scope; empty for a root
	Workflow string
	Status   Status // StatusFailed, StatusCancelled or StatusExpired
	Message  string // the text of the error that the workflow function returned
	Type     string
	Step     string // the step whose failure it returned, if it was one
	Stack    string // of a panic
	codes    []string
}

// Error tells the run, its workflow and the message.
func (e *RunError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("child %q (run %s) of workflow %q %s: %s", e.Name, e.ID, e.Workflow, e.Status, e.Message)
	}
	return fmt.Sprintf("run %q of workflow %q %s: %s", e.ID, e.Workflow, e.Status, e.Message)
}

// Unwrap answers the registered sentinels that the recorded error matched; none of nil, as
// RunInfo.Err is where nothing has failed.
func (e *RunError) Unwrap() []error {
	if e == nil {
		return nil
	}
	return sentinels(e.codes)
}

// WriteError is in every error of a start, a signal, a pause, resume or cancel that was sent
// to the database and not acknowledged. It tells whether the call may have taken effect:
//
//	var failed *durable.WriteError
//	if errors.As(err, &failed) && failed.MayHaveCommitted { /* make the same call again */ }
//
// It has two fields:
//
//   - MayHaveCommitted bool: true if the write may be durable all the same, since its answer was lost or was not waited
//     for. The same call, made again, finds out. False: nothing was written, and nothing will be.
//   - Err error: why the write was given up; errors.Is and errors.As look into it.
//
// Err is ErrUnavailable, ErrRejected, ErrLocked, ErrSchema, or the end of the
// call's context, with the last of those if there was one.
type WriteError = engine.WriteError

// Permanent marks an error of a step as not worth another attempt: the step fails at
// once, whatever its retry policy. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// failureOf is the recorded form of an error that user code returned.
func failureOf(err error) *engine.Failure {
	f := &engine.Failure{Message: err.Error(), Type: fmt.Sprintf("%T", err), Suspended: errors.Is(err, ErrSuspended)}
	var permanent *permanentError
	if errors.As(err, &permanent) {
		f.Permanent = true
		f.Type = fmt.Sprintf("%T", permanent.error)
	}
	var step *StepError
	if errors.As(err, &step) {
		f.Step, f.Stack = step.Step, step.Stack
	}
	var panicked *codecPanic
	if errors.As(err, &panicked) {
		f.Stack = string(panicked.stack)
	}
	var state *StateError
	if errors.As(err, &state) {
		f.State = &engine.FailedState{Run: state.ID, Verb: string(state.Verb), Status: string(state.Status), Detail: state.Detail}
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

// permanently is failureOf for errors that another attempt would only meet again.
func permanently(err error) *engine.Failure {
	f := failureOf(err)
	f.Permanent = true
	return f
}

func stepError(name string, f *engine.Failure) *StepError {
	err := &StepError{
		Step: name, Attempts: int(max(f.Attempts, 1)), Message: f.Message, Type: f.Type, Stack: f.Stack, codes: f.Codes,
	}
	if s := f.State; s != nil {
		err.state = &StateError{ID: s.Run, Verb: Verb(s.Verb), Status: Status(s.Status), Detail: s.Detail}
	}
	return err
}

// branchError is the failure of a branch, which is in no record.
func branchError(name string, f *engine.Failure) *StepError {
	err := stepError(name, f)
	err.branch = true
	return err
}

func runError(r *store.Run) *RunError {
	f := &engine.Failure{Message: "no error was recorded"}
	if len(r.Error) > 0 {
		f = engine.DecodeFailure(r.Error)
	}
	return &RunError{
		ID: r.Address(), Name: childName(r), Workflow: r.Workflow, Status: Status(r.Status.String()), Message: f.Message,
		Type: f.Type, Step: f.Step, Stack: f.Stack, codes: f.Codes,
	}
}
