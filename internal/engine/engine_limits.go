package engine

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetLimit sets the bounds of a limit, whatever code declares.
func (e *Engine) SetLimit(ctx context.Context, c store.LimitChange) error {
	err := e.checkWorkers(ctx, "limits")
	if err == nil {
		c.Now, err = e.Now(ctx)
	}
	if err == nil {
		err = e.commitAlone(ctx, userCaller, func() error { return e.store.ChangeLimit(ctx, c) })
	}
	if err != nil {
		return fmt.Errorf("set limit %q: %w", c.Name, err)
	}
	return nil
}

// DeleteLimit removes the row of a limit. It returns ErrNotFound if there is none.
func (e *Engine) DeleteLimit(ctx context.Context, name string) error {
	if err := e.checkWorkers(ctx, "limits"); err != nil {
		return fmt.Errorf("delete limit %q: %w", name, err)
	}
	found := false
	err := e.commitAlone(ctx, userCaller, func() error {
		deleted, err := e.store.DeleteLimit(ctx, name)
		found = found || deleted
		return err
	})
	if err != nil {
		return fmt.Errorf("delete limit %q: %w", name, err)
	}
	if !found {
		return fmt.Errorf("%w: limit %q", ErrNotFound, name)
	}
	return nil
}

// Limits returns all limits.
func (e *Engine) Limits(ctx context.Context) ([]store.Limit, error) {
	now, err := e.Now(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := e.store.Limits(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	return limits, nil
}
