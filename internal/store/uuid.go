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

// UUID identifies a run, a worker or a signal. It is a UUIDv7.
type UUID = uuid.UUID

// ParseCanonicalUUID parses a UUID in its canonical form, and reports whether the text is one.
func ParseCanonicalUUID(text string) (UUID, bool) { return parseCanonicalUUID(text) }

// ValidNullUUID returns the value of Run.Owner for a run that the worker with the given UUID owns.
func ValidNullUUID(by UUID) uuid.NullUUID { return uuid.NullUUID{UUID: by, Valid: true} }

// ShardCount is the number of logical shards, which never changes. The shard is the first column of every key in the database, so that the
// tables can be distributed later.
const ShardCount = 64

// ShardOf returns the shard of a run, which is the last six bits of its UUID.
func ShardOf(id uuid.UUID) int16 { return int16(id[15] & (ShardCount - 1)) }

// ShardOfName returns the shard of the root run with the given name. If the name is a UUID in canonical form, ShardOfName returns the shard
// of that UUID: a run that was started without a name has its own UUID as its name, and both lead to the same shard.
func ShardOfName(name string) int16 {
	if id, ok := parseCanonicalUUID(name); ok {
		return ShardOf(id)
	}
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return int16(h.Sum64() % ShardCount)
}

// NewUUID returns a new UUIDv7 (time-ordered, RFC 9562) in the given shard, with the time of the
// process's clock.
func NewUUID(shard int16) uuid.UUID { return NewUUIDAt(shard, time.Now()) }

// NewUUIDAt returns a new UUIDv7 in the given shard with the given time, to the precision of a quarter of a microsecond (RFC 9562, 6.2,
// method 3).
func NewUUIDAt(shard int16, at time.Time) uuid.UUID {
	return setTimeAndShard(uuid.New(), shard, at) // random; panics only if the system has no randomness
}

// setTimeAndShard returns the UUID with this time, version 7 and this shard.
func setTimeAndShard(id uuid.UUID, shard int16, at time.Time) uuid.UUID {
	ms := at.UnixMilli()
	part := at.Sub(time.UnixMilli(ms)) * ticksPerMilli / time.Millisecond
	return uuidWithTicksAndShard(id, shard, uint64(ms)*ticksPerMilli+uint64(part))
}

// ticksPerMilli is the resolution of the times in UUIDs: a tick is about a quarter of a microsecond.
const ticksPerMilli = 4096

// uuidTimeInTicks returns the time of a UUIDv7, in ticks since 1970.
func uuidTimeInTicks(id uuid.UUID) uint64 {
	at := binary.BigEndian.Uint64(id[:8])
	return at>>16*ticksPerMilli + at%ticksPerMilli
}

// TimeOfUUID returns the time that a UUIDv7 contains, in whole milliseconds.
func TimeOfUUID(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(uuidTimeInTicks(id) / ticksPerMilli)).UTC()
}

// uuidWithTicksAndShard returns the UUID with this time in ticks, version 7 and this shard.
func uuidWithTicksAndShard(id uuid.UUID, shard int16, ticks uint64) uuid.UUID {
	binary.BigEndian.PutUint64(id[:8], ticks/ticksPerMilli<<16|0x7000|ticks%ticksPerMilli)
	id[15] = id[15]&^(ShardCount-1) | byte(shard)
	return id
}

// hashedUUID returns a UUID with a hash of the parts in place of random bits. The caller sets its time and its shard.
func hashedUUID(parts ...[]byte) uuid.UUID {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part) // a hash's Write never fails
	}
	id := uuid.UUID(h.Sum(nil)[:16])
	id[8] = id[8]&0x3f | 0x80 // the variant of RFC 9562
	return id
}

// NewChildUUID returns a new UUID for a child run without a name, with the time of the process's clock.
func NewChildUUID(parent uuid.UUID) uuid.UUID {
	return uuidAfterParent(parent, NewUUIDAt(ShardOf(parent), time.Now()))
}

// ChildUUID returns the UUID of the child that a generation of the parent started in the call with the given name at the given time.
// ChildUUID can also be computed from the checkpoint of the call after the child's outcome has replaced the UUID there; see
// record.ChildUUID. The result of ChildUUID is a UUIDv7 in the parent's shard, with a hash in place of the random bits. Because the clock
// of a test stands still while code executes, two generations of a parent may start a child at the same time.
func ChildUUID(parent uuid.UUID, name string, at time.Time, generation int32) uuid.UUID {
	at = at.Truncate(time.Microsecond) // as it is stored
	call := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	id := hashedUUID(parent[:], binary.BigEndian.AppendUint32(call, uint32(generation)), []byte(name))
	return uuidAfterParent(parent, setTimeAndShard(id, ShardOf(parent), at))
}

