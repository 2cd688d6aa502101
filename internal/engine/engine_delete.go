package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// DeleteRequest is a person's request to delete runs that have ended.
type DeleteRequest struct {
	Actor  string
	Reason string
	DryRun bool // nothing is changed
}

const (
	deleteVerb                = "delete"
	maxDeleteTries            = 8 // how often a deletion is tried because a run was locked, or changed meanwhile
	firstDeleteRetryDelay     = 10 * time.Millisecond
	queuePlaceNotReleasedText = "a worker has not yet taken back its place in its queue: try again"
)

// DeleteTreeResult tells what the deletion of one tree of runs did.
type DeleteTreeResult struct {
	Run             *store.Run
	DeletedRunCount int   // the number of runs that were deleted, or, with DryRun, that would be
	Err             error // why the tree was not deleted
}

// Delete deletes the tree of a run, and returns the number of deleted runs. Delete returns a *StateError if the run or one of its attached
// descendants has not ended, or if the run is a child whose parent exists.
func (e *Engine) Delete(ctx context.Context, ref string, q DeleteRequest) (int, error) {
	row, err := e.getRun(ctx, ref, store.NoPayloads)
	if err != nil {
		return 0, err
	}
	results, err := e.DeleteTrees(ctx, []*store.Run{row}, q)
	if err != nil {
		return 0, fmt.Errorf("%s run %q: %w", deleteVerb, ref, err)
	}
	return results[0].DeletedRunCount, results[0].Err
}

// DeleteTrees deletes the trees of the given runs in one transaction, except the trees whose state does not allow a deletion.
func (e *Engine) DeleteTrees(ctx context.Context, rows []*store.Run, q DeleteRequest) ([]DeleteTreeResult, error) {
	results := make([]DeleteTreeResult, len(rows))
	todo := make([]int, len(rows))
	for i, row := range rows {
		results[i].Run, todo[i] = row, i
	}
	deleted := 0
	for try, delay := 1, firstDeleteRetryDelay; len(todo) > 0; try, delay = try+1, 2*delay {
		d := &treeDeleter{e: e, request: q, isLastTry: try == maxDeleteTries}
		left, err := d.tryDelete(ctx, results, todo)
		if err != nil {
			return results, err
		}
		if todo = left; len(todo) > 0 && !wakeup.SleepCtx(ctx, delay) {
			return results, store.ContextError(ctx)
		}
	}
	for i := range results {
		deleted += results[i].DeletedRunCount
	}
	if deleted > 0 && !q.DryRun {
		e.telemetry.Log.Info("runs were deleted", telemetry.KeyRun, results[0].Run.UUID, telemetry.KeyName, naming.DisplayRun(results[0].Run),
			telemetry.KeyCount, deleted, telemetry.KeyActor, q.Actor, telemetry.KeyReason, q.Reason)
	}
	return results, nil
}

// treeDeleter makes one try to delete trees.
type treeDeleter struct {
	e         *Engine
	request   DeleteRequest
	isLastTry bool // there is no further try
}

// tryDelete deletes the trees of the results with the given positions, and returns the positions of the trees that must be tried
// again.
func (d *treeDeleter) tryDelete(ctx context.Context, results []DeleteTreeResult, todo []int) (again []int, err error) {
	now, err := d.e.NowBeforeWrite(ctx)
	if err != nil {
		return nil, err
	}
	op := &store.DeleteTreesRequest{Now: now, Actor: d.request.Actor, Reason: d.request.Reason, WithEvents: true}
	var planned []int // the position of each tree of op
	for _, i := range todo {
		r := &results[i]
		if err := d.checkParentGone(ctx, r.Run); err != nil {
			r.Err = err
			continue
		}
		nodes, err := d.e.store.TreeToDelete(ctx, r.Run.UUID)
		if err != nil {
			return nil, err
		}
		t := store.DeleteTreeRequest{Root: r.Run.UUID, Name: r.Run.NameOrUUID(), EndedBeforeCall: make(map[uuid.UUID]store.Epoch, len(nodes))}
		for _, n := range nodes {
			if n.UUID == t.Root {
				t.Epoch = n.Epoch
			}
			if n.Generation == 0 && n.Status.IsTerminal() {
				t.EndedBeforeCall[n.UUID] = n.Epoch
				op.AwaitWriters = op.AwaitWriters || n.EndedAt.After(now.Add(-store.MinRetention))
			}
		}
		t.Plan(nodes, now, func(uuid.UUID) bool { return true })
		switch {
		case t.Outcome != store.Written:
			if d.recordRefusal(r, &t) {
				again = append(again, i)
			}
		case d.request.DryRun:
			r.DeletedRunCount = t.DeletedRunCount
		default:
			op.Trees = append(op.Trees, t)
			planned = append(planned, i)
		}
	}
	if len(planned) == 0 {
		return again, nil
	}
	err = d.e.commitInSeparateTx(ctx, userCaller, func() error {
		err := d.e.store.DeleteTrees(ctx, op)
		op.ReplyLost = op.ReplyLost || errors.Is(err, store.ErrUnavailable)
		return err
	})
	if err != nil {
		return nil, err
	}
	for at, i := range planned {
		switch t := &op.Trees[at]; {
		case t.Outcome == store.Written:
			results[i].DeletedRunCount = t.DeletedRunCount
		case t.Outcome == store.AlreadyRecorded && op.ReplyLost: // very likely the earlier try has deleted the tree
			results[i].DeletedRunCount = len(t.EndedBeforeCall)
		default:
			if d.recordRefusal(&results[i], t) {
				again = append(again, i)
			}
		}
	}
	return again, nil
}

