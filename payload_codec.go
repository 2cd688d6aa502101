package durable

import (
	"github.com/seed8ec063be/durable/internal/payload"
)

// Codec encodes the payloads of runs before they are written to the database, and decodes them when they are read; see
// [Config.Codec]. Package codec has codecs that compress and encrypt. A codec must be safe for concurrent use, must not change
// the bytes that are passed to it, and must not call the engine.
//
// The method Encode may return different bytes for the same payload each time. If Encode returns an error, the write counts as
// rejected: the caller gets [ErrRejected], or the run is held. The method Decode returns the payload that was passed to Encode,
// or an error that wraps [ErrUnreadable].
//
// To be able to add or remove a codec of your own while runs are live, let Encode begin its bytes with a mark: the byte 0xC0,
// with which no JSON text begins, and a second byte of 0x80 or more. Let Decode return bytes without this mark unchanged. A
// payload that still begins with 0xC0 after it was decoded is unreadable: the error says that a codec is missing.
type Codec = payload.Codec

// PayloadSlot identifies the place of a payload in the database, such as the result of one step. A [Codec] can bind a payload
// to its PayloadSlot, because Decode gets the same PayloadSlot that Encode got for the payload. The method AdditionalData
// returns the PayloadSlot as bytes.
type PayloadSlot = payload.Slot

// UnknownEncryptionKeyError is returned for a payload that is encrypted with a key that this process does not have. An
// UnknownEncryptionKeyError wraps [ErrUnreadable].
type UnknownEncryptionKeyError = payload.UnknownEncryptionKeyError

// ErrUnreadable is returned for a payload that this process cannot decode. Either the [Config.Codec] lacks the key or a codec
// with which the payload was encoded, or the process has no codec, or the payload was changed or moved from another place in
// the database. A run that needs an unreadable payload is held, and is tried again every half minute, until a process can
// decode the payload.
var ErrUnreadable = payload.ErrUnreadable
