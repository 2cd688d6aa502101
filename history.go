package durable

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Checkpoint is the record of one durable call in a run's history.
type Checkpoint struct {
	Name      string // the name of the call with its scope, as in "branch/step"; a slash within a name is shown as "%2F", and "%" as "%25"
	Seq       int    // a number that increases in the order in which the calls began; numbers may be missing
	Kind      Kind
	Status    CheckpointStatus
	Attempts  int // the number of recorded attempts
	Output    jsontext.Value
	Err       *StepError // the error of the last failed attempt
	StartedAt time.Time  // when the first attempt began; FreezeTimers can move StartedAt
	EndedAt   time.Time  // when the last attempt ended; zero while the call has no outcome
	NextAt    time.Time  // when the next attempt is due, or when a sleep or the time set by Within ends

	// FirstFailure and LastFailure are the first and the last attempt that failed or was interrupted. FirstFailure and
	// LastFailure are equal if only one attempt failed, and nil if no attempt failed. Failed attempts between the first and the
	// last are not kept.
	FirstFailure *FailedAttempt
	LastFailure  *FailedAttempt
}

// FailedAttempt is an attempt of a step that failed or was interrupted.
type FailedAttempt struct {
	Step     string     // the name of the step with its scope
	Attempt  int        // the number of the attempt, from 1
	Err      *StepError // the error of the attempt; nil if the attempt was interrupted
	Worker   string     // the name of the worker that executed the attempt; empty if unknown
	WorkerID string
	// Interrupted reports whether the attempt was cut off before its end, because its process died, lost the run or was shut
	// down. An attempt that was interrupted within about 20 ms is not recorded.
	Interrupted bool
	StartedAt   time.Time
	EndedAt     time.Time // when the attempt ended; zero if the process of the attempt died or lost the run
	NextAt      time.Time // when the next attempt was due; zero if no attempt followed, and for an interrupted attempt
}

// History returns the checkpoints of the run with the given ID, in the order in which their calls began. History returns
// [ErrNotFound] if there is no such run. The option [InGeneration] selects an older generation of the run.
func (e *Engine) History(ctx context.Context, id string, opts ...HistoryOption) ([]Checkpoint, error) {
	var o historyOptions
	o.setFirstError(applyOptions(opts, &o))
	if o.err != nil {
		return nil, fmt.Errorf("read the history of run %q: %w", id, o.err)
	}
	_, steps, view, err := e.readHistory(ctx, id, o.generation)
	if err != nil {
		return nil, err
	}
	history := make([]Checkpoint, len(steps))
	for i := range steps {
		history[i] = newCheckpoint(&steps[i], &view)
	}
	return history, nil
}

// newCheckpoint converts a row of a history.
func newCheckpoint(s *store.Step, view *history.View) Checkpoint {
	status, ended := view.StatusOf(s)
	c := Checkpoint{
		Name: naming.Display(s.Name), Seq: int(s.Position()), Kind: Kind(s.Kind.String()), Status: CheckpointStatus(status), Attempts: int(s.Attempt),
		Output: payload.Shown(s.Output), StartedAt: s.StartedAt, EndedAt: ended, NextAt: s.NextAt,
	}
	if !ended.IsZero() && ended.Before(c.StartedAt) { // a choice ended the call, and FreezeTimers, which does not know that, moved its start
		c.StartedAt = ended
	}
	if len(s.Error) > 0 {
		c.Err = newStepError(c.Name, record.DecodeFailure(s.Error))
	}
	failures := record.DecodeFailures(s)
	c.FirstFailure, c.LastFailure = toPublicFailedAttempt(c.Name, failures.First), toPublicFailedAttempt(c.Name, failures.Latest())
	return c
}

// readHistory reads a run and its history in a generation, zero for the newest, and returns how the checkpoints are shown.
func (e *Engine) readHistory(ctx context.Context, id string, generation int) (r *store.Run, steps []store.Step, view history.View, err error) {
	r, _, steps, view, err = e.readHistoryOrOutline(ctx, id, generation, false)
	return r, steps, view, err
}

// readHistoryOrOutline is readHistory, for an outline without the payloads of the run and of its checkpoints. archive is the UUID of the checkpoints.
func (e *Engine) readHistoryOrOutline(ctx context.Context, id string, generation int, outline bool) (r *store.Run, archive uuid.UUID, steps []store.Step, view history.View, err error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, archive, nil, view, fmt.Errorf("read the history of run %q: %w", id, err)
	}
	get, read, payloads := e.inner.Get, e.inner.GenerationHistory, store.PayloadSelection(store.AllPayloads)
	if outline {
		get, read, payloads = e.inner.GetWithoutPayloads, e.inner.GenerationHistoryOutline, store.NoPayloads
	}
	err = e.inner.ReadWithinGeneration(ctx, id, func() (_ *store.Run, err error) {
		if r, err = get(ctx, id); err != nil {
			return nil, err
		}
		archive = r.UUID
		if generation > 0 {
			if r, archive, err = e.readRunAtGeneration(ctx, r, generation, payloads); err != nil {
				return nil, err
			}
		}
		if steps, err = read(ctx, archive, r.UUID); err != nil {
			return nil, fmt.Errorf("read the history of run %q: %w", id, err)
		}
		if archive != r.UUID {
			return nil, nil
		}
		return r, nil
	})
	if err != nil {
		return nil, archive, nil, view, err
	}
	if len(steps) == 0 { // perhaps only because it was deleted since
		if err := e.checkNotDeleted(ctx, r, generation); err != nil {
			return nil, archive, nil, view, err
		}
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, archive, nil, view, err
	}
	view = history.NewView(r, steps, now)
	steps = slices.DeleteFunc(steps, record.IsPlainRenewal)
	for i := range steps {
		record.HideRenewalFailure(&steps[i])
	}
	return r, archive, steps, view, nil
}

// checkNotDeleted returns ErrNotFound if the run, or its superseded generation, was deleted. If a deletion comes between the read of a run
// and the read of its history, the history is empty. An archive that stores the last export it gets must not get that one.
func (e *Engine) checkNotDeleted(ctx context.Context, r *store.Run, generation int) error {
	present, err := e.inner.GetWithoutPayloads(ctx, r.UUID.String())
	if err == nil && generation > 0 {
		_, _, err = e.readRunAtGeneration(ctx, present, generation, store.NoPayloads)
	}
	return err
}

// lastKnownTime returns the latest known time of the attempt.
func (f *FailedAttempt) lastKnownTime() time.Time {
	if f.EndedAt.After(f.StartedAt) {
		return f.EndedAt
	}
	return f.StartedAt
}

// toPublicFailedAttempt converts a failed attempt of the step from its stored form. It returns nil for nil.
func toPublicFailedAttempt(step string, a *record.FailedAttempt) *FailedAttempt {
	if a == nil {
		return nil
	}
	f := &FailedAttempt{
		Step: step, Attempt: int(a.Attempt), Worker: a.Worker, WorkerID: a.WorkerID, Interrupted: a.Interrupted,
		StartedAt: a.StartedAt, EndedAt: a.EndedAt, NextAt: a.NextAt,
	}
	if a.Error != nil {
		f.Err = newStepError(step, a.Error)
	}
	return f
}
