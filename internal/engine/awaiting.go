package engine

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Awaiting is one caller of Await on an engine with a probe.
type Awaiting struct {
	Run       uuid.UUID
	Goroutine string    // its number
	Deadline  time.Time // of its context; zero: none
	// End has the caller return with the error.
	End context.CancelCauseFunc
}

// awaitings are the callers of Await that a probe may end.
type awaitings struct {
	mu  sync.Mutex
	all map[*Awaiting]struct{}
}

// awaitProbed is await for an engine with a probe.
func (e *Engine) awaitProbed(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &Awaiting{Run: id, Goroutine: goroutine(), End: end}
	a.Deadline, _ = ctx.Deadline()
	e.awaiting.mu.Lock()
	if e.awaiting.all == nil {
		e.awaiting.all = make(map[*Awaiting]struct{})
	}
	e.awaiting.all[a] = struct{}{}
	e.awaiting.mu.Unlock()
	defer func() {
		e.awaiting.mu.Lock()
		defer e.awaiting.mu.Unlock()
		delete(e.awaiting.all, a)
	}()
	return e.await(ctx, id, &waiter{outside: true})
}

// Awaitings lists the callers, runs apart, that wait for results.
func (e *Engine) Awaitings() []Awaiting {
	e.awaiting.mu.Lock()
	defer e.awaiting.mu.Unlock()
	all := make([]Awaiting, 0, len(e.awaiting.all))
	for a := range e.awaiting.all {
		all = append(all, *a)
	}
	return all
}
