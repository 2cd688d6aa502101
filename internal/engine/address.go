package engine

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Usurped answers, by their places, which of the requests give as the caller's ID what is the UUID
// of another run: verbs, which prefer the UUID, would take the one for the other. All UUIDs of runs
// are of version 7, and are known to nobody before their run is there, so only such IDs are looked
// up, and nothing that comes later is missed.
func (e *Engine) Usurped(ctx context.Context, requests []StartRequest) (map[int]error, error) {
	var ids []uuid.UUID
	var places []int
	for i, q := range requests {
		if id, is := store.ParseID(q.Name); is && id.Version() == 7 {
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
		had, err := e.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		if had.ID == ids[i] && !store.NamedByID(had) {
			if wrong == nil {
				wrong = make(map[int]error)
			}
			wrong[places[i]] = fmt.Errorf("%w: the ID %q is the UUID of another run, %q of workflow %q: use another ID", ErrIDConflict, name, ShownRun(had), had.Workflow)
		}
	}
	return wrong, nil
}
