package store_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A text leads to one shard, whether it is taken for a name or for an ID.
func FuzzRef(f *testing.F) {
	id := uuid.MustParse("01900000-0000-7000-8000-00000100002a")
	for _, seed := range []string{"", "order-42", id.String(), "{" + id.String() + "}", "urn:uuid:" + id.String(), "01900000-0000-7000-8000-00000100002A", "\xff", "a\x00b"} {
		f.Add(seed, int64(0))
	}
	f.Add("x", int64(1)<<62)
	f.Add("x", int64(-1)<<40)
	f.Fuzz(func(t *testing.T, text string, micros int64) {
		ref := store.RunRef{UUIDOrName: text}
		shard := ref.Shard()
		if shard < 0 || shard >= store.ShardCount || shard != store.ShardOfName(text) {
			t.Fatalf("%q is in shard %d", text, shard)
		}
		if id, ok := ref.AsUUID(); ok && (id.String() != text || store.ShardOf(id) != shard) {
			t.Errorf("%q is taken for the ID %s of shard %d, and is in %d", text, id, store.ShardOf(id), shard)
		}
		id, name := store.NewRootIdentity(text)
		if text != "" && name != text || text == "" && name != id.String() || store.ShardOf(id) != store.ShardOfName(name) {
			t.Errorf("the root %q has the name %q, the ID %s, and the shard %d of %d", text, name, id, store.ShardOf(id), store.ShardOfName(name))
		}
		// Of any time that a clock may show, within what a UUID holds.
		parent := store.NewUUID(shard)
		ms := uint64(micros) >> 16 % (1 << 47)
		binary.BigEndian.PutUint64(parent[:8], ms<<16|uint64(binary.BigEndian.Uint16(parent[6:8])))
		child := store.NewChildUUID(parent)
		if bytes.Compare(child[:], parent[:]) <= 0 || store.ShardOf(child) != shard || child.Version() != 7 || child.Variant() != uuid.RFC4122 {
			t.Errorf("the child of %s (%v) is %s", parent, time.UnixMilli(int64(ms)), child)
		}
	})
}
