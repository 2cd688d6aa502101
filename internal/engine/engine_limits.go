package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// SetLimit sets the bounds of a limit on behalf of an operator. These bounds apply instead of the bounds that code declares.
func (e *Engine) SetLimit(ctx context.Context, c store.LimitChangeRequest) error {
	err := e.checkNoOlderWorkers(ctx, userCaller, "limits")
	if err == nil {
		c.Now, err = e.NowBeforeWrite(ctx)
	}
	if err == nil {
		err = e.commitInSeparateTx(ctx, userCaller, func() error { return e.store.ChangeLimit(ctx, c) })
	}
	if err != nil {
		return fmt.Errorf("set limit %q: %w", c.Name, err)
	}
	e.logOperatorChange(telemetry.KeyLimit, c.Name, c.OperatorChange())
	return nil
}

// DeleteLimit deletes the row of a limit. DeleteLimit returns ErrNotFound if the limit has no row.
func (e *Engine) DeleteLimit(ctx context.Context, c store.DeleteOrResetRequest) error {
	return e.deleteOrResetLimit(ctx, &c, store.OperatorDelete, func() (bool, error) { return e.store.DeleteLimit(ctx, c) })
}

// ResetLimit removes the bounds that an operator has set for a limit. ResetLimit returns ErrNotFound if the limit does not exist, and
// ErrNotDeclared if no code declares the limit.
func (e *Engine) ResetLimit(ctx context.Context, c store.DeleteOrResetRequest) error {
	err := e.deleteOrResetLimit(ctx, &c, store.OperatorReset, func() (bool, error) { return e.store.ResetLimitSettings(ctx, c) })
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	all, failed := e.Limits(ctx)
	if failed != nil {
		return failed
	}
	if slices.ContainsFunc(all, func(l store.Limit) bool { return l.Name == c.Name }) {
		return ErrNotDeclared
	}
	return err
}

// deleteOrResetLimit sets the time of the change, and calls change, which reports whether the limit exists.
func (e *Engine) deleteOrResetLimit(ctx context.Context, c *store.DeleteOrResetRequest, verb store.OperatorVerb, change func() (bool, error)) error {
	err := e.checkNoOlderWorkers(ctx, userCaller, "limits")
	if err == nil {
		c.Now, err = e.NowBeforeWrite(ctx)
	}
	found := false
	if err == nil {
		err = e.commitInSeparateTx(ctx, userCaller, func() error {
			did, err := change()
			found = found || did
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s limit %q: %w", verb, c.Name, err)
	}
	if !found {
		return fmt.Errorf("%w: limit %q", ErrNotFound, c.Name)
	}
	e.logOperatorChange(telemetry.KeyLimit, c.Name, c.OperatorChange(verb))
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
