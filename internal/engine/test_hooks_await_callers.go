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

// awaitAsListedCaller is await for an engine with test hooks: it lists the caller in ListAwaitCallers.
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
	return e.awaitRun(ctx, id, true)
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
