package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Branch is a scope of its own that a recorded choice can end before the run ends. After a choice has ended a branch, calls in the
// branch and in its nested branches return ErrCancelled if they have no recorded result.
type Branch struct {
	scope  Scope   // in which the branch makes its calls
	parent *Branch // the branch in which this branch was started; nil: none

	// A choice that ends the branch holds commitLock exclusively until the choice is durable. Commits that must not follow the
	// choice hold it shared: the start of a child, and a query that takes a signal. Locks are taken in the order of the scopes'
	// prefixes.
	commitLock sync.RWMutex

	ctx, stepsCtx branchContext // of the calls in the branch, and the parent of its steps' contexts

	stackBase   atomic.Uintptr // stack.Base of the goroutine of the branch; zero: it has not begun
	hasBranches atomic.Bool    // branches were started in the branch
	hasNextCall atomic.Bool    // a preflight has refused a call in the branch or in one of its nested branches
	isGraphNode bool           // see OpenGraphNodeBranch

	endByChoice            *branchEndedByChoice // guarded by run.mu; nil: no choice has ended the branch
	hasCallRefusedAfterEnd bool                 // guarded by run.mu: a call in the branch returned ErrCancelled, because a choice had ended this branch or one around it
}

// OpenBranch opens a branch of this scope. The names of all calls in the branch begin with the name of the branch, so no other call of
// this scope may have that name. The database has no row for the branch itself, only for its calls.
func (s *Scope) OpenBranch(name string, site uintptr) (*Branch, error) {
	b := new(Branch)
	return b, s.openBranch(b, name, s.fullBranchName(name)+naming.Separator, site)
}

// OpenGraphNodeBranch opens the branch of a graph's node, in which only the library makes calls. The scope must be that of the workflow function.
// One goroutine makes all calls of the branch, and makes none inside the function of another call, so that durable need not walk the
// stack to check this. Code must not start further branches in a branch of a graph's node. The branch is stored in b, which is empty, and prefix
// is the node's name with the separator of scopes: graphs allocate both for many branches together.
func (s *Scope) OpenGraphNodeBranch(b *Branch, prefix string, site uintptr) error {
	b.isGraphNode = true
	return s.openBranch(b, strings.TrimSuffix(prefix, naming.Separator), prefix, site)
}

func (s *Scope) openBranch(b *Branch, name, prefix string, site uintptr) error {
	if err := naming.Check("branch", name); err != nil {
		return err
	}
	r := s.r
	full := strings.TrimSuffix(prefix, naming.Separator)
	if !b.isGraphNode && s.isInsideCall() {
		return nestedCallError(r, full)
	}
	r.mu.Lock()
	err := s.reserveNameLocked(full, site)
	if err != nil {
		err = s.explainOldNameUsedAgain(full, err)
		r.mu.Unlock()
		if errors.Is(err, ErrDiverged) {
			s.reportDivergence(full, err)
		}
		return err
	}
	defer r.mu.Unlock()
	b.parent, b.scope = s.branch, *s
	if s.branch != nil {
		s.branch.hasBranches.Store(true)
	}
	sub := &b.scope
	sub.namePrefix, sub.branch = prefix, b
	b.ctx.parent, b.stepsCtx.parent = s.ctx, s.stepsCtx
	sub.ctx, sub.stepsCtx = &b.ctx, &b.stepsCtx
	if b.endByChoice = r.branchEnds[sub.namePrefix]; b.endByChoice != nil {
		b.endByChoice.branch = b
		b.endByChoice.endContextsIfReplayed()
	}
	return nil
}

// ReserveName reserves a name in the scope for a call that has no row. The argument what is the kind of the call.
func (s *Scope) ReserveName(what, name string, site uintptr) error {
	if err := naming.Check(what, name); err != nil {
		return err
	}
	full := s.fullName(name)
	if s.isInsideCall() {
		return nestedCallError(s.r, full)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.reserveNameLocked(full, site)
}

// Scope returns the scope in which the branch makes its calls.
func (b *Branch) Scope() *Scope { return &b.scope }

// WasEndedByChoice reports whether a recorded choice ended the branch before the branch had returned. The result of a branch that a choice
// ended is valid only if no call in the branch was refused.
func (b *Branch) WasEndedByChoice() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.endByChoice != nil && !b.endByChoice.hadReturned
}

