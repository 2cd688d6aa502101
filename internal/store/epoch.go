package store

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"
)

// Epoch identifies one period in which a worker owns a run, and fences the writes that belong to another period. Every claim of a run
// increments Count, which users see. Count alone is not unique: after a restore of the database, or a failover to a standby that was
// behind, a worker can own a run twice at the same Count. Therefore each claim, and each start by a worker that executes the run itself,
// draws a random Nonce. Every guard against writes of earlier owners compares Count and Nonce.
//
// A run that was never claimed has the zero Epoch.
type Epoch struct {
	Count int32
	Nonce uint32
}

// EncodeInt64 returns the epoch as the database stores it, in one column: Count in the upper 32 bits, and Nonce in the lower 32
// bits. The claim statements of both stores compute the same number in SQL.
func (e Epoch) EncodeInt64() int64 { return int64(e.Count)<<32 | int64(e.Nonce) }

// DecodeEpoch returns the epoch that EncodeInt64 has encoded as the given number.
func DecodeEpoch(number int64) Epoch {
	return Epoch{Count: int32(number >> 32), Nonce: uint32(number)}
}

// Next returns the epoch of a run after a claim with the given nonce.
func (e Epoch) Next(nonce uint32) Epoch { return Epoch{Count: e.Count + 1, Nonce: nonce} }

// NewNonce returns a random nonce for a claim, or for a start by the worker that executes the run.
func NewNonce() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// String returns the count of the epoch, and its nonce in hexadecimal digits.
func (e Epoch) String() string { return fmt.Sprintf("%d-%08x", e.Count, e.Nonce) }

// RunExecution is one execution of a run.
type RunExecution struct {
	Run   uuid.UUID
	Epoch Epoch
}
