package sqlite

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetTags implements store.Store.
func (s *database) SetTags(ctx context.Context, run uuid.UUID, tags []store.Tag, epoch store.Epoch) (bool, error) {
	found := false
	err := s.withWriteTx(ctx, "tag", func(x executor) error {
		state, err := readRunState(x, run)
		if err != nil || !state.Found || epoch != (store.Epoch{}) && (state.Epoch != epoch || state.Status != store.Running) {
			return err
		}
		found = true
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
