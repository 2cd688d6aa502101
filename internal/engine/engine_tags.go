package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetTags sets tags of a run for a user, and reports whether the run exists.
func (e *Engine) SetTags(ctx context.Context, run uuid.UUID, tags []store.Tag, act store.ActorAndReason) (found bool, _ error) {
	err := e.commitInSeparateTx(ctx, userCaller, func() (err error) {
		found, err = e.store.SetTags(ctx, run, tags, store.Epoch{}, act)
		return err
	})
	return found, err
}
