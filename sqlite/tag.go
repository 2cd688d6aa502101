package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetTags implements store.Store.
func (s *database) SetTags(ctx context.Context, run uuid.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) (bool, error) {
	found := false
	err := s.withWriteTx(ctx, "tag", func(x executor) error {
		state, err := readRunState(x, run)
		if err != nil || !state.Found || epoch != (store.Epoch{}) && (state.Epoch != epoch || state.Status != store.Running) {
			return err
		}
		found = true
		if by.HasActorOrReason() {
			changes, err := wouldChangeTags(x, run, tags)
			if err == nil && changes {
				err = writeEventWithActor(x, &by, &store.Event{Type: store.EventTagged, Run: run, NewValue: store.TagsText(tags)})
			}
			if err != nil {
				return err
			}
		}
		for _, tag := range tags {
			if tag.Value == "" {
				if _, err := x.exec(qTagDelete, bindShard(run), bindUUID(run), tag.Key); err != nil {
					return err
				}
				continue
			}
			if n, err := x.exec(qTagSet, tag.Key, tag.Value, bindShard(run), bindUUID(run)); err != nil || n != 1 {
				return checkOneRow("tagging run", run, n, err)
			}
		}
		return nil
	})
	return found && err == nil, err
}

// readTags returns the tags of a run, ordered by key.
func readTags(x executor, run uuid.UUID) (tags []store.Tag, err error) {
	err = x.query(qRunTags, func(v []driver.Value) error {
		c := columnReader{values: v}
		tags = append(tags, store.Tag{Key: c.text(), Value: c.text()})
		return c.err
	}, bindShard(run), bindUUID(run))
	return tags, err
}

// wouldChangeTags reports whether any of the tags differs from what the run has.
func wouldChangeTags(x executor, run uuid.UUID, tags []store.Tag) (bool, error) {
	had, err := readTags(x, run)
	before := make(map[string]string, len(had))
	for _, tag := range had {
		before[tag.Key] = tag.Value
	}
	return slices.ContainsFunc(tags, func(tag store.Tag) bool { return before[tag.Key] != tag.Value }), err
}
