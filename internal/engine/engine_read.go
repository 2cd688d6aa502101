package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Now returns the database's time.
func (e *Engine) Now(ctx context.Context) (time.Time, error) {
	if err := e.clock.EnsureReading(ctx, e.store); err != nil {
		return time.Time{}, err
	}
	return e.clock.Now(), nil
}

// Get returns the run with the UUID or, for a root, the name ref, including its payloads. It returns ErrNotFound if there is
// no such run.
func (e *Engine) Get(ctx context.Context, ref string) (*store.Run, error) {
	return e.getRun(ctx, ref, store.AllPayloads)
}

// GetWithoutPayloads returns the same as Get, without the payloads. It is for callers that only need to know which run the reference names.
func (e *Engine) GetWithoutPayloads(ctx context.Context, ref string) (*store.Run, error) {
	return e.getRun(ctx, ref, store.NoPayloads)
}

func (e *Engine) getRun(ctx context.Context, ref string, with store.PayloadSelection) (*store.Run, error) {
	if err := CheckRunID(ref); err != nil {
		return nil, err
	}
	found, err := e.store.GetRunsSelectingPayloads(ctx, []store.RunRef{{UUIDOrName: ref}}, with)
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", ref, err)
	}
	if found[0] == nil {
		return nil, notFoundError(ref)
	}
	return found[0], nil
}

// GenerationHistory returns the checkpoints with the run ID archive, which are those of a superseded generation of the run, or, if both are
// equal, of the run.
func (e *Engine) GenerationHistory(ctx context.Context, archive, run uuid.UUID) ([]store.Step, error) {
	if e.codecStore != nil {
		return e.codecStore.HistoryOf(ctx, archive, run)
	}
	return e.rawStore.History(ctx, archive)
}

// GenerationHistoryOutline returns the same as HistoryOf, without payloads; see store.Store.
func (e *Engine) GenerationHistoryOutline(ctx context.Context, archive, run uuid.UUID) ([]store.Step, error) {
	if e.codecStore != nil {
		return e.codecStore.HistoryOutlineOf(ctx, archive, run)
	}
	return e.rawStore.HistoryOutline(ctx, archive)
}

// GenerationCheckpoints returns those of the checkpoints of HistoryOf that have the given names. It leaves out an Output of more than maxOutput bytes.
func (e *Engine) GenerationCheckpoints(ctx context.Context, archive, run uuid.UUID, names []string, maxOutput int) ([]store.SizedStep, error) {
	if e.codecStore != nil {
		return e.codecStore.CheckpointsOf(ctx, archive, run, names, maxOutput)
	}
	return e.rawStore.Checkpoints(ctx, archive, names, maxOutput)
}

// History returns the run's checkpoints in the order in which their calls began.
func (e *Engine) History(ctx context.Context, ref string) ([]store.Step, error) {
	run, err := e.GetWithoutPayloads(ctx, ref)
	if err != nil {
		return nil, err
	}
	steps, err := e.store.History(ctx, run.UUID)
	if err != nil {
		return nil, fmt.Errorf("read the history of run %q: %w", ref, err)
	}
	return steps, nil
}
