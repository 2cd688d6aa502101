package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
)

// StartItem is one start of [Workflow.StartMany].
type StartItem[I any] struct {
	ID    string // the run's ID, as in the option ID; if it is empty, the run's UUID is its ID
	Input I
}

// StartMany starts all items in one transaction and returns their handles, in the order of the items. The options apply to
// every item. If the ID of an item belongs to another start, the item's handle is nil, the returned error wraps an
// [ErrIDConflict] for the item, and the other items are started. If StartMany returns an error that wraps no ErrIDConflict, no
// item was started, unless a [*WriteError] says that the write may have committed. StartMany returns [ErrInvalidConfig] for the
// option [ID], because the IDs are in the items. StartMany also returns the errors of [Workflow.Start].
func (w *Workflow[I, O]) StartMany(ctx context.Context, e *Engine, items []StartItem[I], opts ...StartOption) ([]*Run[O], error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a start", "Ctx.Start or Ctx.StartChild"); err != nil {
		return nil, fmt.Errorf("start %d runs of workflow %q: %w", len(items), w.Name(), err)
	}
	if len(items) == 0 {
		return nil, nil
	}
	if err := newStartOptions(opts).checkNoStartKey("all items of StartMany would have the same key: leave the option out, or call Start for each item with a key of its own"); err != nil {
		return nil, fmt.Errorf("start %d runs of workflow %q: %w", len(items), w.Name(), err)
	}
	requests := make([]engine.StartRequest, len(items))
	for i, item := range items {
		request, err := w.newStartRequest(e.cfg.MaxPayload, item.Input, opts)
		if err == nil && request.Name != "" {
			err = fmt.Errorf("%w: the option ID of StartMany: put the IDs into the items", ErrInvalidConfig)
		}
		if request.Name = item.ID; err == nil && item.ID != "" {
			err = naming.Check("run", item.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("item %d of %d: %w", i, len(items), err)
		}
		requests[i] = request
	}
	started, err := e.inner.Start(ctx, requests)
	if err != nil {
		return nil, fmt.Errorf("start %d runs of workflow %q: %w", len(items), w.name, err)
	}
	runs := make([]*Run[O], len(items))
	var conflicts []error
	for i := range started {
		if started[i].Err != nil {
			conflicts = append(conflicts, started[i].Err)
			continue
		}
		runs[i] = newRun[O](e, &started[i].Run)
	}
	return runs, errors.Join(conflicts...)
}
