package store_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// later is the ID of a run made by a process whose clock is so far ahead.
func later(shard int16, ahead time.Duration) uuid.UUID {
	id := store.NewUUID(shard)
	ms := uint64(time.Now().Add(ahead).UnixMilli())
	binary.BigEndian.PutUint64(id[:8], ms<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
	return id
}

func TestNewChildID(t *testing.T) {
	for shard := range int16(store.ShardCount) {
		for _, ahead := range []time.Duration{-time.Hour, -time.Millisecond, 0, time.Millisecond, time.Hour, 1000 * time.Hour} {
			parent := later(shard, ahead)
			for generation := range 20 {
				child := store.NewChildUUID(parent)
				if bytes.Compare(child[:], parent[:]) <= 0 {
					t.Fatalf("clock %v ahead, generation %d: the child %s is not above its parent %s", ahead, generation, child, parent)
				}
				if store.ShardOf(child) != shard {
					t.Fatalf("the child %s is in shard %d, its parent %s in %d", child, store.ShardOf(child), parent, shard)
				}
				if child.Version() != 7 || child.Variant() != uuid.RFC4122 {
					t.Fatalf("the child %s is of version %d, variant %s", child, child.Version(), child.Variant())
				}
				parent = child
			}
		}
	}
}

func TestNewChildIDDiffers(t *testing.T) {
	for _, parent := range []uuid.UUID{store.NewUUID(7), later(7, time.Hour)} {
		seen := make(map[uuid.UUID]bool)
		for range 10_000 {
			id := store.NewChildUUID(parent)
			if seen[id] {
				t.Fatalf("%s is the ID of two children", id)
			}
			seen[id] = true
		}
	}
}