// WasBranchEndedByChoice does the same as [Branch.WasEndedByChoice] for the branch with the given name in this scope, which need not be
// open.
func (s *Scope) WasBranchEndedByChoice(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	end := s.r.branchEnds[s.fullName(name)+naming.Separator]
	return end != nil && !end.hadReturned
}

// HasCallRefusedAfterEnd reports whether a call in the branch was refused because a choice had ended the branch or a branch around it.
// SettleItems tells which items of a Map count as refused calls. A branch with a refused call did not come to its own end. In a branch
// without a refused call, all calls are recorded, so the branch returns the same result in every replay.
func (b *Branch) HasCallRefusedAfterEnd() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.hasCallRefusedAfterEnd
}

// endContexts ends the contexts of the branch.
func (b *Branch) endContexts() {
	b.ctx.end(ErrCancelled)
	b.stepsCtx.end(ErrCancelled)
}

// preventEndByChoice prevents choices from ending the branch, or a branch around it, until allowEndByChoice is called. b may be nil.
func (b *Branch) preventEndByChoice() {
	if b != nil {
		b.parent.preventEndByChoice()
		b.commitLock.RLock()
	}
}

func (b *Branch) allowEndByChoice() {
	for ; b != nil; b = b.parent {
		b.commitLock.RUnlock()
	}
}

// earliestEndOfBranchOrAncestor returns the earliest time at which the branch or a branch around it was ended. It returns zero
// if none was ended. b may be nil. The caller holds run.mu.
func (b *Branch) earliestEndOfBranchOrAncestor() (first time.Time) {
	for ; b != nil; b = b.parent {
		if b.endByChoice != nil && (first.IsZero() || b.endByChoice.endedAt.Before(first)) {
			first = b.endByChoice.endedAt
		}
	}
	return first
}

// countReplayedCall notes that a call in the branch returned its recorded result. b may be nil. The caller holds
// run.mu.
func (b *Branch) countReplayedCall() {
	for ; b != nil; b = b.parent {
		if b.endByChoice != nil {
			b.endByChoice.rowsToReplay--
			b.endByChoice.endContextsIfReplayed()
		}
	}
}

// NestedScope returns the scope with the given name inside this scope. A nested scope is not a branch, and NestedScope does not reserve the
// name.
func (s *Scope) NestedScope(name string) *Scope { return s.subScope(s.namePrefix + name) }

// subScope returns the scope with the name full inside this scope.
func (s *Scope) subScope(full string) *Scope {
	sub := *s
	sub.namePrefix = full + naming.Separator
	return &sub
}

// DeferRefusedItems makes the scope of a Map's items note whether an item is refused because a choice has ended the branch. A refused item
// does not count as a refused call of the branch before SettleItems is called.
func (s *Scope) DeferRefusedItems() { s.itemRefused = new(bool) }

// SettleItems is called when all items of the Map have returned. The argument hasFailed says whether an item has failed, and leftOut says
// whether the Map has therefore not executed some items. If an item has failed, refused items do not count as refused calls of the branch,
// because a replay stops the Map at the recorded failure and does not know which other items had begun. In the branch of a graph's node,
// refused items always count, and so do items that were left out, because the history does not show whether an item was refused or left out.
func (s *Scope) SettleItems(hasFailed, leftOut bool) {
	if s.branch == nil {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.branch.isGraphNode && (*s.itemRefused || leftOut) || *s.itemRefused && !hasFailed {
		s.branch.hasCallRefusedAfterEnd = true
	}
}

// noteCallRefusedAfterEndLocked notes that a call was refused because a choice has ended the branch or a branch around it. r.mu is held.
func (s *Scope) noteCallRefusedAfterEndLocked() {
	if s.itemRefused != nil {
		*s.itemRefused = true
		return
	}
	s.branch.hasCallRefusedAfterEnd = true
}

// FindBegunCalls reports which of the given names have a row of this scope in the run's history, or had one that a Rerun has dropped, and whether
// any of these rows is a failure. The result begun is nil if none of the names has a row.
func (s *Scope) FindBegunCalls(names []string) (begun []bool, failed bool) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.history) == 0 {
		return nil, false
	}
	full := []byte(s.namePrefix)
	for i, name := range names {
		key := append(full, name...)
		row := r.history[string(key)]
		if row == nil && !r.keyRenewals.rerunItems[string(key)] {
			continue
		}
		if begun == nil {
			begun = make([]bool, len(names))
		}
		begun[i] = true
		failed = failed || row != nil && row.Status == store.StepFailed
	}
	return begun, failed
}

