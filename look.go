package durable

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Status is the state of a run, as a word.
type Status string

// The states of a run. Completed, failed, cancelled and expired are final.
const (
	StatusPending   Status = "pending"
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
	StatusExpired   Status = "expired" // its Timeout was over, or a wait with ElseExpire
)

// RunInfo is what the database knows of a run. Zero times have not come yet.
type RunInfo struct {
	ID        string // what it is addressed by: the caller's ID of a root, the UUID of a child
	RunID     string // the UUID
	Name      string // a child's: of the call that started it, with its scope, as in "branch/kid"; empty for a root
	Workflow  string
	Queue     string
	Version   string // of the program that started it
	Status    Status
	Parent    string        // the parent's UUID; empty for a root
	Detached  bool          // a child that goes on when its parent ends
	Requested Verb          // VerbPause or VerbCancel while the run executes and that has not taken effect; else empty
	Reason    string        // why it is paused; or why it was held (see ErrHeld), until it parks, ends or has lost a lease after new checkpoints
	Actor     string        // who paused it
	Cancel    *Cancellation // nil unless a cancel was asked for
	Owner     string        // the worker's ID while it is executed
	Epoch     int           // how often it was claimed
	Crashes   int           // how often its process died or lost it, or it was held, since the last new checkpoint
	Loss      *Loss         // the last time that its process died or lost it; nil in lists, and if there was none
	Input     jsontext.Value
	Output    jsontext.Value // nil unless completed
	Err       *RunError      // nil unless failed, cancelled or expired
	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	PausedAt  time.Time
	WakeAt    time.Time // when it becomes claimable; while it runs, when its lease ends
	NoWorker  bool      // it is due, and no live worker that takes new runs executes its workflow in its queue; false in lists
	Deadline  time.Time // when its Timeout is over

	Tags     map[string]string
	Waits    []Wait     // what it waits for or works at, in the order in which the calls began
	Progress []Progress // of its Maps
	// LastFailure is, among Waits, the last attempt that failed or was interrupted; nil if none was, and in lists.
	LastFailure *FailedAttempt

	// Unreceived is how many signals the run has accepted and not received, by name. They stay when the
	// run ends; a signal that is sent after that is refused.
	Unreceived map[string]int
}

// Cancellation says who asked for a cancel first, when and why.
type Cancellation struct {
	Reason string
	Actor  string
	At     time.Time
}

// Loss is the end of a lease before the run was finished or released: its worker died, hung or had no database.
type Loss struct {
	At     time.Time // when another worker took the run over, or found it paused
	Worker string    // the ID of the worker that had the run
}

// Wait is a durable call that has no outcome yet.
type Wait struct {
	Name     string // with its scope
	Kind     Kind
	Attempts int
	Since    time.Time
	Until    time.Time // of a sleep, a backoff or a bounded receive; else zero
	// LastFailure is the last attempt that failed or was interrupted; nil if none was.
	LastFailure *FailedAttempt
}

// Progress is how far a Map is.
type Progress struct {
	Name  string // with its scope
	Done  int
	Total int
}

// Get answers the run with the caller's ID, or the UUID, or ErrNotFound.
func (e *Engine) Get(ctx context.Context, id string) (*RunInfo, error) {
	r, err := e.inner.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	now, err := e.inner.Now(ctx)
	if err != nil {
		return nil, err
	}
	outline, err := e.inner.Store().Outline(ctx, r.ID, now)
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	unexecuted, err := e.inner.Unexecuted(ctx, r, now)
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	unreceived, err := e.inner.Store().Unreceived(ctx, []uuid.UUID{r.ID})
	if err != nil {
		return nil, fmt.Errorf("get run %q: %w", id, err)
	}
	info := runInfo(r)
	info.NoWorker = unexecuted
	if len(unreceived) > 0 {
		info.Unreceived = make(map[string]int, len(unreceived))
	}
	for _, s := range unreceived {
		info.Unreceived[engine.ShownSignal(s.Name)] += s.N
	}
	info.Tags = make(map[string]string, len(outline.Tags))
	for _, t := range outline.Tags {
		info.Tags[t.Key] = t.Value
	}
	sight := engine.NewSight(r, outline.Choices, now)
	for i := range outline.Open {
		if s := &outline.Open[i]; sight.Waits(s) {
			info.wait(s)
		}
	}
	if !outline.Lost.At.IsZero() {
		info.Loss = &Loss{At: outline.Lost.At, Worker: outline.Lost.Worker.String()}
	}
	for _, m := range outline.Maps {
		total, err := decode[int](m.Step.Output)
		if err != nil {
			return nil, fmt.Errorf("%w: the size of map %q in run %q: %w", ErrDiverged, engine.Shown(m.Step.Name), id, err)
		}
		info.Progress = append(info.Progress, Progress{Name: engine.Shown(m.Step.Name), Done: m.Done, Total: total})
	}
	return info, nil
}

