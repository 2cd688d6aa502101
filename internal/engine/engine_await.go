package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/results"
	"github.com/seed8ec063be/durable/internal/store"
)

// Await waits until the run has ended, and returns the run. Await returns ErrNotFound if the run does not exist or was deleted. While the
// database is unavailable, Await keeps waiting. Await returns the error ErrPermission at once, and the errors ErrRejected and ErrSchema
// after Config.Patience.
func (e *Engine) Await(ctx context.Context, id uuid.UUID) (*store.Run, error) {
	if err := e.CheckOutsideTx(ctx, "a wait for a result"); err != nil {
		return nil, err
	}
	defer lendSlotsDuringWait(ctx)()
	if e.testHooks != nil {
		if r, step := callerWithinRun(ctx); r != nil {
			return e.awaitWithinRun(ctx, id, r, step)
		}
	}
	if e.testHooks != nil {
		return e.awaitAsListedCaller(ctx, id)
	}
	return e.awaitRun(ctx, id, true, &e.awaitCallerCount)
}

// awaitRun does the work of Await. The argument outside says whether the caller is outside of runs, and not a run that waits for its child.
// While awaitRun waits, it is counted in count, if count is not nil.
func (e *Engine) awaitRun(ctx context.Context, id uuid.UUID, outside bool, count *results.Count) (*store.Run, error) {
	run, err := e.resultWaiters.Await(ctx, id, outside, count)
	if run == nil && err == nil {
		return nil, fmt.Errorf("%w: there is no run %s in this database", ErrNotFound, id)
	}
	return run, err
}

// IsExecuting reports whether this engine executes the run now.
func (e *Engine) IsExecuting(id uuid.UUID) bool {
	w := e.worker()
	return w != nil && w.isExecuting(id)
}

// finalRunReadTimeout is the timeout of the final read of a run whose caller no longer waits.
const finalRunReadTimeout = 250 * time.Millisecond
