package durable

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// ExportFormat is the version of the format that [Engine.Export] writes. ExportFormat changes when readers of the previous
// format would misunderstand the new format; added fields do not change ExportFormat. durabletest.Replay reads formats 2 and 3.
// Exports in format 2 have no sequence numbers and no failed attempts, and show a sleep that was not over as completed.
const ExportFormat = 3

// Exported is the JSON document that [Engine.Export] writes. Times in the document are in RFC 3339. The document leaves out the
// fields of times that have not come yet, and of missing outputs and errors.
type Exported struct {
	Format int         `json:"format"` // ExportFormat
	Run    ExportedRun `json:"run"`
	// Generation is the number of the superseded generation to which Run and History belong. Generation is zero for an export
	// of the newest generation.
	Generation int `json:"generation,omitzero"`
	// History holds the checkpoints of the run, in the order in which their calls began. The checkpoints of children are in the
	// exports of the children.
	History []ExportedStep `json:"history"`
}

// ExportedRun is the run of an export.
type ExportedRun struct {
	ID        string         `json:"id"`            // the caller's ID of a root run, or the UUID of a child
	RunID     string         `json:"run_id"`        // the UUID
	Name      string         `json:"name,omitzero"` // the name of the call that started a child, with its scope
	Parent    string         `json:"parent,omitzero"`
	Detached  bool           `json:"detached,omitzero"` // true if the run is a child that continues when its parent ends
	Workflow  string         `json:"workflow"`
	Queue     string         `json:"queue"`
	Priority  int            `json:"priority,omitzero"`
	Version   string         `json:"version,omitzero"`
	Status    Status         `json:"status"`
	Input     jsontext.Value `json:"input"`
	Output    jsontext.Value `json:"output,omitzero"`
	Error     jsontext.Value `json:"error,omitzero"` // an object with the field "message", and optional fields such as "type", "codes" and "step"
	CreatedAt time.Time      `json:"created_at"`
	StartedAt time.Time      `json:"started_at,omitzero"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	Deadline  time.Time      `json:"deadline,omitzero"`
}

// ExportedStep is one checkpoint of an export.
type ExportedStep struct {
	Seq       int            `json:"seq"`               // see Checkpoint.Seq
	InOrder   bool           `json:"in_order,omitzero"` // true if the workflow function or the branch made the call in its own goroutine, so that the order of its calls is fixed, and no repair has changed an earlier call
	Name      string         `json:"name"`              // the name with its scope: "orders/7" is item 7 of the Map orders; a slash within a name is "%2F", and "%" is "%25"
	Kind      string         `json:"kind"`
	Status    string         `json:"status"` // see Checkpoint.Status
	Attempts  int            `json:"attempts"`
	Output    jsontext.Value `json:"output,omitzero"`
	Error     jsontext.Value `json:"error,omitzero"` // the error of the call, in the form of ExportedRun.Error
	StartedAt time.Time      `json:"started_at"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`
	NextAt    time.Time      `json:"next_at,omitzero"`

	FirstFailure *ExportedAttempt `json:"first_failure,omitzero"`
	LastFailure  *ExportedAttempt `json:"last_failure,omitzero"` // equal to FirstFailure if only one attempt failed

	Workflow string `json:"workflow,omitzero"` // the workflow of a child; empty for other calls
}

// ExportedAttempt is an attempt that failed or was interrupted; see [FailedAttempt].
type ExportedAttempt struct {
	Attempt     int            `json:"attempt"`
	Worker      string         `json:"worker,omitzero"`
	WorkerID    string         `json:"worker_id,omitzero"`
	Interrupted bool           `json:"interrupted,omitzero"`
	Error       jsontext.Value `json:"error,omitzero"` // the error of the attempt, in the form of ExportedRun.Error
	StartedAt   time.Time      `json:"started_at,omitzero"`
	EndedAt     time.Time      `json:"ended_at,omitzero"`
	NextAt      time.Time      `json:"next_at,omitzero"`
}

// Export returns the run with the given ID, which is the caller's ID or the UUID, and its history, as the JSON of an [Exported].
// An export can be archived, inspected, or replayed against newer code with durabletest.Replay. The export contains all inputs
// and outputs, so protect it as you protect your database. If the engine has a [Config.Codec], the payloads in the export are
// encoded, unless the option [DecodePayloads] is given; [Engine.DecodeExport] decodes them later. If a worker executes the run
// during the export, the history can be slightly newer than the rest of the export. Export returns [ErrNotFound] if there is no
// such run.
func (e *Engine) Export(ctx context.Context, id string, opts ...ExportOption) ([]byte, error) {
	var o exportOptions
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: an ExportOption of Export is nil: leave it out", ErrInvalidConfig)
		}
		opt(&o)
	}
	out, err := e.exportRun(ctx, id, 0, o.plainPayloads)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out, jsonOptions, jsontext.WithIndent("  "))
	if err != nil {
		return nil, fmt.Errorf("export run %q: %w", id, err)
	}
	return append(b, '\n'), nil
}

// exportRun returns the run, or one of its superseded generations if the number is not zero, and its history.
func (e *Engine) exportRun(ctx context.Context, id string, generation int, plain bool) (*Exported, error) {
	r, steps, view, err := e.readHistory(ctx, id, generation)
	if err != nil {
		return nil, err
	}
	generations, err := e.supersededParents(ctx, []*store.Run{r})
	if err == nil {
		_, err = e.inner.ReadWaitingInput(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("export run %q: %w", id, err)
	}
	out := &Exported{Format: ExportFormat, Run: newExportedRun(r), Generation: generation, History: make([]ExportedStep, len(steps))}
	if g, ok := generations[r.Parent.UUID]; ok {
		out.Run.Parent = g.Run.String()
	}
	for i := range steps {
		s := &steps[i]
		status, ended := view.StatusOf(s)
		failures := record.DecodeFailures(s)
		out.History[i] = ExportedStep{
			Seq: int(s.Position()), InOrder: s.WasMadeByScopeGoroutine(), Name: naming.Display(s.Name), Kind: s.Kind.String(), Status: status, Attempts: int(s.Attempt),
			Output: s.Output, Error: s.Error, StartedAt: s.StartedAt, EndedAt: ended, NextAt: s.NextAt,
			FirstFailure: newExportedAttempt(failures.First), LastFailure: newExportedAttempt(failures.Latest()), Workflow: failures.Workflow,
		}
	}
	if err := out.checkReadable(); err != nil {
		return nil, fmt.Errorf("export run %q: %w", id, err)
	}
	if e.cfg.Codec != nil && !plain {
		if err := e.encodePayloads(out); err != nil {
			return nil, fmt.Errorf("export run %q: %w", id, err)
		}
	}
	return out, nil
}

func newExportedAttempt(a *record.FailedAttempt) *ExportedAttempt {
	if a == nil {
		return nil
	}
	x := &ExportedAttempt{
		Attempt: int(a.Attempt), Worker: a.Worker, WorkerID: a.WorkerID, Interrupted: a.Interrupted, StartedAt: a.StartedAt, EndedAt: a.EndedAt, NextAt: a.NextAt,
	}
	if a.Error != nil {
		x.Error = a.Error.Encode()
	}
	return x
}

func newExportedRun(r *store.Run) ExportedRun {
	out := ExportedRun{
		ID: r.NameOrUUID(), Name: childCallName(r), RunID: r.UUID.String(), Workflow: r.Workflow, Queue: r.Queue, Priority: int(r.Priority), Version: r.Version, Status: Status(r.Status.String()),
		Input: r.Input, Output: r.Output, Error: r.Error,
		Detached: r.Detached, CreatedAt: r.CreatedAt, StartedAt: r.StartedAt, EndedAt: r.EndedAt, Deadline: r.Deadline,
	}
	if r.Parent.Valid {
		out.Parent = r.Parent.UUID.String()
	}
	return out
}
