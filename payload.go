package durable

import (
	"github.com/seed8ec063be/durable/internal/payload"
)

// Codec encodes the payloads of runs before they are written to the database, and decodes them when they are read; see
// [Config.Codec]. Package codec has codecs that compress and encrypt. A codec must be safe for concurrent use, must not change what it
// is given, and must not call the engine.
//
// Encode may return different bytes for the same payload each time. If Encode returns an error, the write counts as rejected: the
// caller gets [ErrRejected], or the run is held. Decode returns the payload that was passed to Encode, or an error that wraps
// [ErrUnreadable].
type Codec = payload.Codec

// PayloadSlot is the place of a payload, with which a [Codec] can bind the payload to its place: a payload is decoded with the slot
// with which it was encoded. Its method AdditionalData returns it as bytes.
type PayloadSlot = payload.Slot

// UnknownEncryptionKeyError is returned for a payload that is encrypted with a key that this process does not have. It wraps [ErrUnreadable].
type UnknownEncryptionKeyError = payload.UnknownEncryptionKeyError

// ErrUnreadable is returned for a payload that this process cannot decode: its [Config.Codec] lacks the key, or there is no codec, or
// the payload was changed or moved from another place in the database. A run that needs such a payload is held, and is tried again
// every half minute, until a process can decode it.
var ErrUnreadable = payload.ErrUnreadable
