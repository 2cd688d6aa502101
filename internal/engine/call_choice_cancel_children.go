package engine

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// cancelLosersChildren cancels the children that were started in branches which a choice has ended, and
// the descendants of these children, except for detached runs. It retries for Config.Patience. It reports false if the run was
// suspended because a cancel failed; the next execution then repeats the cancel. If look is true, as in a replay, it first reads the
// children, and skips those that have ended or whose cancel is already requested.
func (r *run) cancelLosersChildren(look bool) bool {
	r.mu.Lock()
	open := make(map[string][]uuid.UUID) // children by the name of the choice that ended their branch
	if len(r.branchEnds) > 0 {
		for name, id := range r.children {
			if end := r.branchEnds.endOfOutermostBranch(name); end != nil {
				open[end.choice] = append(open[end.choice], id)
			}
		}
	}
	r.mu.Unlock()
	for choice, children := range open {
		if err := r.cancelChildrenOfOneChoice(choice, children, look); err != nil {
			r.suspendAfterFailedWrite("cancel the children in the branches ended by the choice", choice, err)
			return false
		}
	}
	return true
}

func (r *run) cancelChildrenOfOneChoice(choice string, children []uuid.UUID, look bool) error {
	by := newWriteOptions(r.ownedCtx.Done())
	if look {
		refs := make([]store.RunRef, len(children))
		for i, id := range children {
			refs[i] = store.RunRef{UUIDOrName: id.String()}
		}
		var rows []*store.Run
		err := r.e.retryUntilPatienceEnds(r.writeCtx, by, func() (err error) {
			rows, err = r.e.store.GetRuns(r.writeCtx, refs)
			return err
		})
		if err != nil {
			return err
		}
		children = children[:0]
		for _, row := range rows {
			if row != nil && !row.Detached && !row.Status.IsTerminal() && row.Control&store.CancelRequested == 0 {
				children = append(children, row.UUID)
			}
		}
	}
	if len(children) == 0 {
		return nil
	}
	o := &store.ControlRequest{
		Verb: store.VerbCancel, Scope: store.CancelWithoutDetached, Runs: children, Fence: r.execution(),
		Reason: fmt.Sprintf("its branch was ended by the choice %q of its parent", naming.Display(choice)),
	}
	if err := r.e.controlRuns(r.writeCtx, by, o); err != nil {
		return err
	}
	if o.Fenced {
		r.loseOwnership()
		return ErrSuspended
	}
	return nil
}
