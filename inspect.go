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

// RunInfo describes a run. A time of a RunInfo is zero as long as it is not known, such as EndedAt before the run has ended.
type RunInfo struct {
	ID            string // the ID that addresses the run: the caller's ID of a root run, or the UUID of a child
	RunID         string // the UUID of the run
	Name          string // the name of the call that started a child, with its scope, as in "branch/kid"; empty for a root run
	Workflow      string
	Queue         string
	Priority      int    // see Priority
	Version       string // the version of the program that executed the run last, or that started it; see Config.Version
	Status        Status
	Parent        string         // the UUID of the parent; empty for a root run
	Detached      bool           // the run is a child that continues when its parent ends
	Requested     Verb           // VerbPause or VerbCancel, if a pause or a cancel was requested and has not taken effect yet; else empty
	Reason        string         // why the run is paused, or was last held (see ErrHeld)
	Diverged      bool           // the run is held because the code does not fit its history (see DriftHolds)
	PausedBy      string         // the [Actor] of the call that paused the run, if the call had one
	Cancellation  *Cancellation  // nil unless a cancel was requested
	Owner         string         // the ID of the worker that executes the run; empty if no worker does
	Epoch         int            // how many times workers have claimed the run
	Crashes       int            // how many times the run lost its process or was held since its last checkpoint
	LastLeaseLoss *LeaseLoss     // the most recent time that the run lost its process; nil if the run never lost its process, and in results of List
	Input         jsontext.Value // for a debounced run that has not begun, the input of the last start
	Output        jsontext.Value // nil unless the run completed
	Err           *RunError      // nil unless the run failed, was cancelled or expired
	CreatedAt     time.Time
	StartedAt     time.Time
	EndedAt       time.Time
	PausedAt      time.Time
	WakeAt        time.Time // when the run is due or, while a worker executes it, when its lease ends
	NoWorker      bool      // the run is due, and no live worker executes its workflow in its queue; false in results of List
	Deadline      time.Time // when the run's Timeout is over
	// VersionWait is not nil if the run is due, and no live worker may execute the run because of its version. VersionWait is
	// nil in the results of [Engine.List].
	VersionWait *VersionWait

	// ParentGeneration is the number of the parent's generation to which a child belongs, if a repair or [Ctx.ContinueAsNew] has
	// superseded that generation. ParentGeneration is zero for a child of the current generation, and for a root run.
	ParentGeneration int

	// KeyWait describes what the run waits for before it may begin, if the run was started with [Singleton] or [Debounce].
	// KeyWait is nil for runs that do not wait for a key, and in the results of [Engine.List].
	KeyWait *KeyWait

	// Place describes where the run stands in its queue. Place is nil if the queue has no settings or the run has ended, and in
	// the results of [Engine.List].
	Place *QueuePlace

	// RetryWait is not nil if the run has failed and waits until [RetryRun] retries the run. RetryWait is nil in the results of
	// [Engine.List].
	RetryWait *RetryWait

	Tags      map[string]string
	OpenCalls []OpenCall    // calls that have no outcome yet, in the order in which they began
	Progress  []MapProgress // the progress of the run's Maps
	// LastFailure is the most recent attempt that failed or was interrupted, among the calls in OpenCalls. LastFailure is nil
	// if no attempt failed.
	LastFailure *FailedAttempt

	// Unreceived is the number of signals, by name, that the run has accepted and not received. When a run ends, the signals
	// that it has not received are kept.
	Unreceived map[string]int
}

// Cancellation is the first request to cancel a run: who made the request, when and why.
type Cancellation struct {
	Reason string
	Actor  string
	At     time.Time
}

// LeaseLoss describes when a worker lost a run, because the worker died, hung, or could not reach the database.
type LeaseLoss struct {
	At     time.Time // when another worker took the run over, or found the run paused
	Worker string    // the ID of the worker that had the run
}

// RetryWait describes the wait of a run between a failure and the retry of the run by [RetryRun].
type RetryWait struct {
	Until    time.Time // when the retry is due
	Failures int       // how many times in a row the run has failed; zero for a child that is retried together with its parent
	Err      *RunError // the last failure
}

// OpenCall is a durable call without an outcome: the call either waits or is being executed.
type OpenCall struct {
	Name     string // the name of the call with its scope
	Kind     Kind
	Attempts int
	Since    time.Time
	Until    time.Time // the end of a sleep, a backoff or a receive with Within; otherwise zero
	// LastFailure is the last attempt of the call that failed or was interrupted. LastFailure is nil if no attempt failed.
	LastFailure *FailedAttempt
	// Limit is the name of the [Limit] for whose permit the step waits, and LimitKey is the key that the step has set with the
	// option [LimitKey]. Before is the number of steps that get a permit before this step. Limit is empty if the step waits for
	// no permit.
	Limit, LimitKey string
	Before          int
}

