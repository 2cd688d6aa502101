package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Branch is a scope of its own that a choice can end before the run's end. From then on its
// calls that history does not answer return ErrCancelled, and so do those of the branches in it.
type Branch struct {
	scope *Scope
	above *Branch // the branch that it was started in; nil: none

	// commit is held exclusively by a choice that ends the branch, until the choice is durable,
	// and shared by commits that must not come after that: the start of a child, and a look for
	// a signal. Locks are taken in the order of the scopes' prefixes.
	commit sync.RWMutex

	endCtx, endWork context.CancelCauseFunc

	end     *branchEnd // with run.mu; nil: no choice has ended it
	refused bool       // with run.mu: a call in it returned ErrCancelled, since a choice had ended it or one around it
}

// Branch opens a scope within this one: its names are prefixed by the given one, which is
// then used up here. It leaves no row.
func (s *Scope) Branch(name string, site uintptr) (*Branch, error) {
	if err := CheckName("branch", name); err != nil {
		return nil, err
	}
	r := s.r
	full := s.prefix + name
	if s.nested() {
		return nil, nestedError(r, full)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.use(full, site); err != nil {
		return nil, err
	}
	b := &Branch{above: s.branch}
	sub := s.within(full)
	sub.branch, b.scope = b, sub
	sub.work, b.endWork = context.WithCancelCause(s.work)
	sub.ctx, b.endCtx = context.WithCancelCause(s.ctx)
	if b.end = r.ended[sub.prefix]; b.end != nil {
		b.end.branch = b
		b.end.caughtUp()
	}
	return b, nil
}

// UseName uses up a name in the scope for a call that leaves no row. what is the kind of the call.
func (s *Scope) UseName(what, name string, site uintptr) error {
	if err := CheckName(what, name); err != nil {
		return err
	}
	full := s.prefix + name
	if s.nested() {
		return nestedError(s.r, full)
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.use(full, site)
}

// Scope is where the branch makes its calls.
func (b *Branch) Scope() *Scope { return b.scope }

// Ended reports whether a recorded choice ended the branch before it had returned: then its
// result holds only if no call of it was refused.
func (b *Branch) Ended() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.end != nil && !b.end.returned
}

// Refused reports whether a call in the branch was refused because a choice had ended it, or a branch around it.
// Then the branch did not come to its own end. Otherwise all its calls are recorded, and what it returned is
// what it returns in every replay.
func (b *Branch) Refused() bool {
	b.scope.r.mu.Lock()
	defer b.scope.r.mu.Unlock()
	return b.refused
}

// stop ends the contexts of the branch.
func (b *Branch) stop() {
	b.endCtx(ErrCancelled)
	b.endWork(ErrCancelled)
}

// hold keeps choices from ending the branch, or one around it, until release is called. b may be nil.
func (b *Branch) hold() {
	if b != nil {
		b.above.hold()
		b.commit.RLock()
	}
}

func (b *Branch) release() {
	for ; b != nil; b = b.above {
		b.commit.RUnlock()
	}
}

// endedAt returns since when the branch, or one around it, has been ended, zero if it has not. b may
// be nil. run.mu is held.
func (b *Branch) endedAt() (first time.Time) {
	for ; b != nil; b = b.above {
		if b.end != nil && (first.IsZero() || b.end.at.Before(first)) {
			first = b.end.at
		}
	}
	return first
}

// replayed notes that history has answered a call in the branch. b may be nil. run.mu is held.
func (b *Branch) replayed() {
	for ; b != nil; b = b.above {
		if b.end != nil {
			b.end.unasked--
			b.end.caughtUp()
		}
	}
}

// within is the scope called full in this one.
func (s *Scope) within(full string) *Scope {
	sub := *s
	sub.prefix = full + separator
	return &sub
}

// Counted opens a scope for a Map: it records how many items there are, so that others can tell
// how far it is. Nobody waits for that row; the function returned is called at the Map's
// end. In a scope that can do nothing new the row is left out, and each item is answered for itself.
func (s *Scope) Counted(name string, site uintptr, total int) (*Scope, func(), error) {
	if err := CheckName("map", name); err != nil {
		return nil, nil, err
	}
	full := s.prefix + name
	s.r.mu.Lock()
	recorded, err := s.claim(full, store.KindMap, site)
	out := s.out()
	s.r.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if s.nested() {
		return nil, nil, nestedError(s.r, full)
	}
	sub := s.within(full)
	sub.label = name
	if recorded != nil || total == 0 || out != nil {
		return sub, func() {}, nil
	}
	t := &task{r: s.r, s: s, spec: &Spec{Kind: store.KindMap}, name: full, attempt: 1, first: s.r.e.clock.now()}
	entry, err := s.r.e.journal.AppendMarker(t.row(store.StepCompleted, strconv.AppendInt(nil, int64(total), 10), nil))
	if err != nil {
		return sub, func() {}, nil // the items' own writes meet the same end
	}
	return sub, func() { _, _ = s.r.e.journal.SettleMarker(entry) }, nil
}

// Begun reports which of the names in this scope have a row in history, and whether one of these is
// a failure. begun is nil if none has.
func (s *Scope) Begun(names []string) (begun []bool, failed bool) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.history) == 0 {
		return nil, false
	}
	full := []byte(s.prefix)
	for i, name := range names {
		row := r.history[string(append(full, name...))]
		if row == nil {
			continue
		}
		if begun == nil {
			begun = make([]bool, len(names))
		}
		begun[i] = true
		failed = failed || row.Status == store.StepFailed
	}
	return begun, failed
}

// Go runs fn in a goroutine that the run owns: its end is awaited before the run's own is
// written. failed is called with a panic of it, or its runtime.Goexit. ErrSuspended is returned, and
// nothing is run, if the run's end has not waited for it.
func (s *Scope) Go(fn func(), failed func(*Failure)) error {
	r := s.r
	if !r.branched() {
		return ErrSuspended
	}
	r.idle.branched()
	go func() {
		defer r.branchReturned()
		returned := false
		defer func() {
			if v := recover(); v != nil {
				f := panicFailure(v, debug.Stack())
				r.logger().Error("a branch panicked", telemetry.KeyError, f.Message, telemetry.KeyStack, f.Stack)
				failed(f)
			} else if !returned {
				failed(&Failure{Message: fmt.Sprintf("branch %q left by runtime.Goexit", Shown(s.prefix)), Codes: []string{CodeGoexit}})
			}
		}()
		fn()
		returned = true
	}()
	return nil
}

// branched counts one more goroutine of the run. It reports false if the run waits for none any more.
func (r *run) branched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joined {
		return false
	}
	r.branches++
	return true
}

func (r *run) branchReturned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.branches--; r.branches == 0 && r.lastBranch != nil {
		close(r.lastBranch)
		r.lastBranch = nil
	}
}

// join waits for the goroutines of the run. Those that are still on their way through their history
// go on until they come to its end.
func (r *run) join() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.branches > 0 {
		last := make(chan struct{})
		r.lastBranch = last
		r.mu.Unlock()
		<-last
		r.mu.Lock()
	}
	r.joined = true
	if r.overdue != nil {
		r.overdue.Stop()
	}
}

// Known reports whether history holds a row of the name in this scope: the call was begun in an execution before.
func (s *Scope) Known(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.r.history[s.prefix+name] != nil
}

// Recorded reports whether history holds the outcome of the name in this scope.
func (s *Scope) Recorded(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	row := s.r.history[s.prefix+name]
	return row != nil && row.Status.Terminal()
}
