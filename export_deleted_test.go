package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// deletedWhileRead is a store that deletes a run before its history is read.
type deletedWhileRead struct {
	durable.Store
	deleteRun func()
}

func (s *deletedWhileRead) History(ctx context.Context, run uuid.UUID) ([]store.Step, error) {
	s.deleteRun()
	return s.Store.History(ctx, run)
}

// A run that is deleted between the read of the run and the read of its history is not found. Without its history, the export would
// replace the whole one that an archive has: several workers archive the same run.
func TestExportOfARunThatIsDeletedMeanwhile(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		endedTree(t, s, "flow", "old", 2*day, store.Completed)
		other := engineOn(t, s)
		e := engineOn(t, &deletedWhileRead{Store: s, deleteRun: func() {
			if _, err := other.Delete(within(t), "old"); err != nil && !errors.Is(err, durable.ErrNotFound) {
				t.Error(err)
			}
		}})
		if b, err := e.Export(within(t), "old"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("exported: %s, %v", b, err)
		}
	})
}