// uuidAfterParent returns id, or, if it does not come after the parent's UUID, a UUID that does. So a
// transaction that locks runs in the order of UUIDs locks parents first.
func uuidAfterParent(parent, id uuid.UUID) uuid.UUID {
	if bytes.Compare(id[:], parent[:]) > 0 {
		return id
	}
	// The clock of the parent's process was ahead of the clock of this one.
	ms := binary.BigEndian.Uint64(parent[:8])>>16 + 1
	binary.BigEndian.PutUint64(id[:8], ms<<16|uint64(binary.BigEndian.Uint16(id[6:8])))
	return id
}

// GenerationUUID returns the run ID under which the store keeps the checkpoints of a superseded generation. The result of GenerationUUID is
// a UUIDv7 in the shard of the run, a tick older than the run's UUID, with a hash in place of the random bits.
func GenerationUUID(run uuid.UUID, number int32) uuid.UUID {
	id := hashedUUID(run[:], binary.BigEndian.AppendUint32(nil, uint32(number)))
	return uuidWithTicksAndShard(id, ShardOf(run), uuidTimeInTicks(run)-1)
}

// NewRootIdentity calls NewRootIdentityAt with the time of the process's clock.
func NewRootIdentity(name string) (uuid.UUID, string) { return NewRootIdentityAt(name, time.Now()) }

// NewRootIdentityAt returns a new UUID for a root run, and the name of the run. If the given name is empty, the UUID is the name of the
// run.
func NewRootIdentityAt(name string, at time.Time) (uuid.UUID, string) {
	shard := int16(rand.IntN(ShardCount))
	if name != "" {
		shard = ShardOfName(name)
	}
	id := NewUUIDAt(shard, at)
	id[15] &^= scheduledBit
	if name == "" {
		name = id.String()
	}
	return id, name
}

// scheduledBit is set in the last byte of the UUIDs of runs that schedules have started. No other root has it.
const scheduledBit = 0x40

// NewScheduledUUID returns a new UUID for the run with the given name that a schedule starts.
func NewScheduledUUID(name string, at time.Time) uuid.UUID {
	id := NewUUIDAt(ShardOfName(name), at)
	id[15] |= scheduledBit
	return id
}

// IsScheduledUUID reports whether the root run with this UUID was started by a schedule.
func IsScheduledUUID(id uuid.UUID) bool { return id[15]&scheduledBit != 0 }

// IsNamedByUUID reports whether the run's name is its own UUID. No other run can have the UUID of a run as its name.
func IsNamedByUUID(r *Run) bool {
	id, ok := parseCanonicalUUID(r.Name)
	return ok && id == r.UUID
}

// NameOrUUID returns the text with which users refer to the run: the name of a root, or the UUID of a child. The name of a child is the key
// of a call in its parent, and does not identify the child, because a root may have the same name.
func (r *Run) NameOrUUID() string { return nameOrUUID(r.UUID, r.Parent.Valid, r.Name) }

// RunNameOrUUID returns the text with which users refer to the event's run; see Run.NameOrUUID.
func (e *Event) RunNameOrUUID() string { return nameOrUUID(e.Run, e.IsChild || e.Name == "", e.Name) }

func nameOrUUID(id uuid.UUID, child bool, name string) string {
	if child {
		return id.String()
	}
	return name
}

// RunRef refers to a run by the run's UUID or, for a root, by the run's name.
type RunRef struct{ UUIDOrName string }

// Shard returns the shard of the referenced run.
func (r RunRef) Shard() int16 { return ShardOfName(r.UUIDOrName) }

// AsUUID parses the text of the reference as a UUID, and reports whether it is a UUID. A root run may have the text of a UUID as its name;
// a store then searches for the UUID and for the name, and prefers the run with the UUID.
func (r RunRef) AsUUID() (uuid.UUID, bool) { return parseCanonicalUUID(r.UUIDOrName) }

// parseCanonicalUUID parses the 36-character lower-case form of a UUID only. uuid.Parse also accepts
// braces, URNs and capitals, but texts in these forms are different names.
func parseCanonicalUUID(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s {
		return uuid.UUID{}, false
	}
	return id, true
}
