package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// A Scope is a namespace in which a run makes durable calls. Names are unique within a scope.
type Scope struct {
	r            *run
	namePrefix   string
	mapName      string          // the name of the Map, under which metrics and spans show the steps of its items; empty: the scope is not that of a Map's items
	ctx          context.Context // ends when calls in the scope can do nothing new
	stepsCtx     context.Context // the parent of the steps' contexts
	compensating bool            // the scope of compensations, which are executed after the function has returned
	branch       *Branch         // the branch of the scope; nil: the workflow function itself
	isInsideStep bool            // calls in the scope are made with the context of a step's function
	mapRow       *mapRow         // the row of the Map whose items the scope holds; nil: none is to be written
	newMapIn     *Scope          // the scope around a Map that is not recorded, whose goroutine has made the Map; see noteNewMap
	itemRefused  *bool           // guarded by run.mu: see SettleItems; nil: the scope is not that of a Map's items
}

// WithNestingFromContext returns the scope for a call that is made with ctx. If ctx is the context of a step's function, the call counts as
// nested in that step, whichever goroutine makes the call.
func (s *Scope) WithNestingFromContext(ctx context.Context) *Scope {
	if ctx == s.ctx || ctx == nil {
		return s
	}
	if _, attempt := ctx.Value(attemptContextKey{}).(*stepTask); !attempt {
		return s
	}
	inside := *s
	inside.isInsideStep = true
	return &inside
}

// isInsideCall reports whether a durable call is made from inside the function of another durable call. It
// inspects the stack, which is slow, only when a durable call is being executed.
func (s *Scope) isInsideCall() bool {
	return s.isInsideStep || !(s.branch != nil && s.branch.isGraphNode) && s.r.idleTracker.hasExecutingCall() && isInsideStep()
}

// Context returns the context of the workflow function or of the scope's branch. The context of the workflow function ends when the run is
// suspended or must end. The context of a branch also ends when the branch is cancelled.
func (s *Scope) Context() context.Context { return s.ctx }

// checkOpen returns why a call in this scope can do nothing new, or nil if it can.
func (s *Scope) checkOpen() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.checkOpenLocked()
	if errors.Is(err, ErrSuspended) {
		s.r.noteGoroutineNotifiedOfSuspension()
	}
	return err
}

// endReason returns the same as checkOpen, but does not record that a call was refused. It is for a wait that may still return
// without an error.
func (s *Scope) endReason() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	err := s.endReasonLocked()
	if err == ErrSuspended {
		s.r.noteGoroutineNotifiedOfSuspension()
	}
	return err
}

// noteGoroutineNotifiedIfSuspended records, if the run is suspended, that the calling goroutine has been notified of the suspension.
func (s *Scope) noteGoroutineNotifiedIfSuspended() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.r.suspension != nil {
		s.r.noteGoroutineNotifiedOfSuspension()
	}
}

// checkOpenLocked does the same as checkOpen for callers that hold r.mu.
func (s *Scope) checkOpenLocked() error {
	err := s.endReasonLocked()
	if err == ErrCancelled && s.branch != nil {
		s.branch.endContexts() // in a replay, the contexts of the branch may not have ended yet
		if !s.branch.earliestEndOfBranchOrAncestor().IsZero() {
			s.noteCallRefusedAfterEndLocked()
		}
	}
	if d := s.r.forcedEnd; d != nil && err == d.cause { // nor may the run's contexts
		s.r.endContextsUnlessRepeatingLocked()
	}
	return err
}

// mustEndLocked reports whether the run or the branch must end, although its function could continue. r.mu is held.
func (s *Scope) mustEndLocked() bool {
	return s.r.suspension == nil && (!s.branch.earliestEndOfBranchOrAncestor().IsZero() || s.r.forcedEnd != nil && !s.compensating)
}

// endReasonLocked returns the same as checkOpenLocked, but has no effects. r.mu is held.
func (s *Scope) endReasonLocked() error {
	switch r := s.r; {
	case r.suspension != nil:
		return ErrSuspended
	case s.compensating:
		return nil
	case !s.branch.earliestEndOfBranchOrAncestor().IsZero():
		return ErrCancelled // even if the run itself must end now, because the first execution returned it
	case r.forcedEnd != nil:
		return r.forcedEnd.cause
	case r.goroutines.functionReturned:
		return r.callOpenAtReturnError()
	default:
		return context.Cause(s.ctx)
	}
}

// Engine returns the engine that executes the run.
func (s *Scope) Engine() *Engine { return s.r.e }

// RunUUID returns the run's UUID.
func (s *Scope) RunUUID() uuid.UUID { return s.r.row.UUID }

// RunNameOrUUID returns the text with which users refer to the run: the name of a root, or the UUID of a child.
func (s *Scope) RunNameOrUUID() string { return s.r.row.NameOrUUID() }

// Workflow returns the name of the run's workflow.
func (s *Scope) Workflow() string { return s.r.row.Workflow }

// IsReplaying reports whether the run has executed nothing new yet in this process.
func (s *Scope) IsReplaying() bool { return !s.r.pastReplay.Load() }

