package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

// DriftPolicy says what a worker does with a run whose code does not fit its history; see [OnDrift].
type DriftPolicy int8

// The policies of [OnDrift].
const (
	// DriftHolds pauses the run with the reason. Nothing more of it is executed or compensated. [Engine.Resume] tries it again, and
	// so does a worker whose Config.Version has not diverged on the run. This is the default.
	DriftHolds = DriftPolicy(engine.DriftHolds)
	// DriftContinues leaves it to the function: the call that does not fit its record returns [ErrDiverged], and if the function
	// returns that error, the run fails and is compensated.
	DriftContinues = DriftPolicy(engine.DriftContinues)
)

// OnDrift sets what a worker does with a run whose code does not fit its history, because the code was changed while the run was
// live. Without this option it is [DriftHolds].
func OnDrift(p DriftPolicy) WorkflowOption {
	return func(o *workflowOptions) {
		o.markGiven(givenOnDrift, "OnDrift")
		if o.onDrift = engine.DriftPolicy(p); p < DriftHolds || p > DriftContinues {
			o.fail(fmt.Errorf("%w: OnDrift(%d) is unknown: use DriftHolds or DriftContinues", ErrInvalidConfig, p))
		}
	}
}

// Divergence says that a version of the code made a call that does not fit the history of a run.
type Divergence struct {
	Version string // the Config.Version of the worker; empty: it has none
	At      time.Time
	Call    string // the name of the call with its scope; empty: the workflow function itself
	Reason  string // what is recorded, and what the code asks for
}

// Divergences returns the versions of the code that do not fit the history of the run with the given ID, ordered by version. They
// are deleted some seconds after the run has continued. It returns [ErrNotFound] if there is no such run.
func (e *Engine) Divergences(ctx context.Context, id string) ([]Divergence, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read the divergences of run %q: %w", id, err)
	}
	row, err := e.inner.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := e.inner.Store().Divergences(ctx, row.UUID)
	if err != nil {
		return nil, fmt.Errorf("read the divergences of run %q: %w", id, err)
	}
	out := make([]Divergence, len(all))
	for i, d := range all {
		out[i] = Divergence{Version: d.Version, At: d.At, Call: d.Call, Reason: d.Detail}
	}
	return out, nil
}