// recordRefusal sets the error of a tree that was not deleted, or reports that the deletion is to be tried again.
func (d *treeDeleter) recordRefusal(r *DeleteTreeResult, t *store.DeleteTreeRequest) (again bool) {
	n := &t.Blocker
	refused := &StateError{Ref: t.Name, Verb: deleteVerb, Status: n.Status}
	switch {
	case t.Outcome == store.AlreadyRecorded: // another call has deleted the tree
		r.Err = notFoundError(t.Name)
		return false
	case t.Outcome == store.Fenced && !n.Status.IsTerminal() && n.UUID != t.Root:
		refused.Detail = fmt.Sprintf("the root of run %s, which is %s: cancel or terminate that one first", n.UUID, n.Status)
	case t.Outcome == store.Fenced && !n.Status.IsTerminal():
	case !d.isLastTry:
		return true
	case n.HoldsQueuePlace:
		refused.Detail = n.Status.String() + ", and " + queuePlaceNotReleasedText
	default:
		r.Err = fmt.Errorf("%s run %q: %w: the run or its children changed, or were locked, during each of %d tries: try again", deleteVerb, t.Name, store.ErrLocked, maxDeleteTries)
		return false
	}
	r.Err = refused
	return false
}

// SelectRoots returns those of the runs that are roots, or count as roots: detached children whose parent was deleted, or which belong to a
// superseded generation of their parent.
func (e *Engine) SelectRoots(ctx context.Context, rows []*store.Run) (roots []*store.Run, err error) {
	var parents []uuid.UUID
	for _, row := range rows {
		if row.Parent.Valid && row.Detached {
			parents = append(parents, row.Parent.UUID)
		}
	}
	exists := make(map[uuid.UUID]bool, len(parents))
	if len(parents) > 0 {
		statuses, err := e.store.Statuses(ctx, parents)
		if err != nil {
			return nil, fmt.Errorf("read the parents of detached runs: %w", err)
		}
		for i, status := range statuses {
			exists[parents[i]] = status != 0
		}
	}
	for _, row := range rows {
		if !row.Parent.Valid || row.Detached && !exists[row.Parent.UUID] {
			roots = append(roots, row)
		}
	}
	return roots, nil
}

// checkParentGone returns a *StateError if the parent of the run exists, because the parent's history refers to the run. A detached
// child of a superseded generation counts as a root.
func (d *treeDeleter) checkParentGone(ctx context.Context, row *store.Run) error {
	if !row.Parent.Valid {
		return nil
	}
	refused := func(of string) error {
		return &StateError{Ref: row.NameOrUUID(), Verb: deleteVerb, Status: row.Status, Detail: row.Status.String() + ", and a child of " + of}
	}
	parent, err := d.e.getRun(ctx, row.Parent.UUID.String(), store.NoPayloads)
	if err == nil {
		return refused(fmt.Sprintf("run %q: delete the root of the tree", parent.NameOrUUID()))
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if row.Detached {
		return nil
	}
	generation, err := d.e.describeSupersededParent(ctx, row)
	if err != nil || generation == "" { // the parent was deleted
		return err
	}
	return refused(generation + ": delete the root of the tree")
}

// describeSupersededParent returns the generation and the run to which a child of a superseded generation belongs, in words. It returns
// an empty text for other runs.
func (e *Engine) describeSupersededParent(ctx context.Context, row *store.Run) (string, error) {
	found, err := e.store.FindGenerations(ctx, []uuid.UUID{row.Parent.UUID})
	if err != nil || len(found) == 0 {
		return "", err
	}
	parent, err := e.getRun(ctx, found[0].Run.String(), store.NoPayloads)
	if errors.Is(err, ErrNotFound) {
		return "", nil // the parent was deleted since, with its generations
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the superseded generation %d of run %q", found[0].Number, parent.NameOrUUID()), nil
}

// notFoundErrorIfDeleted returns the error of a call that had found the run which ref names, or ErrNotFound if the run was deleted
// during the call, because the call may then have failed only because rows were missing.
func (e *Engine) notFoundErrorIfDeleted(ctx context.Context, ref string, err error) error {
	if _, gone := e.getRun(ctx, ref, store.NoPayloads); errors.Is(gone, ErrNotFound) {
		return gone
	}
	return err
}
