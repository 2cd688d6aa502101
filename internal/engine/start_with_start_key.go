package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A start with a start key has a transaction of its own, which locks the row of its key. It does not use the
// journal, so a start that waits for the row delays no other write. Package startkey decides what the start does.

// prepareStartWithStartKey prepares a start with a start key, and returns the startkey.Start that plans it and the start's span. If p is nil,
// the start is not made, and its result is refused or the error.
func (e *Engine) prepareStartWithStartKey(ctx context.Context, q *StartRequest) (p *startkey.Start, spans StartSpans, refused StartResult, err error) {
	requests := []StartRequest{*q}
	wrong, err := e.CheckNamesAgainstUUIDs(ctx, requests)
	if err == nil && wrong[0] != nil {
		return nil, spans, StartResult{Err: wrong[0]}, nil
	}
	if err == nil {
		err = e.MarkStartsNeedingQueuePlace(ctx, requests)
	}
	if err != nil {
		return nil, spans, StartResult{}, err
	}
	starts, spans := e.PrepareStarts(ctx, requests)
	return &startkey.Start{Spec: *q.StartKey, Run: *starts[0], Now: e.clock.Now, RefusalError: requests[0].queueRefusal}, spans, StartResult{}, nil
}

// setStartCallID gives a start that a step makes the identity of the step's call, so that a repeated start leads to the same run.
func (e *Engine) setStartCallID(ctx context.Context, q *StartRequest, p *startkey.Start) {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return
	}
	h := sha256.New()
	for _, part := range []string{t.uniqueCallKey(), q.Workflow, q.StartKey.Kind.String(), q.StartKey.Key, q.Name, string(q.Input)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	p.Call = hex.EncodeToString(h.Sum(nil)[:16])
	if t.attempt > 1 || t.r.row.Epoch.Count > 1 {
		p.StepBeganAt = t.r.row.StartedAt
	}
}

// StartWithStartKey starts one run with a start key, in a transaction of its own.
func (e *Engine) StartWithStartKey(ctx context.Context, q *StartRequest) (StartResult, error) {
	if err := e.CheckOutsideTx(ctx, "a start"); err != nil {
		return StartResult{}, err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return StartResult{}, err
	}
	return e.checkNameAndStartWithStartKey(ctx, userCaller, q)
}

func (e *Engine) checkNameAndStartWithStartKey(ctx context.Context, by writeOptions, q *StartRequest) (StartResult, error) {
	p, spans, refused, err := e.prepareStartWithStartKey(ctx, q)
	if p == nil {
		return refused, err
	}
	e.setStartCallID(ctx, q, p)
	change := p.ChangeRequest()
	unlock, err := e.startKeyLocks.lockStartKey(ctx, change.Key)
	if err != nil {
		spans.EndFailed(err)
		return StartResult{}, &WriteError{Err: err}
	}
	err = e.commitInSeparateTx(ctx, by, func() error { return e.store.UpdateStartKeyRow(ctx, change) })
	unlock()
	if err != nil {
		spans.EndFailed(err)
		return StartResult{}, err
	}
	started := e.finishStartWithStartKey(ctx, q, p, &spans)
	e.wakeWorkerForStartKey(ctx, change.Key, p)
	return started, nil
}

// StartWithStartKeyInTx starts one run with a start key in the caller's transaction. The function insert writes the change in this
// transaction.
func (e *Engine) StartWithStartKeyInTx(ctx context.Context, q *StartRequest, insert func(*store.StartKeyChangeRequest) error) (StartResult, error) {
	if err := e.clock.EnsureReading(ctx, e.store); err != nil {
		return StartResult{}, err
	}
	p, spans, refused, err := e.prepareStartWithStartKey(ctx, q)
	if p == nil {
		return refused, err
	}
	if err := e.startWithKeyInTx(p.ChangeRequest(), insert); err != nil {
		spans.EndFailed(err)
		return StartResult{}, err
	}
	spans.Uncommitted = true
	return e.finishStartWithStartKey(ctx, q, p, &spans), nil
}

