package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/seed8ec063be/durable/internal/fold"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// A start that folds has a transaction of its own, which locks the row of its key. It does not use the
// journal, so a start that waits for the row delays no other write. Package fold decides what the start does.

// prepareFold returns the decision of a start that folds, before it is planned, and the start's span. Without a decision the start
// has the result refused or the error.
func (e *Engine) prepareFold(ctx context.Context, q *StartRequest) (p *fold.Start, spans StartSpans, refused StartResult, err error) {
	requests := []StartRequest{*q}
	wrong, err := e.CheckNamesAgainstUUIDs(ctx, requests)
	if err == nil && wrong[0] != nil {
		return nil, spans, StartResult{Err: wrong[0]}, nil
	}
	if err == nil {
		err = e.CheckQueues(ctx, requests)
	}
	if err != nil {
		return nil, spans, StartResult{}, err
	}
	starts, spans := e.PrepareStarts(ctx, requests)
	return &fold.Start{Spec: *q.Fold, Run: *starts[0], Now: e.clock.Now, RefusalError: requests[0].refusal}, spans, StartResult{}, nil
}

// identifyFold gives a start that a step makes the identity of its call, so that a repetition leads to the same run.
func (e *Engine) identifyFold(ctx context.Context, q *StartRequest, p *fold.Start) {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return
	}
	h := sha256.New()
	for _, part := range []string{t.uniqueKey(), q.Workflow, q.Fold.Kind.String(), q.Fold.Key, q.Name, string(q.Input)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	p.Call = hex.EncodeToString(h.Sum(nil)[:16])
	if t.attempt > 1 || t.r.row.Epoch.Count > 1 {
		p.StepBeganAt = t.r.row.StartedAt
	}
}

// StartFold makes one start that folds, in a transaction of its own.
func (e *Engine) StartFold(ctx context.Context, q *StartRequest) (StartResult, error) {
	if err := e.CheckOutsideTx(ctx, "a start"); err != nil {
		return StartResult{}, err
	}
	if err := e.clock.EnsureReading(ctx, e.store); err != nil {
		return StartResult{}, err
	}
	return e.startFoldUnlessNameTaken(ctx, userCaller, q)
}

func (e *Engine) startFoldUnlessNameTaken(ctx context.Context, by writeCaller, q *StartRequest) (StartResult, error) {
	p, spans, refused, err := e.prepareFold(ctx, q)
	if p == nil {
		return refused, err
	}
	e.identifyFold(ctx, q, p)
	change := p.ChangeRequest()
	unlock, err := e.folds.lockKey(ctx, change.Key)
	if err != nil {
		spans.EndFailed(err)
		return StartResult{}, &WriteError{Err: err}
	}
	err = e.commitAlone(ctx, by, func() error { return e.store.ChangeFold(ctx, change) })
	unlock()
	if err != nil {
		spans.EndFailed(err)
		return StartResult{}, err
	}
	started := e.finishFold(ctx, q, p, &spans)
	e.handleCommittedFold(ctx, change.Key, p)
	return started, nil
}

// StartFoldInTx makes one start that folds with insert, which writes in the caller's transaction.
func (e *Engine) StartFoldInTx(ctx context.Context, q *StartRequest, insert func(*store.FoldChangeRequest) error) (StartResult, error) {
	if err := e.clock.EnsureReading(ctx, e.store); err != nil {
		return StartResult{}, err
	}
	p, spans, refused, err := e.prepareFold(ctx, q)
	if p == nil {
		return refused, err
	}
	if err := e.foldInTx(p.ChangeRequest(), insert); err != nil {
		spans.EndFailed(err)
		return StartResult{}, err
	}
	spans.Uncommitted = true
	return e.finishFold(ctx, q, p, &spans), nil
}

