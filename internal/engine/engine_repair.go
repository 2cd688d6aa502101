package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// RetryRequest is a request to execute a run that failed or expired anew.
type RetryRequest struct {
	From    string // as users see it; empty: the step that the run's failure names
	FromEnd bool
	DryRun  bool // nothing is changed
	Actor   string
	Reason  string
}

// RepairedRun is the part of a repair that concerns one run.
type RepairedRun struct {
	Run        *store.Run // as it was
	Generation int32      // the number of the new generation
	Detail     record.RepairDetail
	Cancelled  []uuid.UUID // children of the superseded generation that are cancelled
}

const (
	maxRepairTries   = 10 // how often a repair is planned anew because a run had changed meanwhile
	retryVerb        = "retry"
	ignoresRepairs   = "repairs"
	supersededReason = "a repair has dropped the call that started it"
)

// Retry makes the next generation of a run that failed or expired, and of the failed children that its failure names.
// It returns them, parents first. It returns a *StateError for a run with another state, and an error of package
// repair for a retry that cannot be meant.
func (e *Engine) Retry(ctx context.Context, ref string, q RetryRequest) ([]RepairedRun, error) {
	if err := e.checkWorkersSince(ctx, ignoresRepairs, store.RepairVersion); err != nil {
		return nil, err
	}
	request := uuid.New()
	for try := 1; ; try++ {
		p := &repairPlanner{e: e, ref: ref, request: q, store: store.Repair{Request: request, Verb: retryVerb, Actor: q.Actor, Reason: q.Reason}}
		done, err := p.try(ctx)
		switch {
		case err == nil && done:
			if !q.DryRun {
				e.reportRepair(p)
			}
			return p.runs, nil
		case err != nil:
			return nil, e.unlessDeleted(ctx, ref, err)
		case try == maxRepairTries:
			return nil, fmt.Errorf("retry run %q: %w: the run or its children changed during each of %d tries: try again", ref, store.ErrLocked, try)
		case !sleepCtx(ctx, firstWriteRetryDelay):
			return nil, context.Cause(ctx)
		}
	}
}

// repairPlanner plans one repair, and applies it.
type repairPlanner struct {
	e       *Engine
	ref     string
	request RetryRequest
	store   store.Repair
	runs    []RepairedRun
	cancel  []uuid.UUID
}

// try reads the run, plans the repair and applies it. It reports false if a run has changed meanwhile.
func (p *repairPlanner) try(ctx context.Context) (done bool, err error) {
	if p.store.Now, err = p.e.Now(ctx); err != nil {
		return false, err
	}
	row, err := p.e.find(ctx, p.ref, store.WithOutcome)
	if err != nil {
		return false, err
	}
	if row.Status != store.Failed && row.Status != store.Expired {
		return false, &StateError{Ref: p.ref, Verb: retryVerb, Status: row.Status, Control: row.Control}
	}
	q := repair.Request{From: naming.ParseDisplay(p.request.From), FromEnd: p.request.FromEnd, Now: p.store.Now}
	if row.Parent.Valid {
		if err := p.guardParent(ctx, row); err != nil {
			return false, err
		}
		q.Paused = true
	}
	if done, err := p.add(ctx, row, q); err != nil || !done {
		return false, err
	}
	if p.request.DryRun {
		return true, nil
	}
	if len(p.cancel) > 0 {
		p.store.Cancel = &store.ControlOperation{
			Verb: store.VerbCancel, Runs: p.cancel, Now: p.store.Now, Reason: supersededReason, Actor: p.request.Actor,
			Error: record.Cancelled(supersededReason, p.request.Actor).Encode(),
		}
	}
	if err := p.e.commitAlone(ctx, userCaller, func() error { return p.e.store.Repair(ctx, &p.store) }); err != nil {
		return false, fmt.Errorf("%s run %q: %w", retryVerb, p.ref, err)
	}
	return p.store.Outcome == store.Written, nil
}

