package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Sub is a scope within this one: its names are prefixed by the given one, which is
// then used up here. It leaves no row.
func (s *Scope) Sub(name string, site uintptr) (*Scope, error) {
	if err := CheckName("branch", name); err != nil {
		return nil, err
	}
	full := s.prefix + name
	if s.r.idle.nested() {
		return nil, nestedError(s.r, full)
	}
	if err := s.r.useName(full, site); err != nil {
		return nil, err
	}
	return &Scope{r: s.r, prefix: full + separator, ctx: s.ctx, work: s.work, undo: s.undo}, nil
}

// Counted is Sub for a Map: it records how many items there are, so that others can tell
// how far it is. Nobody waits for that row; the function answered is called at the Map's
// end.
func (s *Scope) Counted(name string, site uintptr, total int) (*Scope, func(), error) {
	if err := CheckName("map", name); err != nil {
		return nil, nil, err
	}
	full := s.prefix + name
	recorded, err := s.claimName(full, store.KindMap, site)
	if err != nil {
		return nil, nil, err
	}
	if s.r.idle.nested() {
		return nil, nil, nestedError(s.r, full)
	}
	sub := &Scope{r: s.r, prefix: full + separator, label: name, ctx: s.ctx, work: s.work, undo: s.undo}
	if recorded != nil || total == 0 {
		return sub, func() {}, nil
	}
	t := &task{r: s.r, s: s, spec: &Spec{Kind: store.KindMap}, name: full, attempt: 1, first: s.r.e.clock.now()}
	entry, err := s.r.e.journal.Mark(t.row(store.StepCompleted, strconv.AppendInt(nil, int64(total), 10), nil))
	if err != nil {
		return sub, func() {}, nil // the items' own writes meet the same end
	}
	return sub, func() { _, _ = s.r.e.journal.Settle(entry) }, nil
}

// Cancellable gives the scope contexts of its own, which cancel ends: calls in it then
// answer ErrCancelled, and its running steps see their contexts end. What history holds is
// still answered.
func (s *Scope) Cancellable() (cancel func()) {
	work, endWork := context.WithCancelCause(s.work)
	ctx, endCtx := context.WithCancelCause(s.ctx)
	s.ctx, s.work = ctx, work
	return func() {
		endCtx(ErrCancelled)
		endWork(ErrCancelled)
	}
}

// Go runs fn in a goroutine that the run owns: its end is awaited before the run's own is
// written. A panic or runtime.Goexit in it is answered to failed.
func (s *Scope) Go(fn func(), failed func(*Failure)) {
	r := s.r
	r.idle.branched()
	r.branches.Go(func() {
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
	})
}

// Recorded reports whether history holds the outcome of the name in this scope.
func (s *Scope) Recorded(name string) bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	row := s.r.history[s.prefix+name]
	return row != nil && row.Status.Terminal()
}