// wait notes what the run waits for or works at.
func (info *RunInfo) wait(s *store.Step) {
	w := Wait{Name: engine.Shown(s.Name), Kind: Kind(s.Kind.String()), Attempts: int(s.Attempt), Since: s.StartedAt, Until: s.NextAt}
	failures := engine.FailuresOf(s)
	w.LastFailure = failedAttempt(w.Name, failures.Latest())
	info.Waits = append(info.Waits, w)
	if f := w.LastFailure; f != nil && (info.LastFailure == nil || f.began().After(info.LastFailure.began())) {
		info.LastFailure = f
	}
}

// runInfo is what the run's own row tells.
func runInfo(r *store.Run) *RunInfo {
	info := &RunInfo{
		ID: r.Address(), Name: childName(r), RunID: r.ID.String(), Workflow: r.Workflow, Queue: r.Queue, Version: r.Version,
		Status: Status(r.Status.String()), Reason: r.Reason, Epoch: int(r.Epoch.Count), Crashes: int(r.Crashes),
		Input: r.Input, Output: r.Output,
		Detached: r.Detached, Actor: r.PausedBy,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt, PausedAt: r.PausedAt, WakeAt: r.WakeAt, Deadline: r.Deadline,
	}
	if r.Parent.Valid {
		info.Parent = r.Parent.UUID.String()
	}
	switch {
	case r.Status.Terminal() || r.Status == store.Paused:
	case r.Control&store.CancelAsked != 0:
		info.Requested = VerbCancel
	case r.Control&store.PausedAnyhow != 0:
		info.Requested = VerbPause
	}
	if !r.CancelledAt.IsZero() {
		info.Cancel = &Cancellation{Reason: r.CancelReason, Actor: r.CancelledBy, At: r.CancelledAt}
	}
	if r.Owner.Valid {
		info.Owner = r.Owner.UUID.String()
	}
	if r.Status.Terminal() && r.Status != store.Completed {
		info.Err = runError(r)
	}
	return info
}

// childName is the name of the call that started a child; empty for a root.
func childName(r *store.Run) string {
	if r.Parent.Valid {
		return engine.Shown(r.Name)
	}
	return ""
}

// WorkerState is what a worker is doing, as a word.
type WorkerState string

// The states of a worker.
const (
	WorkerRunning  WorkerState = "running"
	WorkerDraining WorkerState = "draining" // its Run is to return: it takes no new runs, and lets those that it has come to a stop
)

// Worker is one process in the registry.
type Worker struct {
	ID          string
	Name        string
	Version     string
	Capacity    int // runs that it executes at once
	Active      int // runs that it executed at its last heartbeat
	State       WorkerState
	StartedAt   time.Time
	HeartbeatAt time.Time
	Workflows   []string // that it executes; nil if there are more than 500, which are not listed
}

// Workers lists the processes that execute runs in this database, oldest first. One that
// died stays for a while, with an old heartbeat.
func (e *Engine) Workers(ctx context.Context) ([]Worker, error) {
	rows, err := e.inner.Store().Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	workers := make([]Worker, len(rows))
	states := map[store.WorkerState]WorkerState{store.WorkerRunning: WorkerRunning, store.WorkerDraining: WorkerDraining}
	for i, r := range rows {
		workers[i] = Worker{
			ID: r.ID.String(), Name: r.Name, Version: r.Version, Capacity: int(r.Capacity), Active: int(r.Active), State: states[r.State],
			StartedAt: r.StartedAt, HeartbeatAt: r.HeartbeatAt,
		}
		for _, p := range r.Executes {
			workers[i].Workflows = append(workers[i].Workflows, p.Workflow)
		}
		slices.Sort(workers[i].Workflows)
	}
	return workers, nil
}
