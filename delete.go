package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// DeletedRuns is the result of [Engine.Delete] and [Engine.DeleteAll].
type DeletedRuns struct {
	Matched int // the number of root runs that the ID or the filter selected
	// Deleted is the number of runs that this call deleted, or with DryRun would delete, descendants included. It does not count
	// runs that another call deleted at the same time.
	Deleted int
	// Refused lists the root runs that match the filter and were not deleted, at most MaxControlIDs of them.
	Refused []RefusedDeletion
}

// RefusedDeletion names a run that was not deleted, and says why.
type RefusedDeletion struct {
	ID  string
	Err error
}

// Delete deletes the ended run with the given ID, which is the caller's ID or the UUID, and all its descendants, with their
// steps, signals, tags and superseded generations. A deletion cannot be undone. After the deletion, a new run can be started
// with the same ID. The handles of a deleted run and [Engine.Get] return [ErrNotFound]. Delete keeps the events of a deleted
// run, and adds an event of the type [EventDeleted].
//
// Delete deletes the tree of a run as a whole or not at all. [Detached] children that are live, or have live descendants, are
// not deleted and continue without their parent. The options of Delete are [Actor], [Reason] and [DryRun].
//
// Delete returns [ErrNotFound] if there is no such run, or another call deletes it at the same time. Delete returns a
// [*StateError] if the run or a descendant that is not detached has not ended. Delete also returns a StateError for a child
// whose parent exists, because the parent's history refers to the child. A [Detached] child of an earlier generation counts as a
// root run: it is not deleted with its parent, and can be deleted by itself. Delete returns [ErrPermission] if the database role
// may not delete rows. To delete old runs automatically, set Config.Retention.
func (e *Engine) Delete(ctx context.Context, id string, opts ...ControlOption) (DeletedRuns, error) {
	q, err := e.newDeleteRequest(ctx, opts)
	if err != nil {
		return DeletedRuns{}, fmt.Errorf("%s run %q: %w", VerbDelete, id, err)
	}
	n, err := e.inner.Delete(ctx, id, q)
	if err != nil {
		return DeletedRuns{}, convertStateError(err)
	}
	return DeletedRuns{Matched: 1, Deleted: n}, nil
}

// DeleteAll deletes every root run that matches the filter as [Engine.Delete] does, 100 trees per transaction. Without
// Filter.Status, DeleteAll considers the runs that have ended. If DeleteAll returns an error, its result describes what
// DeleteAll did before the error, and DeleteAll can be called again. DeleteAll returns [ErrInvalidConfig] for a filter without
// any condition; to delete all runs that have ended, set CreatedBefore.
func (e *Engine) DeleteAll(ctx context.Context, f Filter, opts ...ControlOption) (DeletedRuns, error) {
	var all DeletedRuns
	q, err := e.newDeleteRequest(ctx, opts)
	if err != nil {
		return all, fmt.Errorf("%s runs by a filter: %w", VerbDelete, err)
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return all, err
	}
	if err := checkFilterNotEmpty(&filter, VerbDelete); err != nil {
		return all, err
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired}
	}
	var before uuid.UUID
	for {
		rows, err := e.inner.Store().ListRuns(ctx, filter, before, controlPageSize)
		if err != nil || len(rows) == 0 {
			return all, err
		}
		before = rows[len(rows)-1].UUID
		if rows, err = e.inner.SelectRoots(ctx, rows); err != nil {
			return all, fmt.Errorf("%s runs by a filter: %w", VerbDelete, err)
		}
		results, err := e.inner.DeleteTrees(ctx, rows, q)
		for i := range results {
			r := &results[i]
			all.Deleted += r.DeletedRunCount
			if r.Err != nil && !errors.Is(r.Err, ErrNotFound) && len(all.Refused) < MaxControlIDs {
				all.Refused = append(all.Refused, RefusedDeletion{ID: r.Run.NameOrUUID(), Err: convertStateError(r.Err)})
			}
		}
		if all.Matched += len(rows); err != nil {
			return all, fmt.Errorf("%s runs by a filter: %w", VerbDelete, err)
		}
	}
}

// newDeleteRequest checks the options of a deletion.
func (e *Engine) newDeleteRequest(ctx context.Context, opts []ControlOption) (q engine.DeleteRequest, err error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a deletion", "Config.Retention"); err != nil {
		return q, err
	}
	if err := e.inner.CheckOutsideTx(ctx, "a deletion"); err != nil {
		return q, err
	}
	var o controlOptions
	err = applyOptions(opts, &o)
	switch {
	case err != nil:
	case o.err != nil:
		err = o.err
	case o.given&^(optionReason|optionActor|optionDryRun) != 0:
		err = fmt.Errorf("%w: a deletion takes the options Reason, Actor and DryRun: leave the others out", ErrInvalidConfig)
	default:
		err = o.checkActorAndReason()
	}
	return engine.DeleteRequest{DryRun: o.dryRun, Actor: o.actor, Reason: o.reason}, err
}
