package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// FirstCheckpoint is a checkpoint that each run of a workflow writes before all others, and whose output depends only on the definition of
// the workflow. If this process executes a new run at once, the transaction that starts the run also writes the FirstCheckpoint, which
// saves a commit. In every other run, the first execution writes the FirstCheckpoint like the checkpoint of any other call.
type FirstCheckpoint struct {
	Name   string // its full name
	Kind   store.StepKind
	Output []byte
}

// startsOfOneCall are the rows that one call of createRuns writes.
type startsOfOneCall struct {
	starts          []*store.StartWrite
	localStarts     []*store.StartWrite // those whose runs this process executes at once
	firstCheckpoint *store.StepWrite    // the FirstCheckpoint of the only start; nil: there is none
}

// addFirstCheckpoint adds the FirstCheckpoint of the run, if the call starts no other run and this process executes the run at once.
func (s *startsOfOneCall) addFirstCheckpoint(e *Engine) {
	if len(s.starts) != 1 || len(s.localStarts) != 1 {
		return
	}
	run := &s.starts[0].Run
	record := e.workflows[run.Workflow].FirstCheckpoint
	if record == nil {
		return
	}
	s.firstCheckpoint = &store.StepWrite{Step: store.Step{
		Run: run.UUID, Seq: store.EncodeSeq(1, true), Name: record.Name, Kind: record.Kind, Status: store.StepCompleted, Attempt: 1, Epoch: run.Epoch,
		Output: record.Output, StartedAt: run.CreatedAt, EndedAt: run.CreatedAt,
	}}
}

// makeRunsClaimable changes the rows so that a worker has to claim the runs.
func (s *startsOfOneCall) makeRunsClaimable() {
	for _, start := range s.localStarts {
		clearOwner(&start.Run)
	}
	s.localStarts, s.firstCheckpoint = nil, nil
}

// write writes the rows.
func (s *startsOfOneCall) write(ctx context.Context, j journal.CommittingWriter) error {
	if s.firstCheckpoint != nil {
		return j.WriteStartWithStep(ctx, s.starts[0], s.firstCheckpoint)
	}
	return j.WriteStarts(ctx, s.starts)
}

// history returns the checkpoints that were written with the start.
func (s *startsOfOneCall) history() []store.Step {
	if s.firstCheckpoint == nil || s.firstCheckpoint.Outcome != store.Written {
		return nil
	}
	return []store.Step{s.firstCheckpoint.Step}
}
