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

// Get returns the run whose UUID is ref, or the root run whose name is ref, with the run's payloads. Get returns ErrNotFound if there is no
// such run.
func (e *Engine) Get(ctx context.Context, ref string) (*store.Run, error) {
	return e.getRun(ctx, ref, store.AllPayloads)
}

// GetWithoutPayloads returns the same run as Get, but without its payloads. Callers use GetWithoutPayloads if they only need to know which
// run ref names.
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

// ReadWithHistory returns a run with the given payloads and with its history, both of the same generation.
func (e *Engine) ReadWithHistory(ctx context.Context, ref string, with store.PayloadSelection) (*store.Run, []store.Step, error) {
	var row *store.Run
	var steps []store.Step
	err := e.ReadWithinGeneration(ctx, ref, func() (_ *store.Run, err error) {
		if row, err = e.getRun(ctx, ref, with); err != nil {
			return nil, err
		}
		if steps, err = e.store.History(ctx, row.UUID); err != nil {
			return nil, historyError(ref, err)
		}
		return row, nil
	})
	if err != nil {
		return nil, nil, err
	}
	return row, steps, nil
}

// ReadWithinGeneration calls read, which reads the run that ref names, then further rows of the run, and returns the run's row. If the run
// was repaired or continued as new meanwhile, these rows can belong to two generations, so ReadWithinGeneration calls read again. If read
// returns a nil row, it has read a superseded generation, which does not change.
func (e *Engine) ReadWithinGeneration(ctx context.Context, ref string, read func() (*store.Run, error)) error {
	for {
		row, err := read()
		if err != nil || row == nil {
			return err
		}
		newest, err := e.store.SupersededGenerations(ctx, row.UUID, store.GenerationsQuery{Limit: 1})
		if err != nil {
			return historyError(ref, err)
		}
		if !isSuperseded(row, newest) {
			return nil
		}
	}
}

func historyError(ref string, err error) error {
	return fmt.Errorf("read the history of run %q: %w", ref, err)
}

// isSuperseded reports whether the row belongs to one of the superseded generations, of which before has the newest. It compares epochs,
// because each generation begins with a higher epoch.
func isSuperseded(row *store.Run, before []store.SupersededGeneration) bool {
	return len(before) > 0 && before[len(before)-1].Run.Epoch.Count >= row.Epoch.Count
}

// GenerationHistory returns the checkpoints of a superseded generation of the run, whose ID is archive. If archive is the run's own
// ID, GenerationHistory returns the checkpoints of the run.
func (e *Engine) GenerationHistory(ctx context.Context, archive, run uuid.UUID) ([]store.Step, error) {
	if e.codecStore != nil {
		return e.codecStore.HistoryOf(ctx, archive, run)
	}
	return e.rawStore.History(ctx, archive)
}

// GenerationHistoryOutline returns the same checkpoints as GenerationHistory, without payloads; see store.Store.HistoryOutline.
func (e *Engine) GenerationHistoryOutline(ctx context.Context, archive, run uuid.UUID) ([]store.Step, error) {
	if e.codecStore != nil {
		return e.codecStore.HistoryOutlineOf(ctx, archive, run)
	}
	return e.rawStore.HistoryOutline(ctx, archive)
}

// GenerationCheckpoints returns the checkpoints of GenerationHistory that have the given names. GenerationCheckpoints omits each Output
// that is longer than maxOutput bytes.
func (e *Engine) GenerationCheckpoints(ctx context.Context, archive, run uuid.UUID, names []string, maxOutput int) ([]store.SizedStep, error) {
	if e.codecStore != nil {
		return e.codecStore.CheckpointsOf(ctx, archive, run, names, maxOutput)
	}
	return e.rawStore.CheckpointsByName(ctx, archive, names, maxOutput)
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
