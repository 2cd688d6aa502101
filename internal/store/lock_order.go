package store

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// A transaction that locks several rows locks them in one order, so that two transactions never wait for
// each other: runs by CompareUUIDsByShard, and then the rows of each table by the comparison for its key. Statements
// that lock rows get their items in this order, or sort them: ORDER BY shard, id sorts as CompareUUIDsByShard does.

// CompareUUIDsByShard compares the UUIDs of runs: first by shard, then by UUID.
func CompareUUIDsByShard(l, r uuid.UUID) int {
	if c := cmp.Compare(ShardOf(l), ShardOf(r)); c != 0 {
		return c
	}
	return bytes.Compare(l[:], r[:])
}

// SortedUniqueUUIDs returns the UUIDs in the order of CompareUUIDsByShard, each once. SortedUniqueUUIDs does not change its argument.
func SortedUniqueUUIDs(ids []uuid.UUID) []uuid.UUID {
	return slices.Compact(slices.SortedFunc(slices.Values(ids), CompareUUIDsByShard))
}

// CompareSteps compares steps first by their run, then by their name.
func CompareSteps(l, r *Step) int {
	if c := CompareUUIDsByShard(l.Run, r.Run); c != 0 {
		return c
	}
	return cmp.Compare(l.Name, r.Name)
}

// CompareStarts compares starts of runs by the key on which two starts can conflict: the shard, the parent and the name. The UUIDs of two
// starts never conflict.
func CompareStarts(l, r *StartWrite) int {
	if c := cmp.Compare(ShardOf(l.Run.UUID), ShardOf(r.Run.UUID)); c != 0 {
		return c
	}
	if c := bytes.Compare(l.Run.Parent.UUID[:], r.Run.Parent.UUID[:]); c != 0 {
		return c
	}
	return cmp.Compare(l.Run.Name, r.Run.Name)
}