// guardParent returns a *StateError unless the parent of the run is paused and still waits for it. Any other parent has
// recorded the end of its child, or may record it at any moment.
func (p *repairPlanner) guardParent(ctx context.Context, row *store.Run) error {
	refused := func(detail string) error {
		return &StateError{Ref: p.ref, Verb: retryVerb, Status: row.Status, Detail: row.Status.String() + ", and " + detail}
	}
	parent, err := p.e.find(ctx, row.Parent.UUID.String(), store.NoPayloads)
	switch {
	case errors.Is(err, ErrNotFound):
		return refused("belongs to a superseded generation of its parent")
	case err != nil:
		return err
	}
	history, err := p.e.store.History(ctx, parent.UUID)
	if err != nil {
		return fmt.Errorf("%s run %q: %w", retryVerb, p.ref, err)
	}
	open := false
	for i := range history {
		open = open || history[i].Name == row.Name && !history[i].Status.IsTerminal()
	}
	switch {
	case !open:
		return refused(fmt.Sprintf("its parent, run %q, has recorded that: retry the parent", parent.Address()))
	case parent.Status.IsTerminal():
		return refused(fmt.Sprintf("its parent, run %q, has ended: retry the parent", parent.Address()))
	case parent.Status != store.Paused:
		return refused(fmt.Sprintf("its parent, run %q, may record that at any moment: pause the parent first", parent.Address()))
	}
	p.store.Guards = append(p.store.Guards, store.RunGuard{Run: parent.UUID, Before: store.RunState{
		Found: true, Status: parent.Status, Epoch: parent.Epoch, Control: parent.Control,
	}})
	return nil
}

// add adds a run to the repair, and the failed child that its failure names. It reports false if the run has changed
// since it was read.
func (p *repairPlanner) add(ctx context.Context, row *store.Run, q repair.Request) (done bool, err error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("%s run %q: %w", retryVerb, row.Address(), err)
	}
	if !p.request.DryRun { // after this, the history of the run stays as it is
		f := &store.Fence{Run: row.UUID, Now: p.store.Now, Before: store.RunState{Found: true, Status: row.Status, Epoch: row.Epoch, Control: row.Control}}
		if err := p.e.commitAlone(ctx, userCaller, func() error { return p.e.store.Fence(ctx, f) }); err != nil {
			return fail(err)
		}
		if f.Outcome != store.Written {
			return false, nil
		}
	}
	s := &repair.Subject{Run: row}
	if s.History, err = p.e.store.History(ctx, row.UUID); err != nil {
		return fail(err)
	}
	tree, err := p.e.store.Tree(ctx, row.UUID)
	if err != nil {
		return fail(err)
	}
	for _, c := range tree {
		if c.Parent.Valid && c.Parent.UUID == row.UUID {
			s.Children = append(s.Children, c)
		}
	}
	before, err := p.e.store.Generations(ctx, row.UUID, store.NoPayloads)
	if err != nil {
		return fail(err)
	}
	s.Generation = int32(len(before)) + 1
	q.Nonce = store.NewNonce()
	made, err := repair.Retry(s, &q)
	if err != nil {
		return fail(err)
	}
	p.store.Runs = append(p.store.Runs, made.Repair)
	p.runs = append(p.runs, RepairedRun{Run: row, Generation: s.Generation + 1, Detail: made.Detail, Cancelled: made.Cancel})
	p.cancel = append(p.cancel, made.Cancel...)
	if !made.Failed.Valid {
		return true, nil
	}
	child, err := p.e.find(ctx, made.Failed.UUID.String(), store.WithOutcome)
	if err != nil {
		return fail(err)
	}
	done, err = p.add(ctx, child, repair.Request{Now: q.Now, Paused: q.Paused})
	if errors.Is(err, repair.ErrFromRequired) {
		err = fmt.Errorf("%s run %q: the child of its call %q: %w; with the call in From, the run starts another child",
			retryVerb, row.Address(), naming.DisplayRun(child), err)
	}
	return done, err
}

// reportRepair logs a repair, and wakes workers.
func (e *Engine) reportRepair(p *repairPlanner) {
	for i := range p.runs {
		r := &p.runs[i]
		e.telemetry.Log.Info("a run was repaired: its next generation is executed", telemetry.KeyRun, r.Run.UUID, telemetry.KeyName, naming.DisplayRun(r.Run),
			telemetry.KeyWorkflow, r.Run.Workflow, telemetry.KeyVerb, p.store.Verb, telemetry.KeyGeneration, r.Generation,
			telemetry.KeyActor, p.request.Actor, telemetry.KeyReason, p.request.Reason)
	}
	if w := e.worker(); w != nil {
		w.notificationsPending.notify()
		w.hintWorkers()
	}
}

// Generations returns a run with its payloads, and its superseded generations, the oldest first.
func (e *Engine) Generations(ctx context.Context, ref string) (*store.Run, []store.Generation, error) {
	for {
		row, err := e.Get(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		all, err := e.store.Generations(ctx, row.UUID, store.AllPayloads)
		if err != nil {
			return nil, nil, fmt.Errorf("read the generations of run %q: %w", ref, err)
		}
		if n := len(all); n == 0 || !row.Status.IsTerminal() || all[n-1].Run.Epoch != row.Epoch {
			return row, all, nil
		}
		// The run was repaired between the two reads.
	}
}