// MapProgress tells how many items of a Map have an outcome.
type MapProgress struct {
	Name  string // the name of the Map with its scope
	Done  int
	Total int // the number of items when the Map began, and at least Done: newer code or a repair may have made the list longer since
}

// Get returns the run with the given ID, which is the caller's ID or the UUID. Get returns [ErrNotFound] if there is no such
// run.
func (e *Engine) Get(ctx context.Context, id string) (*RunInfo, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	r, err := e.inner.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, err
	}
	outline, err := e.inner.Store().RunProgress(ctx, r.UUID, now)
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	unexecuted, err := e.inner.IsRunWithoutWorker(ctx, r, now)
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	unreceived, err := e.inner.Store().CountUnreceivedSignals(ctx, []uuid.UUID{r.UUID})
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	infos, err := e.newRunInfos(ctx, []*store.Run{r})
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	info := &infos[0]
	info.NoWorker = unexecuted
	if info.VersionWait, err = e.readVersionWait(ctx, r, now); err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	if len(unreceived) > 0 {
		info.Unreceived = make(map[string]int, len(unreceived))
	}
	for _, s := range unreceived {
		info.Unreceived[naming.DisplaySignal(s.Name)] += s.Count
	}
	info.Tags = make(map[string]string, len(outline.Tags))
	for _, t := range outline.Tags {
		info.Tags[t.Key] = t.Value
	}
	view := history.NewView(r, outline.Choices, now)
	for i := range outline.OpenCalls {
		switch s := &outline.OpenCalls[i]; {
		case s.Kind == store.KindKeyRenewal && !r.Status.IsTerminal():
			info.RetryWait = newRetryWait(r, s)
		case s.Kind != store.KindKeyRenewal && view.MayWait(s):
			info.addOpenCall(s)
		}
	}
	if !r.Status.IsTerminal() {
		permits, err := e.inner.Store().PermitsOfRun(ctx, r.UUID)
		if err != nil {
			return nil, fmt.Errorf("get run %q: %w", id, err)
		}
		for i := range permits {
			info.addPermitWait(&permits[i])
		}
		if err := e.addStartKeyWaitToInfo(ctx, r, now, info); err != nil {
			return nil, fmt.Errorf("get run %q: %w", id, err)
		}
		if err := e.addQueuePlaceToInfo(ctx, r, info); err != nil {
			return nil, fmt.Errorf("get run %q: %w", id, err)
		}
	}
	if !outline.LastLeaseLoss.At.IsZero() {
		info.LastLeaseLoss = &LeaseLoss{At: outline.LastLeaseLoss.At, Worker: outline.LastLeaseLoss.Worker.String()}
	}
	for _, m := range outline.Maps {
		total, err := decode[int](m.Step.Output)
		if err != nil {
			return nil, fmt.Errorf("%w: the size of map %q in run %q: %w", ErrDiverged, naming.Display(m.Step.Name), id, err)
		}
		info.Progress = append(info.Progress, MapProgress{Name: naming.Display(m.Step.Name), Done: m.DoneCount, Total: max(total, m.DoneCount)})
	}
	return info, nil
}

// Now returns this engine's estimate of the time of the database's clock, by which all times of runs are recorded. In a
// workflow, use [Ctx.Now] instead.
func (e *Engine) Now(ctx context.Context) (time.Time, error) {
	if err := e.checkUsable(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read the database's time: %w", err)
	}
	return e.inner.Now(ctx)
}

// newRetryWait returns what is recorded about the retry of a run that is not due.
func newRetryWait(r *store.Run, row *store.Step) *RetryWait {
	w := &RetryWait{Until: row.NextAt}
	renewal, err := record.DecodeRenewal(row.Output)
	failed := *r
	failed.Status, failed.Error = store.Failed, nil
	if err == nil && renewal.Failure != nil {
		w.Failures, failed.Error = int(renewal.Retries), renewal.Failure.Encode()
	}
	w.Err = newRunError(&failed)
	return w
}

// addOpenCall adds a call that has no outcome yet.
func (info *RunInfo) addOpenCall(s *store.Step) {
	w := OpenCall{Name: naming.Display(s.Name), Kind: Kind(s.Kind.String()), Attempts: int(s.Attempt), Since: s.StartedAt, Until: s.NextAt}
	failures := record.DecodeFailures(s)
	w.LastFailure = toPublicFailedAttempt(w.Name, failures.Latest())
	info.OpenCalls = append(info.OpenCalls, w)
	if f := w.LastFailure; f != nil && (info.LastFailure == nil || f.lastKnownTime().After(info.LastFailure.lastKnownTime())) {
		info.LastFailure = f
	}
}

