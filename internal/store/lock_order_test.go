package store_test

import (
	"cmp"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Two starts or two steps that touch the same row compare as equal, and no others do.
func TestLockOrderIsByKey(t *testing.T) {
	root, other := shardedID(1, 9), shardedID(2, 1)
	ids := []uuid.UUID{root, shardedID(1, 10), other}
	for i := range ids {
		for j := range ids {
			if got, want := store.CompareUUIDsByShard(ids[i], ids[j]), cmp.Compare(i, j); got != want {
				t.Errorf("runs %d and %d: %d, want %d", i, j, got, want)
			}
		}
	}
	steps := []*store.Step{{Run: root, Name: "a"}, {Run: root, Name: "b"}, {Run: other, Name: "a"}}
	starts := []*store.StartWrite{
		{Run: store.Run{UUID: root, Name: "a"}},
		{Run: store.Run{UUID: root, Name: "b"}},
		{Run: store.Run{UUID: root, Name: "a", Parent: uuid.NullUUID{UUID: root, Valid: true}}},
		{Run: store.Run{UUID: other, Name: "a"}},
	}
	for i := range steps {
		for j := range steps {
			if got, want := store.CompareSteps(steps[i], steps[j]), cmp.Compare(i, j); got != want {
				t.Errorf("steps %d and %d: %d, want %d", i, j, got, want)
			}
		}
	}
	for i := range starts {
		for j := range starts {
			if got, want := store.CompareStarts(starts[i], starts[j]), cmp.Compare(i, j); got != want {
				t.Errorf("starts %d and %d: %d, want %d", i, j, got, want)
			}
		}
	}
	twin := &store.StartWrite{Run: store.Run{UUID: shardedID(1, 3), Name: "a"}}
	if got := store.CompareStarts(starts[0], twin); got != 0 {
		t.Errorf("two starts of one name in one shard: %d, want 0", got)
	}
}

// shardedID returns an ID of the shard, which is its last byte. first is its first byte.
func shardedID(shard, first byte) (id uuid.UUID) {
	id[0], id[15] = first, shard
	return id
}
