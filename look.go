package durable

import (
	"context"
	"encoding/json/jsontext"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Status is the state of a run, as a word.
type Status string

// The states of a run. Completed, failed and cancelled absorb.
const (
	StatusPending   Status = "pending"
	StatusRunning   Status = "running"
	StatusWaiting   Status = "waiting"
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// RunInfo is what the database knows of a run. Zero times have not come yet.
type RunInfo struct {
	ID        string // the caller's, or the UUID
	RunID     string // the UUID
	Workflow  string
	Queue     string
	Version   string // of the program that started it
	Status    Status
	Reason    string // why it is paused
	Owner     string // the worker's ID while it is executed
	Epoch     int    // how often it was claimed
	Crashes   int    // claims after a lost lease since the last new checkpoint
	Input     jsontext.Value
	Output    jsontext.Value // nil unless completed
	Err       *RunError      // nil unless failed or cancelled
	CreatedAt time.Time
	StartedAt time.Time
	EndedAt   time.Time
	WakeAt    time.Time // when it becomes claimable; while it runs, when its lease ends
}

// Get answers the run with the caller's ID, or the UUID, or ErrNotFound.
func (e *Engine) Get(ctx context.Context, id string) (*RunInfo, error) {
	r, err := e.inner.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	info := &RunInfo{
		ID: r.Name, RunID: r.ID.String(), Workflow: r.Workflow, Queue: r.Queue, Version: r.Version,
		Status: Status(r.Status.String()), Reason: r.Reason, Epoch: int(r.Epoch), Crashes: int(r.Crashes),
		Input: r.Input, Output: r.Output,
		CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt, WakeAt: r.WakeAt,
	}
	if r.Owner.Valid {
		info.Owner = r.Owner.UUID.String()
	}
	if r.Status == store.Failed || r.Status == store.Cancelled {
		info.Err = runError(r)
	}
	return info, nil
}

// Checkpoint is one row of a run's history.
type Checkpoint struct {
	Name      string // with its scope
	Kind      string // "step" or "tx"
	Status    string // "started", "backoff", "completed" or "failed"
	Attempts  int    // that have begun, as far as is recorded
	Output    jsontext.Value
	Err       *StepError // of the last failed attempt
	StartedAt time.Time  // of the first attempt
	EndedAt   time.Time  // of the last
	NextAt    time.Time  // when the next attempt is due
}

// History answers what is recorded of the run's steps, ordered by name, or ErrNotFound.
func (e *Engine) History(ctx context.Context, id string) ([]Checkpoint, error) {
	steps, err := e.inner.History(ctx, id)
	if err != nil {
		return nil, err
	}
	history := make([]Checkpoint, len(steps))
	for i, s := range steps {
		history[i] = Checkpoint{
			Name: engine.Shown(s.Name), Kind: s.Kind.String(), Status: s.Status.String(), Attempts: int(s.Attempt),
			Output: s.Output, StartedAt: s.StartedAt, EndedAt: s.EndedAt, NextAt: s.NextAt,
		}
		if len(s.Error) > 0 {
			history[i].Err = stepError(history[i].Name, engine.DecodeFailure(s.Error))
		}
	}
	return history, nil
}

// Worker is one process in the registry.
type Worker struct {
	ID          string
	Name        string
	Version     string
	Capacity    int // runs that it executes at once
	Active      int // runs that it executed at its last heartbeat
	StartedAt   time.Time
	HeartbeatAt time.Time
}

// Workers lists the processes that execute runs in this database, oldest first. One that
// died stays for a while, with an old heartbeat.
func (e *Engine) Workers(ctx context.Context) ([]Worker, error) {
	rows, err := e.inner.Store().Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	workers := make([]Worker, len(rows))
	for i, r := range rows {
		workers[i] = Worker{
			ID: r.ID.String(), Name: r.Name, Version: r.Version, Capacity: int(r.Capacity), Active: int(r.Active),
			StartedAt: r.StartedAt, HeartbeatAt: r.HeartbeatAt,
		}
	}
	return workers, nil
}
