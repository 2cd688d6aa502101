package store_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Changes and wakes come in the order in which rows are locked.
func TestPlanOrder(t *testing.T) {
	var nodes tree
	o := &store.ControlRequest{Verb: store.VerbCancel}
	for range 100 {
		id, _ := store.NewRootIdentity("")
		child := store.RunToControl{UUID: store.NewChildUUID(id), Parent: uuid.NullUUID{UUID: id, Valid: true}, Status: store.Pending}
		nodes = append(nodes, store.RunToControl{UUID: id, Status: store.Waiting, Epoch: store.Epoch{Count: 1}}, child)
		o.Runs = append(o.Runs, child.UUID)
	}
	changes, wake := o.Plan(nodes)
	changed := make([]uuid.UUID, len(changes))
	for i, c := range changes {
		changed[i] = c.Before.UUID
	}
	for what, ids := range map[string][]uuid.UUID{"changes": changed, "wakes": wake} {
		if len(ids) != 100 || !slices.IsSortedFunc(ids, byShard) {
			t.Errorf("%d %s, sorted by shard and ID: %v, want 100, sorted", len(ids), what, slices.IsSortedFunc(ids, byShard))
		}
	}
}

func byShard(l, r uuid.UUID) int {
	return cmp.Or(cmp.Compare(store.ShardOf(l), store.ShardOf(r)), bytes.Compare(l[:], r[:]))
}
