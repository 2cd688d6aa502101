package store

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Epoch fences the writes of one ownership of a run. Count rises by one at every claim. It is
// what people are shown, but it does not suffice: it repeats after a failover to a standby that was
// behind, and after a restore, and one worker can own a run twice at one count. So each claim, and
// each start by the worker that executes it, draws a random Nonce, and every fence compares both.
//
// The zero Epoch is that of a run that was never claimed.
type Epoch struct {
	Count int32
	Nonce uint32
}

// Number is the epoch as the database keeps it, in one column: the count in the upper 32 bits, the
// nonce in the lower ones. The claims of both stores build it in SQL.
func (e Epoch) Number() int64 { return int64(e.Count)<<32 | int64(e.Nonce) }

// EpochOf is the epoch that has this Number.
func EpochOf(number int64) Epoch { return Epoch{Count: int32(number >> 32), Nonce: uint32(number)} }

// Next is the epoch after the claim that drew the nonce.
func (e Epoch) Next(nonce uint32) Epoch { return Epoch{Count: e.Count + 1, Nonce: nonce} }

// NewNonce draws the nonce of a claim, or of a start by the worker that executes the run.
func NewNonce() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// String is the count, and the nonce in hexadecimal digits.
func (e Epoch) String() string { return fmt.Sprintf("%d-%08x", e.Count, e.Nonce) }
