package durable

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/history"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/token"
)

// oldestExportFormat is the oldest format that ReplayExport reads; see [ExportFormat].
const oldestExportFormat = 2

// ReplayExport replays a history that [Engine.Export] has written against the code of this engine's Config.Workflows, as
// [Engine.Preflight] does with the live runs of a database. ReplayExport writes nothing, executes no step, and does not use the
// database. Keep the exports of typical runs with your code, and replay these exports before a deploy or in your own tests.
// durabletest.Replay does the same in a test without an engine. The time of the replay is the latest time in the history, so
// that the result does not depend on when the export is replayed.
//
// An export of a completed or failed run diverges if the workflow function makes further calls, or ends in another way than the
// run did. Further calls in branches that the function does not await are no divergence, because the run ends such branches when the function
// returns. In the replay of a run that has ended, [Ctx.Patched] returns false unless the history holds another decision,
// because the run has passed every place. The end of an expired or cancelled run is not compared. Tokens of [Callback.Token] are
// compared without their signatures, because the replay does not have the key of the database's tokens.
//
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
	replays, err := e.inner.NewPreflightAt(x.latestTime())
	if err != nil {
		return PreflightRun{}, fmt.Errorf("replay the export of run %q: %w", x.Run.ID, err)
	}
	p := preflightCall{e: e, replays: replays, neededCounts: make(map[NeededChange]int)}
	hasEnded := slices.Contains([]Status{StatusCompleted, StatusFailed, StatusCancelled, StatusExpired}, x.Run.Status)
	found, got := p.replayRun(ctx, row, steps, hasEnded)
	if ctx.Err() != nil {
		return PreflightRun{}, fmt.Errorf("replay the export of run %q: %w", x.Run.ID, store.ContextError(ctx))
	}
	found.Status = x.Run.Status
	if hasEnded && !found.Diverged && !found.Unknown {
		x.compareOutcome(&found, got)
	}
	return found, nil
}

// latestTime returns the latest time in the export. A sleep that was not over when the run was exported is not over at this
// time either.
func (x *Exported) latestTime() time.Time {
	at := x.Run.CreatedAt
	note := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	note(x.Run.EndedAt)
	for i := range x.History {
		note(x.History[i].StartedAt)
		note(x.History[i].EndedAt)
	}
	return at
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
	isLive := slices.Contains(liveStatuses, x.Run.Status)
	var steps []store.Step
	for i := range x.History {
		h := &x.History[i]
		kind, status, ended, known := history.ParseExportedStep(h.Kind, h.Status, len(h.Error) > 0, h.StartedAt, h.EndedAt)
		switch {
		case !known:
			return nil, nil, fmt.Errorf("%w: the export of run %q has a checkpoint %q that is a %s and %s, which this code does not know: export the run again", ErrInvalidConfig, x.Run.ID, h.Name, h.Kind, h.Status)
		case kind == store.KindRunEnd && !isLive || kind == store.KindKeyRenewal:
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

// recordedFailure returns the failure with which the workflow function of a failed run returned. If the run has executed compensations, the
// error of the run also names those that failed, and the record of the decision to fail holds what the function returned.
func (x *Exported) recordedFailure() *record.Failure {
	for i := range x.History {
		if h := &x.History[i]; h.Kind == store.KindRunEnd.String() && len(h.Error) > 0 {
			return record.DecodeFailure(h.Error)
		}
	}
	return record.DecodeFailure(x.Run.Error)
}

// compareOutcome compares the end of the replay of a run that has ended with the end of the run itself.
func (x *Exported) compareOutcome(found *PreflightRun, got engine.PreflightResult) {
	diverges := func(call, format string, args ...any) {
		found.Diverged, found.Call, found.Reason, found.Next, found.Err = true, call, fmt.Sprintf(format, args...), nil, ""
	}
	completed, failed := x.Run.Status == StatusCompleted, x.Run.Status == StatusFailed
	next := found.Next
	if len(next) > 0 && !got.FunctionReturned && (completed || failed) {
		diverges(next[0], "the run has ended, and its history does not hold this call: remove the call")
		return
	}
	if got.FunctionReturned {
		found.Next = nil // those of branches that end when the function returns
	}
	switch {
	case !completed && !failed:
		found.Err = "" // the cancel or the timeout ended the run, and not this failure
	case !got.FunctionReturned:
		found.Unknown = true
	case completed && got.Failure != nil:
		diverges("", "the run has completed, and would fail now: %s", got.Failure.Message)
	case failed && got.Failure == nil:
		diverges("", "the run has failed, and would complete now")
	case completed && !token.EqualExceptMACs(compactJSON(x.Run.Output), compactJSON(got.Output)):
		diverges("", "the run has another output now")
		found.Output = got.Output
	case failed:
		if recorded := x.recordedFailure(); !token.EqualExceptMACs([]byte(recorded.Message), []byte(got.Failure.Message)) {
			diverges("", "the run failed with %q, and would fail with %q now", recorded.Message, got.Failure.Message)
		}
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