// UnfilteredLogger returns the engine's logger with the attributes of the run. It also writes during a replay.
func (s *Scope) UnfilteredLogger() *slog.Logger { return s.r.logger() }

// DisplayName returns the name of a call with its scope, formatted for errors and logs. If a renamed call is recorded under its previous
// name, DisplayName returns the previous name, by which a repair finds the call.
func (s *Scope) DisplayName(name string) string { return naming.Display(s.fullName(name)) }

// beginCall marks the name as used in this execution, and returns its row in history, or nil. site is
// where the user's code made the call. If there is no terminal row and the scope can do nothing new, beginCall returns an error. A
// started child needs no terminal row, because history holds only its start.
func (s *Scope) beginCall(full string, kind store.StepKind, site uintptr) (*store.Step, error) {
	recorded, err := s.beginCallWithoutReportingDivergence(full, kind, site)
	if errors.Is(err, ErrDiverged) {
		s.reportDivergence(full, err)
	}
	return recorded, err
}

// beginCallWithoutReportingDivergence does the same as beginCall, but does not hold the run if the call diverges.
func (s *Scope) beginCallWithoutReportingDivergence(full string, kind store.StepKind, site uintptr) (*store.Step, error) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	recorded, err := s.beginCallLocked(full, kind, site)
	if err != nil || recorded != nil && (recorded.Status.IsTerminal() || kind == store.KindChild) {
		return recorded, err
	}
	judges := s.r.isRepeatingBeforeEndLocked() && naming.Check("call", full[len(scopePrefix(full)):]) == nil // a call with an invalid name proves nothing
	if err = s.checkOpenLocked(); err != nil && judges {
		if diverged := s.checkMissingCallsAtOpenCallLocked(full, kind, recorded); diverged != nil {
			err = diverged
		}
	}
	return recorded, err
}

// checkMayExecuteCall is called when a call that is valid is about to be executed, because it has no outcome in the history. It returns an
// error if the call must not be executed.
func (s *Scope) checkMayExecuteCall(full string, kind store.StepKind, recorded *store.Step) error {
	if s.r.preflightFindings != nil {
		return s.refuseInPreflight(full, kind)
	}
	return s.checkNoCallsMissing(full, kind, recorded)
}

// checkNoCallsMissing returns an error if recorded calls are missing before an open call, which is about to be executed or to wait.
func (s *Scope) checkNoCallsMissing(full string, kind store.StepKind, recorded *store.Step) error {
	if !s.r.checksMissingCalls {
		return nil
	}
	s.r.mu.Lock()
	err := s.checkMissingCallsAtOpenCallLocked(full, kind, recorded)
	s.r.mu.Unlock()
	if err == nil && s.branch != nil && s.r.preflightFindings == nil {
		err = s.awaitFunctionReplay(full)
	}
	if err != nil {
		return s.reportDivergence(full, err)
	}
	return nil
}

// beginCallLocked does the same as beginCall, but does not check whether the scope can do anything new. r.mu is
// held.
func (s *Scope) beginCallLocked(full string, kind store.StepKind, site uintptr) (*store.Step, error) {
	r := s.r
	if err := s.reserveNameLocked(full, site); err != nil {
		return nil, s.explainOldNameUsedAgain(full, err)
	}
	recorded := r.history[full]
	s.notifyTestHooks(full, kind, recorded)
	if recorded != nil && recorded.Kind != kind {
		return nil, kindMismatchError(&r.row, full, recorded.Kind, kind)
	}
	if recorded == nil || !recorded.Status.IsTerminal() {
		r.pastReplay.Store(true)
		return recorded, nil
	}
	r.noteReplayedCallLocked()
	s.branch.countReplayedCall()
	return recorded, nil
}

// reserveNameLocked marks the name as used. After the function has returned, its branches still make the calls that are
// in their history, because these calls may register compensations. r.mu is held.
func (s *Scope) reserveNameLocked(full string, site uintptr) error {
	r := s.r
	if len(full) > naming.MaxScopedName {
		return fmt.Errorf("%w: %.40q… has %d bytes with the scopes around it, at most %d are kept: shorten the names", naming.ErrInvalid, naming.Display(full), len(full), naming.MaxScopedName)
	}
	over := r.goroutines.allReturned || r.goroutines.functionReturned && s.branch == nil
	if r.suspension == nil && over && isInsideStep() {
		return nestedCallError(r, full) // a call inside a compensation
	}
	if r.suspension != nil || over {
		r.noteRefusedCall()
		if r.suspension == nil {
			return r.refuseLateCall(full, site)
		}
		return ErrSuspended
	}
	if first, twice := r.markNameUsed(full, site); twice {
		return fmt.Errorf("%w: %q in run %q (%s and %s): names are keys; use Map, or add the item's key to the name in a loop",
			ErrDuplicateStep, naming.Display(full), r.row.NameOrUUID(), stack.Position(first), stack.Position(site))
	}
	r.noteCallMade(full)
	return nil
}
