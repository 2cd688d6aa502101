package results

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// resultsPerQuery is the number of runs whose outputs are read by one query.
const resultsPerQuery = 16

// Reader is what is read from the store.
type Reader interface {
	Statuses(ctx context.Context, ids []uuid.UUID) ([]store.Status, error)
	GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error)
}

// EndedRun is a run that has ended, without its input. Run is nil if the run does not exist.
type EndedRun struct {
	ID  uuid.UUID
	Run *store.Run
}

// ReadEnded returns those of the runs that have ended or do not exist. It first reads the statuses, and then
// the outcomes of the ended runs only. So even a large outcome is read once per waiter, at the run's end. A run that is repaired
// between both reads has not ended.
func ReadEnded(ctx context.Context, s Reader, ids []uuid.UUID) (all []EndedRun, err error) {
	statuses, err := s.Statuses(ctx, ids)
	if err != nil {
		return nil, err
	}
	var refs []store.RunRef
	for i, status := range statuses {
		switch {
		case status == 0:
			all = append(all, EndedRun{ID: ids[i]})
		case status.IsTerminal():
			refs = append(refs, store.RunRef{UUIDOrName: ids[i].String()})
		}
	}
	for len(refs) > 0 {
		some := refs[:min(len(refs), resultsPerQuery)]
		refs = refs[len(some):]
		runs, err := s.GetRunsSelectingPayloads(ctx, some, store.WithOutputAndError)
		if err != nil {
			return all, err
		}
		for i, run := range runs {
			if id, _ := some[i].AsUUID(); run == nil || run.Status.IsTerminal() {
				all = append(all, EndedRun{id, run})
			}
		}
	}
	return all, nil
}