// addPermitWait adds a step that waits for a permit. A step that waits for its first attempt has no row.
func (info *RunInfo) addPermitWait(p *store.QueuedPermit) {
	if p.Status == store.PermitHeld {
		return
	}
	name := naming.Display(p.Step)
	i := slices.IndexFunc(info.OpenCalls, func(w OpenCall) bool { return w.Name == name })
	if i < 0 {
		i = len(info.OpenCalls)
		info.OpenCalls = append(info.OpenCalls, OpenCall{Name: name, Kind: KindStep, Attempts: int(p.Attempt) - 1, Since: p.ArrivedAt})
	}
	w := &info.OpenCalls[i]
	w.Limit, w.LimitKey, w.Before = p.Limit, p.Key, p.StepsAhead
}

// newRunInfo converts the run's own row.
func newRunInfo(r *store.Run) *RunInfo {
	info := &RunInfo{
		ID: r.NameOrUUID(), Name: childCallName(r), RunID: r.UUID.String(), Workflow: r.Workflow, Queue: r.Queue, Priority: int(r.Priority), Version: r.Version,
		Status: Status(r.Status.String()), Reason: r.PauseOrHoldReason, Epoch: int(r.Epoch.Count), Crashes: int(r.Crashes),
		Input: payload.Shown(r.Input), Output: payload.Shown(r.Output),
		Detached: r.Detached, PausedBy: r.PausedBy,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt, PausedAt: r.PausedAt, WakeAt: r.WakeAt, Deadline: r.Deadline,
	}
	if r.Parent.Valid {
		info.Parent = r.Parent.UUID.String()
	}
	switch {
	case r.Status.IsTerminal():
	case r.Control&store.CancelRequested != 0: // also of a run that is held
		info.Requested = VerbCancel
	case r.Status != store.Paused && r.Control&store.PausedMask != 0:
		info.Requested = VerbPause
	}
	if !r.CancelledAt.IsZero() {
		info.Cancellation = &Cancellation{Reason: r.CancelReason, Actor: r.CancelledBy, At: r.CancelledAt}
	}
	info.Diverged = r.Control&store.HeldForDrift != 0 && r.Status == store.Paused
	if r.Owner.Valid {
		info.Owner = r.Owner.UUID.String()
	}
	if r.Status.IsTerminal() && r.Status != store.Completed {
		info.Err = newRunError(r)
	}
	return info
}

// childCallName returns the name of the call that started a child; empty for a root run.
func childCallName(r *store.Run) string {
	if r.Parent.Valid {
		return naming.Display(r.Name)
	}
	return ""
}

// WorkerState is the state of a worker.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining" // the worker's Engine.Run is stopping: the worker claims no runs, and lets running steps finish
)

// WorkerInfo describes a worker, which is a process that executes runs.
type WorkerInfo struct {
	ID          string
	Name        string
	Version     string
	Capacity    int // Config.Concurrency
	Active      int // how many runs the worker executed at its last heartbeat
	State       WorkerState
	StartedAt   time.Time
	HeartbeatAt time.Time
	DeadAt      time.Time // when the worker counts as dead without another heartbeat: HeartbeatAt plus the Config.Lease of the worker
	// ClockAhead is by how much the clock of the worker's machine was ahead of the database's clock at the last heartbeat, to
	// within half a round trip. ClockAhead is negative if the clock of the machine was behind the database's clock. The library
	// uses the database's clock, but time.Now in your code uses the clock of the machine.
	ClockAhead time.Duration
	Workflows  []string // the workflows that the worker executes; nil if there are more than 500
	// Quiet reports whether [Engine.QuietWorker] was called for the worker, so that the worker claims no runs. LastChange is
	// the last change of the worker by an operator, or nil if no operator has changed the worker.
	Quiet      bool
	LastChange *OperatorChange
	// Queues are the queues from which the worker claims runs, as in Config.Queues. Queues is nil if the worker claims runs
	// from all queues, or from more than 500. Every worker decides which runs have their turn in all queues with settings, even
	// in queues from which the worker claims no runs.
	Queues []string
}

// Workers returns the workers that execute runs of this database, in the order in which the workers started. A worker that died
// stays in the list for at least a minute after its last heartbeat, or for an hour if the store has no lock by which other
// workers detect the death. A worker is dead if its DeadAt is before [Engine.Now].
func (e *Engine) Workers(ctx context.Context) ([]WorkerInfo, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	rows, err := e.inner.Store().Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	workers := make([]WorkerInfo, len(rows))
	states := map[store.WorkerState]WorkerState{store.WorkerRunning: WorkerRunning, store.WorkerDraining: WorkerDraining}
	for i, r := range rows {
		workers[i] = WorkerInfo{
			ID: r.ID.String(), Name: r.Name, Version: r.Version, Capacity: int(r.Capacity), Active: int(r.ActiveRuns), State: states[r.State],
			StartedAt: r.StartedAt, HeartbeatAt: r.HeartbeatAt, DeadAt: r.DeadAt, ClockAhead: r.ClockAhead, Workflows: r.Workflows, Queues: r.Queues,
			Quiet: r.Quiet, LastChange: newOperatorChange(r.LastChange),
		}
	}
	return workers, nil
}
