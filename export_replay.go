package durable

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// oldestExportFormat is the oldest format that ReplayExport reads; see [ExportFormat].
const oldestExportFormat = 2

// ReplayExport replays a history that [Engine.Export] has written against the code of this engine's Config.Workflows, as
// [Engine.Preflight] does with the live runs of a database. ReplayExport writes nothing and executes no step. Keep the exports
// of typical runs with your code, and replay these exports before a deploy or in your own tests. durabletest.Replay replays an
// export in a test without an engine.
//
// An export of a completed or failed run diverges if the replay makes further calls or ends in another way than the run did.
// ReplayExport decodes payloads that a [Config.Codec] has encoded. ReplayExport returns [ErrInvalidConfig] if exported is not
// an export, and [ErrUnreadable] if a payload of the export cannot be decoded.
func (e *Engine) ReplayExport(ctx context.Context, exported []byte) (PreflightRun, error) {
	if err := e.checkUsable(ctx); err != nil {
		return PreflightRun{}, fmt.Errorf("replay an export: %w", err)
	}
	var x Exported
	if err := json.Unmarshal(exported, &x); err != nil {
		return PreflightRun{}, fmt.Errorf("%w: the document is not an export: %w: pass what Engine.Export returned", ErrInvalidConfig, err)
	}
	if x.Format < oldestExportFormat || x.Format > ExportFormat {
		return PreflightRun{}, fmt.Errorf("%w: the export is of format %d, and this code reads %d to %d: export the run again", ErrInvalidConfig, x.Format, oldestExportFormat, ExportFormat)
	}
	if err := e.DecodeExport(&x); err != nil {
		return PreflightRun{}, fmt.Errorf("replay the export of run %q: %w", x.Run.ID, err)
	}
	row, steps, err := x.rowsForReplay()
	if err != nil {
		return PreflightRun{}, err
	}
	replays, err := e.inner.NewPreflight(ctx)
	if err != nil {
		return PreflightRun{}, fmt.Errorf("replay the export of run %q: %w", x.Run.ID, err)
	}
	p := preflightCall{e: e, replays: replays, neededCounts: make(map[NeededChange]int)}
	found, got := p.replayRun(row, steps)
	found.Status = x.Run.Status
	if !found.Diverged && !found.Unknown {
		x.compareOutcome(&found, got)
	}
	return found, ctx.Err()
}

// rowsForReplay returns the rows that a live run with this history would have.
func (x *Exported) rowsForReplay() (*store.Run, []store.Step, error) {
	id, ok := store.ParseCanonicalUUID(x.Run.RunID)
	if !ok {
		return nil, nil, fmt.Errorf("%w: the export has the run_id %.40q, which is no UUID: pass what Engine.Export returned", ErrInvalidConfig, x.Run.RunID)
	}
	run := &store.Run{
		UUID: id, Name: x.Run.ID, Workflow: x.Run.Workflow, Queue: x.Run.Queue, Version: x.Run.Version, Status: store.Pending,
		Epoch: store.Epoch{Count: 1}, Input: compactJSON(x.Run.Input), CreatedAt: x.Run.CreatedAt, StartedAt: x.Run.StartedAt,
	}
	if parent, ok := store.ParseCanonicalUUID(x.Run.Parent); ok {
		run.Name, run.Parent = naming.ParseDisplay(x.Run.Name), store.ValidNullUUID(parent)
	}
	var steps []store.Step
	for i := range x.History {
		h := &x.History[i]
		kind, status, ended, known := history.ParseExportedStep(h.Kind, h.Status, len(h.Error) > 0, h.StartedAt, h.EndedAt)
		switch {
		case !known:
			return nil, nil, fmt.Errorf("%w: the export of run %q has a checkpoint %q that is a %s and %s, which this code does not know: export the run again", ErrInvalidConfig, x.Run.ID, h.Name, h.Kind, h.Status)
		case kind == store.KindRunEnd || kind == store.KindKeyRenewal:
			continue // today's code must fail by itself; and a replay executes no step, so it needs no keys
		}
		row := store.Step{
			Run: id, Name: naming.ParseDisplay(h.Name), Kind: kind, Status: status, Attempt: int32(h.Attempts), Epoch: run.Epoch,
			Seq: store.EncodeSeq(int32(h.Seq), h.InOrder), Output: compactJSON(h.Output), Error: compactJSON(h.Error), StartedAt: h.StartedAt, EndedAt: ended, NextAt: h.NextAt,
		}
		if h.Workflow != "" {
			var err error
			if row.Failures, err = json.Marshal(&record.Failures{Workflow: h.Workflow}); err != nil {
				return nil, nil, err
			}
		}
		steps = append(steps, row)
	}
	return run, steps, nil
}

// compareOutcome compares how the replay of a run has ended with how the run did.
func (x *Exported) compareOutcome(found *PreflightRun, got engine.PreflightResult) {
	diverges := func(call, format string, args ...any) {
		found.Diverged, found.Call, found.Reason, found.Next, found.Err = true, call, fmt.Sprintf(format, args...), nil, ""
	}
	completed, failed := x.Run.Status == StatusCompleted, x.Run.Status == StatusFailed
	switch {
	case !completed && !failed:
	case len(found.Next) > 0:
		diverges(found.Next[0], "the run has ended, and its history does not hold this call: remove the call")
	case !got.FunctionReturned:
		found.Unknown = true
	case completed && got.Failure != nil:
		diverges("", "the run has completed, and would fail now: %s", got.Failure.Message)
	case failed && got.Failure == nil:
		diverges("", "the run has failed, and would complete now")
	case completed && !bytes.Equal(compactJSON(x.Run.Output), compactJSON(got.Output)):
		diverges("", "the run has another output now")
	case failed && record.DecodeFailure(x.Run.Error).Message != got.Failure.Message:
		diverges("", "the run failed with %q, and would fail with %q now", record.DecodeFailure(x.Run.Error).Message, got.Failure.Message)
	case failed:
		found.Err = "" // it fails as it did
	}
}

// compactJSON returns a value without the indentation of an export, as it was recorded.
func compactJSON(v jsontext.Value) jsontext.Value {
	if v != nil {
		v = v.Clone()
		_ = v.Compact() // cannot fail: the value was read as JSON
	}
	return v
}
