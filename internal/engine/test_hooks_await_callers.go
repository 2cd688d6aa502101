package engine

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// AwaitCaller describes one caller that waits in Await on an engine with test hooks.
type AwaitCaller struct {
	Run       uuid.UUID
	Goroutine string    // the number of the goroutine
	Began     time.Time // real time
	Deadline  time.Time // of the caller's context; zero: none
	// CancelAwait makes the waiting caller of Await return with the given error.
	CancelAwait context.CancelCauseFunc
}

// awaitCallers holds the callers of Await that test hooks may end.
type awaitCallers struct {
	mu  sync.Mutex
	all map[*AwaitCaller]struct{}
}

// awaitWithinRun does the work of Await on an engine with test hooks for a caller within the run r: for the step or, if the step is nil,
// for the workflow function. The run counts as waiting meanwhile, so that the clock of the test advances until the awaited run ends.
func (e *Engine) awaitWithinRun(ctx context.Context, id uuid.UUID, r *run, step *stepTask) (*store.Run, error) {
	r.idleTracker.addAwaitOfRun(step, 1)
	defer r.idleTracker.addAwaitOfRun(step, -1)
	return e.awaitRun(ctx, id, true, nil)
}

// awaitAsListedCaller does the work of Await on an engine with test hooks for other callers, which ListAwaitCallers returns while
// they wait.
func (e *Engine) awaitAsListedCaller(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &AwaitCaller{Run: id, Goroutine: stack.GoroutineID(), Began: time.Now(), CancelAwait: end}
	a.Deadline, _ = ctx.Deadline()
	e.awaitCallers.mu.Lock()
	if e.awaitCallers.all == nil {
		e.awaitCallers.all = make(map[*AwaitCaller]struct{})
	}
	e.awaitCallers.all[a] = struct{}{}
	e.awaitCallers.mu.Unlock()
	defer func() {
		e.awaitCallers.mu.Lock()
		defer e.awaitCallers.mu.Unlock()
		delete(e.awaitCallers.all, a)
	}()
	return e.awaitRun(ctx, id, true, &e.awaitCallerCount)
}

// ListAwaitCallers returns the callers of Await that wait for the results of runs. ListAwaitCallers omits runs that wait for other runs.
func (e *Engine) ListAwaitCallers() []AwaitCaller {
	e.awaitCallers.mu.Lock()
	defer e.awaitCallers.mu.Unlock()
	all := make([]AwaitCaller, 0, len(e.awaitCallers.all))
	for a := range e.awaitCallers.all {
		all = append(all, *a)
	}
	return all
}

// callerWithinRun returns the run to whose step or workflow function ctx belongs, or nil, and the step, which is nil for the function.
func callerWithinRun(ctx context.Context) (*run, *stepTask) {
	if t, ok := ctx.Value(attemptContextKey{}).(*stepTask); ok {
		return t.r, t
	}
	if s, ok := ctx.Value(ScopeContextKey{}).(*Scope); ok {
		return s.r, nil
	}
	return nil, nil
}

// addAwaitOfRun changes the number of goroutines of the step, or of the function if the step is nil, that wait for the result of a run.
func (i *idleTracker) addAwaitOfRun(step *stepTask, n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.awaitsRuns == nil {
		i.awaitsRuns = make(map[*stepTask]int)
	}
	if i.awaitsRuns[step] += n; i.awaitsRuns[step] == 0 {
		delete(i.awaitsRuns, step)
	}
}
