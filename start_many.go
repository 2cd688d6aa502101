package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Item is one start of StartMany.
type Item[I any] struct {
	ID    string // as given to the ID option; empty for a made one
	Input I
}

// StartMany starts all items in one transaction and answers their handles in order; the
// options hold for each of them. An item whose ID is in conflict has a nil handle, and its error
// is in the joined one; the others are started all the same. Any other error means that
// nothing is started. The option ID is ErrInvalidConfig: IDs are in the items.
func (w *Workflow[I, O]) StartMany(ctx context.Context, e *Engine, items []Item[I], opts ...StartOption) ([]*Run[O], error) {
	if err := e.writes(ctx, "a start", "Ctx.Start or Ctx.StartChild"); err != nil {
		return nil, fmt.Errorf("start %d runs of workflow %q: %w", len(items), w.Name(), err)
	}
	if len(items) == 0 {
		return nil, nil
	}
	requests := make([]engine.StartRequest, len(items))
	for i, item := range items {
		request, err := w.request(e.cfg.MaxPayload, item.Input, opts)
		if err == nil && request.Name != "" {
			err = fmt.Errorf("%w: the option ID of StartMany: put the IDs into the items", ErrInvalidConfig)
		}
		if request.Name = item.ID; err == nil && item.ID != "" {
			err = engine.CheckName("run", item.ID)
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
