package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// valuesByStoredName returns the values by the stored names of their calls.
func (q *RepairRequest) valuesByStoredName() map[string][]byte {
	values := make(map[string][]byte, len(q.ForkStepValues))
	for name, value := range q.ForkStepValues {
		values[naming.ParseDisplay(name)] = value
	}
	return values
}

// Fork starts a root run whose history begins with a copy of the history of the run that ref names. The named run does not change,
// and may be live. Fork copies only recorded outcomes, which never change, so the copy needs no lock.
func (e *Engine) Fork(ctx context.Context, ref string, q RepairRequest) (*PlannedRunRepair, error) {
	if err := e.checkNoWorkersBelowSchema(ctx, featureRepairs, store.FirstSchemaWithRepairs); err != nil {
		return nil, err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return nil, err
	}
	row, history, err := e.ReadWithHistory(ctx, ref, store.AllPayloads)
	if err != nil {
		return nil, err
	}
	if _, err := e.ReadWaitingInput(ctx, row); err != nil {
		return nil, fmt.Errorf("%s run %q: %w", ForkVerb, ref, err)
	}
	made, err := e.fork(ctx, row, history, &q)
	if err != nil {
		return nil, e.notFoundErrorIfDeleted(ctx, ref, fmt.Errorf("%s run %q: %w", ForkVerb, ref, err))
	}
	return made, nil
}

func (e *Engine) fork(ctx context.Context, row *store.Run, history []store.Step, q *RepairRequest) (*PlannedRunRepair, error) {
	subject, err := e.newRunToRepair(ctx, row, history)
	if err != nil {
		return nil, err
	}
	start, err := e.newForkStartRequest(ctx, row, q)
	if err != nil {
		return nil, err
	}
	r := &repair.Request{From: naming.ParseDisplay(q.FromStep), FromEnd: q.KeepAllOtherCalls, Now: e.clock.Now()}
	steps, detail, err := repair.CopyHistory(subject, r, q.valuesByStoredName())
	if err == nil {
		err = checkForkPayloadsDecodable(row, steps)
	}
	if err == nil && q.DryRun {
		err = e.checkForkRunIDIsFree(ctx, q.ForkRunID)
	}
	if err != nil {
		return nil, err
	}
	if q.DryRun {
		return &PlannedRunRepair{Run: &store.Run{Name: q.ForkRunID}, NewGeneration: 1, Detail: detail}, nil
	}
	// The copy belongs to the version that executed the copied calls, and not to the version of this process. The row is read again after
	// the history, because another version may have claimed the run meanwhile.
	source, err := e.getRun(ctx, row.UUID.String(), store.NoPayloads)
	if err != nil {
		return nil, err
	}
	starts, spans := e.PrepareStarts(ctx, start)
	s, run := starts[0], &starts[0].Run
	run.Version = source.Version
	run.Epoch = store.Epoch{}.Next(store.NewNonce())
	for i := range steps {
		steps[i].Run, steps[i].Epoch = run.UUID, run.Epoch
	}
	f := &store.ForkRequest{Start: s, Steps: steps, Source: row.UUID, Actor: q.Actor, Reason: q.Reason}
	err = e.commitInSeparateTx(ctx, userCaller, func() error { return e.store.ForkRun(ctx, f) })
	if err == nil && s.Outcome != store.Written {
		err = forkRunIDConflictError(run.Name)
	}
	if err != nil {
		spans.EndFailed(err)
		return nil, err
	}
	spans.endSpan(0, s, nil)
	e.telemetry.CountStart(ctx, run.Workflow, run.Queue)
	e.telemetry.Log.Info("a run was forked: another run continues a copy of it", telemetry.KeyRun, run.UUID, telemetry.KeyName, run.Name, telemetry.KeyWorkflow, run.Workflow,
		telemetry.KeySource, row.UUID, telemetry.KeyActor, q.Actor, telemetry.KeyReason, q.Reason)
	if w := e.worker(); w != nil {
		w.wakeLoops()
	}
	return &PlannedRunRepair{Run: run, NewGeneration: 1, Detail: detail}, nil
}

func forkRunIDConflictError(id string) error {
	return fmt.Errorf("%w: run %q exists already: use another ID", ErrIDConflict, id)
}

// checkForkRunIDIsFree returns the error that the fork would return if a run with the ID exists.
func (e *Engine) checkForkRunIDIsFree(ctx context.Context, id string) error {
	_, err := e.getRun(ctx, id, store.NoPayloads)
	switch {
	case err == nil:
		return forkRunIDConflictError(id)
	case errors.Is(err, ErrNotFound):
		return nil
	}
	return err
}

// checkForkPayloadsDecodable returns why a payload of the copy cannot be decoded, or nil. The copy needs all payloads, because they
// are encoded anew for the new run.
func checkForkPayloadsDecodable(row *store.Run, steps []store.Step) error {
	if err := payload.Problem(row.Input); err != nil {
		return fmt.Errorf("the input: %w", err)
	}
	for i := range steps {
		if err := cmp.Or(checkStepDecodable(&steps[i]), payload.Problem(steps[i].Failures)); err != nil {
			return err
		}
	}
	return nil
}

// newForkStartRequest returns the request to start the run that a fork makes. It has the queue, priority, timeout and tags of the
// forked run.
func (e *Engine) newForkStartRequest(ctx context.Context, row *store.Run, q *RepairRequest) ([]StartRequest, error) {
	details, err := e.store.RunProgress(ctx, row.UUID, e.clock.Now())
	if err != nil {
		return nil, err
	}
	all := []StartRequest{{
		Name: q.ForkRunID, Workflow: row.Workflow, Queue: row.Queue, Priority: &row.Priority, Input: row.Input, Timeout: details.Timeout, Tags: details.Tags,
	}}
	wrong, err := e.CheckNamesAgainstUUIDs(ctx, all)
	if err == nil {
		err = wrong[0]
	}
	if err == nil {
		err = e.MarkStartsNeedingQueuePlace(ctx, all)
	}
	return all, err
}