// finishStartWithStartKey returns the result of a start whose change was written, and ends its span.
func (e *Engine) finishStartWithStartKey(ctx context.Context, q *StartRequest, p *startkey.Start, spans *StartSpans) StartResult {
	start := &p.Run
	switch {
	case p.Err != nil:
		spans.EndFailed(p.Err)
		return StartResult{Err: p.Err}
	case p.ExistingRun != nil && p.ExistingRun.UUID != start.Run.UUID:
		start.Outcome, start.ExistingRun = store.AlreadyRecorded, p.ExistingRun
		a := StartResult{Run: *p.ExistingRun, Err: e.startKeyConflictError(ctx, &start.Run, p.ExistingRun, q)}
		spans.endSpan(0, start, a.Err)
		return a
	case p.Created != nil || p.ExistingRun != nil:
		start.Outcome = store.Written
		e.telemetry.CountStart(ctx, q.Workflow, q.Queue)
		spans.endSpan(0, start, nil)
		return StartResult{Run: start.Run, Created: true}
	}
	found := store.Run{UUID: p.Result, Name: p.Name, Workflow: q.Workflow, Queue: q.Queue}
	start.Outcome, start.ExistingRun = store.AlreadyRecorded, &found
	spans.endSpan(0, start, nil)
	e.telemetry.Log.Debug("a start folded with another", telemetry.KeyRun, found.UUID, telemetry.KeyName, naming.DisplayRun(&found), telemetry.KeyWorkflow, q.Workflow)
	return StartResult{Run: found}
}

// startKeyConflictError does the same as startConflictError for a start with a start key. It does not compare the input of a
// debounced run, because later starts change that input.
func (e *Engine) startKeyConflictError(ctx context.Context, asked, found *store.Run, q *StartRequest) error {
	if q.StartKey.Kind != store.StartKeyDebounce || asked.Workflow != found.Workflow {
		return e.startConflictError(ctx, asked, found)
	}
	return nil
}

// wakeWorkerForStartKey wakes this process's worker after a committed start, so that it claims the run or cancels the replaced run. A
// process without a worker cancels the replaced run itself; if the cancel fails, a worker of another process cancels the run at its
// next poll.
func (e *Engine) wakeWorkerForStartKey(ctx context.Context, key store.StartKey, p *startkey.Start) {
	w := e.worker()
	if p.Created != nil && !p.Created.Run.Unreleased {
		w.wakeLoops()
	}
	switch {
	case p.CheckAt.IsZero():
	case w != nil:
		w.startKeyHints.Notify()
	case !p.CheckAt.After(e.clock.Now()):
		if _, err := e.processDueStartKey(ctx, key); err != nil {
			e.telemetry.Log.Debug("a start could not cancel the run that it replaces; a worker does it", telemetry.KeyWorkflow, key.Workflow, telemetry.KeyError, err)
		}
	}
}

// startKeyLocks makes the starts of this process with one key take turns, so that at most one of them holds a
// connection while another transaction has locked the row.
type startKeyLocks struct {
	mu             sync.Mutex
	lockByStartKey map[store.StartKey]*startKeyLock
}

type startKeyLock struct {
	token chan struct{} // holds an element while a start has the turn
	users int
}

// lockStartKey waits for the turn of the key until ctx ends. The caller calls unlock after its transaction.
func (l *startKeyLocks) lockStartKey(ctx context.Context, key store.StartKey) (unlock func(), err error) {
	l.mu.Lock()
	if l.lockByStartKey == nil {
		l.lockByStartKey = make(map[store.StartKey]*startKeyLock)
	}
	turn := l.lockByStartKey[key]
	if turn == nil {
		turn = &startKeyLock{token: make(chan struct{}, 1)}
		l.lockByStartKey[key] = turn
	}
	turn.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if turn.users--; turn.users == 0 {
			delete(l.lockByStartKey, key)
		}
	}
	select {
	case turn.token <- struct{}{}:
		return func() {
			<-turn.token
			leave()
		}, nil
	case <-ctx.Done():
		leave()
		return nil, fmt.Errorf("%w: %w", store.ContextError(ctx), store.ErrLocked)
	}
}

// executeStartWithStartKey executes a start with a start key that a call of a workflow makes. The argument own says that the name of the run
// is derived from the call, and does not come from the user.
func (t *stepTask) executeStartWithStartKey(ctx context.Context, q *StartRequest, own bool) (StartResult, error) {
	writes, by := t.effectWriteContext(ctx)
	started, err := t.r.e.checkNameAndStartWithStartKey(writes, by, q)
	if own && errors.Is(started.Err, ErrIDConflict) && started.Run.Workflow == q.Workflow {
		started.Err = nil // an earlier attempt of this call started the run, and that run counts
	}
	return started, err
}

// ReadWaitingInput sets the input of a run that waits for its start key to the input with which the run will begin: a debounced run gets the
// input of its last start, which the row of its key holds until then. ReadWaitingInput returns the row of the key, or nil if the run does
// not wait for one.
func (e *Engine) ReadWaitingInput(ctx context.Context, r *store.Run) (*store.StartKeyRow, error) {
	if r.Epoch.Count > 0 || !r.WakeAt.IsZero() || r.Status != store.Pending && r.Status != store.Paused {
		return nil, nil
	}
	row, err := e.store.StartKeyOfWaitingRun(ctx, r.UUID)
	if err == nil && row != nil && row.WaitingInput != nil {
		r.Input = row.WaitingInput
	}
	return row, err
}
