package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// ID is what runs, workers and signals are known by: a UUIDv7.
type ID = uuid.UUID

// ParseID reads an ID in its canonical form, and reports whether the text is one.
func ParseID(text string) (ID, bool) { return parseCanonical(text) }

// Owned is an owner that there is.
func Owned(by ID) uuid.NullUUID { return uuid.NullUUID{UUID: by, Valid: true} }

// Shards is the number of logical shards, fixed at installation. The shard
// leads every key, so that the same tables can be distributed later.
const Shards = 64

// ShardOf reads the shard out of a run's ID: its last six bits.
func ShardOf(id uuid.UUID) int16 { return int16(id[15] & (Shards - 1)) }

// ShardOfName is the shard of a root run with that name. A name in canonical UUID
// form leads to the shard of that UUID, so that a run without a caller's ID,
// whose name is its own UUID, is found both ways.
func ShardOfName(name string) int16 {
	if id, ok := parseCanonical(name); ok {
		return ShardOf(id)
	}
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return int16(h.Sum64() % Shards)
}

// NewID makes a UUIDv7 (time-ordered, RFC 9562) that carries the shard, of the process's
// own time.
func NewID(shard int16) uuid.UUID { return IDAt(shard, time.Now()) }

// IDAt makes a UUIDv7 that carries the shard, of the given time, to a quarter of a
// microsecond (RFC 9562, 6.2, method 3).
func IDAt(shard int16, at time.Time) uuid.UUID {
	return setTimeAndShard(uuid.New(), shard, at) // random; panics only if the system has no randomness
}

// timed gives the ID its time, version and shard.
func setTimeAndShard(id uuid.UUID, shard int16, at time.Time) uuid.UUID {
	ms := at.UnixMilli()
	part := at.Sub(time.UnixMilli(ms)) * 4096 / time.Millisecond
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16|0x7000|uint64(part))
	id[15] = id[15]&^(Shards-1) | byte(shard)
	return id
}

// NewChildID is the ID of a child without a name, of the process's own time.
func NewChildID(parent uuid.UUID) uuid.UUID {
	return atOrAfterParent(parent, IDAt(ShardOf(parent), time.Now()))
}

// ChildID is the ID of the child that the parent started by the call with this name at this time:
// the row of the call, which holds both, leads to the child also when it holds the child's end. It
// is a UUIDv7 of the parent's shard, with a hash for its random bits.
func ChildID(parent uuid.UUID, name string, at time.Time) uuid.UUID {
	at = at.Truncate(time.Microsecond) // as it is stored
	h := sha256.New()
	h.Write(parent[:]) // a hash's Write never fails
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro())))
	h.Write([]byte(name))
	id := uuid.UUID(h.Sum(nil)[:16])
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return atOrAfterParent(parent, setTimeAndShard(id, ShardOf(parent), at))
}

// childID keeps the ID of a child above its parent's, so that locking in the order of IDs takes
// parents first.
func atOrAfterParent(parent, id uuid.UUID) uuid.UUID {
	if bytes.Compare(id[:], parent[:]) > 0 {
		return id
	}
	// The reading of the clock is behind the one which the parent was made with.
	ms := binary.BigEndian.Uint64(parent[:8])>>16 + 1
	binary.BigEndian.PutUint64(id[:8], ms<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
	return id
}

// NewRootID is RootIDAt of the process's own time.
func NewRootID(name string) (uuid.UUID, string) { return RootIDAt(name, time.Now()) }

// RootIDAt makes the ID of a root run with the caller's name, and the name itself when the
// caller gave none.
func RootIDAt(name string, at time.Time) (uuid.UUID, string) {
	if name == "" {
		id := IDAt(int16(rand.IntN(Shards)), at)
		return id, id.String()
	}
	return IDAt(ShardOfName(name), at), name
}

// NamedByID reports whether the run's name is the one that was made for it, so that no other run can
// have it.
func NamedByID(r *Run) bool {
	id, is := parseCanonical(r.Name)
	return is && id == r.ID
}

// Address is the text that a run is known and addressed by: the caller's ID of a root, the UUID
// of a child. A child's name is the key of a call in its parent, and no address: a root may have
// it as its ID.
func (r *Run) Address() string { return address(r.ID, r.Parent.Valid, r.Name) }

// Address is that of the event's run; see Run.Address.
func (e *Event) Address() string { return address(e.Run, e.Child || e.Name == "", e.Name) }

func address(id uuid.UUID, child bool, name string) string {
	if child {
		return id.String()
	}
	return name
}

// Ref addresses a run: by its UUID or, for a root, by the caller's name.
type Ref struct{ Text string }

// Shard is where the referenced run is.
func (r Ref) Shard() int16 { return ShardOfName(r.Text) }

// ID is the UUID that the reference may be. A root run may also have this text
// as its name; a store looks for both and prefers the ID.
func (r Ref) ID() (uuid.UUID, bool) { return parseCanonical(r.Text) }

// parseCanonical accepts only the 36-character lower-case form: uuid.Parse would
// also take braces, URNs and capitals, which as names are other names.
func parseCanonical(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s {
		return uuid.UUID{}, false
	}
	return id, true
}
