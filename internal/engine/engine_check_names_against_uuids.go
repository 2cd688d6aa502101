package engine

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// CheckNamesAgainstUUIDs returns an error for each request in which the name of the new run is the UUID of another run. The key of each
// error in the returned map is the index of its request. Control calls accept a UUID or a name and prefer the UUID, so a control call with
// such a name would act on the other run. All UUIDs of runs have version 7, and nobody knows the UUID of a run before that run exists.
// Therefore CheckNamesAgainstUUIDs looks up only names that are UUIDs of version 7, and a run that is created later cannot cause a
// conflict.
func (e *Engine) CheckNamesAgainstUUIDs(ctx context.Context, requests []StartRequest) (map[int]error, error) {
	var ids []uuid.UUID
	var places []int
	for i, q := range requests {
		if id, is := store.ParseCanonicalUUID(q.Name); is && id.Version() == 7 {
			ids, places = append(ids, id), append(places, i)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	statuses, err := e.store.Statuses(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("look for runs whose UUIDs are given as IDs: %w", err)
	}
	var wrong map[int]error
	for i, status := range statuses {
		if status == 0 {
			continue
		}
		name := requests[places[i]].Name
		had, err := e.GetWithoutPayloads(ctx, name)
		if err != nil {
			return nil, err
		}
		if had.UUID == ids[i] && !store.IsNamedByUUID(had) {
			if wrong == nil {
				wrong = make(map[int]error)
			}
			wrong[places[i]] = fmt.Errorf("%w: the ID %q is the UUID of another run, %q of workflow %q: use another ID", ErrIDConflict, name, naming.DisplayRun(had), had.Workflow)
		}
	}
	return wrong, nil
}
