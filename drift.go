package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
)

// DriftPolicy determines what a worker does with a run if the code does not fit the run's history; see [OnDrift].
type DriftPolicy int8

// The policies of [OnDrift].
const (
	// DriftHolds pauses the run and records the reason. No further step or compensation of the held run is executed. A held run
	// is executed again after [Engine.Resume] or a repair such as [Engine.Override], or when a worker runs whose Config.Version has
	// not diverged on the run.
	// DriftHolds is the default.
	DriftHolds = DriftPolicy(engine.DriftHolds)
	// DriftContinues lets the workflow function decide: the call that does not fit its record returns [ErrDiverged]. If the
	// workflow function returns ErrDiverged, the run fails and its compensations are executed. With DriftContinues, a call that
	// is not recorded is executed. If a run completes although the code has not made all recorded calls, a warning is logged.
	DriftContinues = DriftPolicy(engine.DriftContinues)
	// DriftFails works as DriftContinues once the code has made all recorded calls. While the history holds calls that the code
	// has not made, a call that is not recorded returns [ErrDiverged] and is not executed, and a branch or a run whose function
	// returns fails with ErrDiverged.
	DriftFails = DriftPolicy(engine.DriftFails)
)

// declaredCodeChanges is what the definition of a workflow says about changes of its code.
type declaredCodeChanges struct {
	onDrift       engine.DriftPolicy
	previousNames map[string]string // the previous names by the present ones
	retiredNames  map[string]bool
}

// OnDrift sets what a worker does with a run if the code does not fit the run's history, because the code was changed while the
// run was live:
//
//   - a call does not fit its record, because the call is of another kind, or the recorded value does not decode into the type
//     of the call;
//   - the history holds calls that the code has not made when a call is about to be executed, or when the function or a branch
//     returns: a call was renamed, removed or moved. See [Renamed], [Retired] and [Ctx.Patched].
//
// Calls in goroutines that the code starts without [Ctx.Go] never count as missing, because their order differs between
// executions. Without the option OnDrift, the policy is [DriftHolds].
func OnDrift(p DriftPolicy) WorkflowOption {
	return func(o *workflowOptions) {
		o.addOptionOnce(optionOnDrift, "OnDrift")
		if o.onDrift = engine.DriftPolicy(p); p < DriftHolds || p > DriftFails {
			o.setFirstError(fmt.Errorf("%w: OnDrift(%d) is unknown: use DriftHolds, DriftContinues or DriftFails", ErrInvalidConfig, p))
		}
	}
}

// Renamed declares that a durable call or a branch was renamed: an earlier version of the code used the name before, and this version
// uses the name now, in any scope of the workflow. The renamed call can be a step, a sleep, a receive, a child, a choice or a Map. The
// nodes of a graph keep their names: for a graph with the option Renamed, [New] and every start return [ErrInvalidConfig]. If the
// history of a run holds the old name, the renamed call uses the record with the old name. A step that failed under the old name and
// is retried keeps the old name and its [IdempotencyKey]. A renamed branch keeps the old name, also for its new calls, if the history
// holds a call of the branch or a choice in which the branch took part. Do not give the old name to a new call: runs that hold
// the old name would be held. If a call was renamed twice, declare both changes, such as Renamed("a", "b") and
// Renamed("b", "c"), as long as runs hold the first name. If the declarations form a circle, because two calls exchanged their
// names, New returns ErrInvalidConfig. A [Callback] whose Wait is not recorded keeps its first name, and so its token. Remove a
// Renamed option when no live run, and no failed run that may be retried, holds the old name.
func Renamed(before, now string) WorkflowOption {
	return func(o *workflowOptions) {
		o.setFirstError(errors.Join(naming.Check("step", before), naming.Check("step", now)))
		if _, twice := o.previousNames[now]; twice || before == now {
			o.setFirstError(fmt.Errorf("%w: Renamed(%q, %q): a call has one previous name, which differs from its own", ErrInvalidConfig, before, now))
		}
		if o.previousNames == nil {
			o.previousNames = make(map[string]string)
		}
		o.previousNames[now] = before
		name := before
		for range o.previousNames {
			if name == now && before != now {
				o.setFirstError(fmt.Errorf("%w: Renamed(%q, %q) closes a circle of names, so that a record could belong to two calls: give the calls names that no earlier version of the code used",
					ErrInvalidConfig, before, now))
			}
			name = o.previousNames[name]
		}
	}
}

// Retired declares that the code no longer makes the calls with the given names, in any scope of the workflow. A run is not
// held because its history holds retired calls. Remove a Retired option when the history of no live run holds a retired name,
// nor that of an ended run that you may retry, repair or fork.
func Retired(names ...string) WorkflowOption {
	return func(o *workflowOptions) {
		if o.retiredNames == nil {
			o.retiredNames = make(map[string]bool)
		}
		for _, name := range names {
			o.setFirstError(naming.Check("step", name))
			o.retiredNames[name] = true
		}
	}
}

// Patched reports whether the run takes the new path at a change of the code; the ID names the change. Patched returns false if
// the history shows that an earlier execution has already passed the changed code, so that the run keeps the old path:
//
//	checked, err := c.Patched("fraud check")
//	if err != nil {
//		return err
//	}
//	if checked {
//		err = c.Do("check", check) // a new step
//	}
//
// The first call of Patched with an ID in a scope decides between the old and the new path, and records the decision. Every
// later call with the same ID in the same scope returns the recorded decision. Patched returns the errors of [Ctx.Step]. Once
// there is no live run for which Patched returns false, nor an ended run that you may retry, repair or fork, remove the call of
// Patched and the old path.
func (c *Ctx) Patched(id string) (bool, error) {
	return c.callScope().Patched(id, callSite(0))
}

// Divergence records that a version of the code made a call that does not fit the history of a run.
type Divergence struct {
	Version string // the Config.Version of the worker; empty if the worker has none
	At      time.Time
	Call    string // the name of the call with its scope; empty if the input of the run does not decode
	Reason  string // a text that names the recorded call, and the call that the code made instead
	// ContinuedBy is the version that continued the run after the divergence. ContinuedBy is empty while the run is held, and
	// after an operator has resumed the run. While workers of other versions are running, workers of the version that diverged
	// do not execute the run again.
	ContinuedBy string
}

// Divergences returns which versions of the code do not fit the history of the run with the given ID, ordered by version. A
// worker deletes the divergences of a run some seconds after the run has ended or has continued after a resume. A repair of a
// held run, such as [Engine.Override], deletes its divergences at once. Divergences returns [ErrNotFound] if there is no such run.
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
		out[i] = Divergence{Version: d.Version, At: d.At, Call: d.Call, Reason: d.Detail, ContinuedBy: d.ContinuedBy}
	}
	return out, nil
}