// Go executes fn in a goroutine that the run owns: the engine writes the run's end only after fn has returned. If fn panics or calls
// runtime.Goexit, Go calls failed with the failure. Go returns ErrSuspended without calling fn if the run no longer waits for its
// goroutines.
func (s *Scope) Go(fn func(), failed func(*record.Failure)) error {
	r := s.r
	if !r.beginGoroutine() {
		return ErrSuspended
	}
	r.idleTracker.noteGoroutineStart()
	go func() {
		defer r.endGoroutine()
		if s.branch != nil {
			s.branch.stackBase.Store(stack.BaseFunction())
		}
		s.CallCatchingPanicAndGoexit(fn, failed)
	}()
	return nil
}

// CallCatchingPanicAndGoexit calls fn. If fn panics or calls runtime.Goexit, CallCatchingPanicAndGoexit calls failed with the failure. After a
// panic of fn, CallCatchingPanicAndGoexit returns normally.
func (s *Scope) CallCatchingPanicAndGoexit(fn func(), failed func(*record.Failure)) {
	returned := false
	defer func() {
		if v := recover(); v != nil {
			f := panicFailure(v, debug.Stack())
			s.r.logger().Error("a branch panicked", telemetry.KeyError, f.Message, telemetry.KeyStack, f.Stack)
			failed(f)
		} else if !returned {
			failed(&record.Failure{Message: fmt.Sprintf("branch %q called runtime.Goexit", naming.Display(s.namePrefix)), Codes: []string{record.CodeGoexit}})
		}
	}()
	fn()
	returned = true
}

// beginGoroutine counts one more goroutine of the run. It reports false if the run no longer waits for its
// goroutines.
func (r *run) beginGoroutine() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.goroutines.begin()
}

func (r *run) endGoroutine() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goroutines.end()
}

// awaitGoroutines waits for the goroutines of the run. A goroutine that is still replaying its history continues
// until its history ends.
func (r *run) awaitGoroutines() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for last := r.goroutines.returnedChan(); last != nil; last = r.goroutines.returnedChan() {
		r.mu.Unlock()
		<-last
		r.mu.Lock()
	}
	r.goroutines.allReturned = true
	if r.returnTimer != nil {
		r.returnTimer.Stop()
	}
	if r.contextEndTimer != nil {
		r.contextEndTimer.Stop()
		r.contextEndTimer = nil
	}
}

// HasCallBegun reports whether the run's history has a row for the call with this name in this scope, because an earlier
// execution of the run began the call.
func (s *Scope) HasCallBegun(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.r.history[s.fullName(name)] != nil
}

// HasBegunCallInNestedScope reports whether the run's history has a row for any call in the nested scope with the given name.
func (s *Scope) HasBegunCallInNestedScope(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	prefix := s.namePrefix + name + naming.Separator
	for full := range s.r.history {
		if strings.HasPrefix(full, prefix) {
			return true
		}
	}
	return false
}

// HasCallOutcome reports whether the run's history has the outcome of the call with this name in this scope.
func (s *Scope) HasCallOutcome(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	row := s.r.history[s.fullName(name)]
	return row != nil && row.Status.IsTerminal()
}