// finishFold returns the result of a start whose change was written, and ends its span.
func (e *Engine) finishFold(ctx context.Context, q *StartRequest, p *fold.Start, spans *StartSpans) StartResult {
	start := &p.Run
	switch {
	case p.Err != nil:
		spans.EndFailed(p.Err)
		return StartResult{Err: p.Err}
	case p.ExistingRun != nil && p.ExistingRun.UUID != start.Run.UUID:
		start.Outcome, start.Existing = store.Adopted, p.ExistingRun
		a := StartResult{Run: *p.ExistingRun, Err: e.foldConflictError(ctx, &start.Run, p.ExistingRun, q)}
		spans.endSpan(0, start, a.Err)
		return a
	case p.Created != nil || p.ExistingRun != nil:
		start.Outcome = store.Written
		e.telemetry.CountStart(ctx, q.Workflow, q.Queue)
		spans.endSpan(0, start, nil)
		return StartResult{Run: start.Run, Created: true}
	}
	found := store.Run{UUID: p.Result, Name: p.Name, Workflow: q.Workflow, Queue: q.Queue}
	start.Outcome, start.Existing = store.Adopted, &found
	spans.endSpan(0, start, nil)
	e.telemetry.Log.Debug("a start folded with another", telemetry.KeyRun, found.UUID, telemetry.KeyName, naming.DisplayRun(&found), telemetry.KeyWorkflow, q.Workflow)
	return StartResult{Run: found}
}

// foldConflictError does what startConflictError does, for a start that folds with others. The input of a debounced run changes,
// so it is not compared.
func (e *Engine) foldConflictError(ctx context.Context, asked, found *store.Run, q *StartRequest) error {
	if q.Fold.Kind != store.FoldDebounce || asked.Workflow != found.Workflow {
		return e.startConflictError(ctx, asked, found)
	}
	return nil
}

// handleCommittedFold lets a worker act on a committed start: claim its run, or cancel the run that it replaces. A
// process without a worker does the latter itself. If that fails, a worker does it at its next poll.
func (e *Engine) handleCommittedFold(ctx context.Context, key store.FoldKey, p *fold.Start) {
	w := e.worker()
	if p.Created != nil && !p.Created.Run.Unreleased {
		w.wakeLoops()
	}
	switch {
	case p.CheckAt.IsZero():
	case w != nil:
		w.foldHints.notify()
	case !p.CheckAt.After(e.clock.Now()):
		if _, err := e.processDueFold(ctx, key); err != nil {
			e.telemetry.Log.Debug("a start could not cancel the run that it replaces; a worker does it", telemetry.KeyWorkflow, key.Workflow, telemetry.KeyError, err)
		}
	}
}

// foldLocks makes the starts of this process with one key take turns, so that at most one of them holds a
// connection while another transaction has locked the row.
type foldLocks struct {
	mu    sync.Mutex
	turns map[store.FoldKey]*foldTurn
}

type foldTurn struct {
	token chan struct{} // holds an element while somebody has the turn
	users int
}

// lockKey waits for the turn of the key until ctx ends. The caller calls unlock after its transaction.
func (l *foldLocks) lockKey(ctx context.Context, key store.FoldKey) (unlock func(), err error) {
	l.mu.Lock()
	if l.turns == nil {
		l.turns = make(map[store.FoldKey]*foldTurn)
	}
	turn := l.turns[key]
	if turn == nil {
		turn = &foldTurn{token: make(chan struct{}, 1)}
		l.turns[key] = turn
	}
	turn.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if turn.users--; turn.users == 0 {
			delete(l.turns, key)
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
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), store.ErrLocked)
	}
}

// executeFoldingStart executes a start that folds and that a call of a workflow makes. own tells that the call has named the run.
func (t *stepTask) executeFoldingStart(ctx context.Context, q *StartRequest, own bool) (StartResult, error) {
	writes, by := t.effectWriteContext(ctx)
	started, err := t.r.e.startFoldUnlessNameTaken(writes, by, q)
	if own && errors.Is(started.Err, ErrIDConflict) && started.Run.Workflow == q.Workflow {
		started.Err = nil // an earlier attempt of this call started the run, and that run counts
	}
	return started, err
}
