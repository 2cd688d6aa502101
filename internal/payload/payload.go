// Package payload holds the form in which payloads that a codec has encoded are stored, and the place to which each of
// them is bound.
//
// An encoded payload begins with the byte Mark, with which no JSON text begins, and a byte that tells its form. What
// follows is the codec's. A payload without the mark is stored as it is, so a codec can be added to a database in use. The bytes of
// each codec of package codec begin with the mark too: see layers.go.
//
// A payload of a signal also names the signal, because the database copies it into the checkpoint that receives it.
//
// A payload that cannot be decoded is passed on in the process as bytes with formUnreadable. These bytes begin with the mark too, and
// is never stored. So reading never fails, and whoever needs the payload asks Problem.
package payload

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// Mark is the first byte of an encoded payload. It occurs in no UTF-8 text.
const Mark = 0xC0

// The forms: the second byte of an encoded payload.
const (
	formPlain      = 1    // the codec's bytes follow
	formNamed      = 2    // the name of the slot follows, behind its length, and then the codec's bytes
	formUnreadable = 0xFF // see unreadable.go; never stored
)

// Kind tells what a payload is. The words are part of the additional data of stored payloads, so they never change.
type Kind string

// The kinds of payloads.
const (
	Input      Kind = "input"       // of a run
	Output     Kind = "output"      // of a run
	Error      Kind = "error"       // of a run
	Step       Kind = "step"        // the output of a checkpoint
	StepError  Kind = "step error"  // the error of a checkpoint
	Attempts   Kind = "attempts"    // the failed attempts of a checkpoint
	Signal     Kind = "signal"      // of a run
	Schedule   Kind = "schedule"    // the input of the runs of a schedule
	Reason     Kind = "reason"      // why a run is held
	Divergence Kind = "divergence"  // what a version of the code did not fit; Name is the version
	FirstInput Kind = "first input" // of a run that has continued as new: the hash of the input with which it was started
	FoldCall   Kind = "fold call"   // the identity of a step's start with a start key; Name is the key

	// Received is the output of the checkpoint of a receive: the payload of a signal, which is bound as the signal's, or else a
	// value that is bound as the output of a checkpoint. No payload is bound to it.
	Received Kind = "received"
)

// Slot is the place of one payload. An encoded payload decodes only in its own slot.
type Slot struct {
	Run  uuid.UUID // the run; zero for a schedule or a key of starts with a start key
	Kind Kind
	Name string // of the checkpoint, the signal, the schedule, the version or the key; else empty
}

// AdditionalData returns the slot as bytes. Different slots have different bytes.
func (s Slot) AdditionalData() []byte {
	b := make([]byte, 0, 2+len(s.Run)+1+len(s.Kind)+len(s.Name))
	b = append(b, Mark, formPlain)
	b = append(b, s.Run[:]...)
	b = binary.AppendUvarint(b, uint64(len(s.Kind)))
	b = append(b, s.Kind...)
	return append(b, s.Name...)
}

// String returns the slot in words.
func (s Slot) String() string {
	text := string(s.Kind)
	if s.Name != "" {
		text += fmt.Sprintf(" %.100q", s.Name)
	}
	if s.Run != uuid.Nil {
		text += " of run " + s.Run.String()
	}
	return text
}

// Codec transforms payloads. See durable.Codec.
type Codec interface {
	Encode(slot Slot, plain []byte) ([]byte, error)
	Decode(slot Slot, encoded []byte) ([]byte, error)
}

// Checker is a codec that can tell whether it is usable.
type Checker interface{ Check() error }

// The errors of payloads that cannot be decoded. They are not the fault of a workflow function.
var (
	// ErrUnreadable is what the other errors wrap.
	ErrUnreadable = errors.New("durable: the payload cannot be decoded")
	ErrNoCodec    = fmt.Errorf("%w: it is encoded, and this process has no codec: set Config.Codec", ErrUnreadable)
	ErrDamaged    = fmt.Errorf("%w: it is damaged or from another place", ErrUnreadable)
)

// UnknownEncryptionKeyError is returned for a payload that is encrypted with a key that the codec does not have. It wraps ErrUnreadable.
type UnknownEncryptionKeyError struct{ KeyID string }

// Error returns a text with the ID of the key.
func (e *UnknownEncryptionKeyError) Error() string {
	return fmt.Sprintf("%v: it is encrypted with the key %q, which this process does not have: add the key to the codec", ErrUnreadable, e.KeyID)
}

// Unwrap returns ErrUnreadable.
func (e *UnknownEncryptionKeyError) Unwrap() error { return ErrUnreadable }

// IsEncoded reports whether the payload was encoded by a codec and is not decoded.
func IsEncoded(b []byte) bool { return len(b) > 0 && b[0] == Mark }

// Seal returns the payload as it is stored. A nil payload stays nil, and without a codec every payload is stored as it is.
func Seal(c Codec, slot Slot, plain []byte) ([]byte, error) {
	if c == nil || plain == nil {
		return plain, nil
	}
	if err := Problem(plain); err != nil { // stored again, it would be lost
		return nil, fmt.Errorf("encode the %v: %w", slot, err)
	}
	body, err := call(c.Encode, slot, plain)
	if err != nil {
		return nil, fmt.Errorf("encode the %v: %w", slot, err)
	}
	if slot.Kind != Signal {
		return append([]byte{Mark, formPlain}, body...), nil
	}
	b := append(make([]byte, 0, 2+binary.MaxVarintLen64+len(slot.Name)+len(body)), Mark, formNamed)
	b = binary.AppendUvarint(b, uint64(len(slot.Name)))
	b = append(b, slot.Name...)
	return append(b, body...), nil
}

// Open returns the payload that Seal was given. A payload without the mark is returned as it is.
func Open(c Codec, slot Slot, stored []byte) ([]byte, error) {
	if !IsEncoded(stored) {
		return stored, nil
	}
	if c == nil {
		return nil, ErrNoCodec
	}
	body, slot, err := split(slot, stored)
	var plain []byte
	if err == nil {
		plain, err = call(c.Decode, slot, body)
	}
	if err == nil && IsEncoded(plain) {
		err = missingCodecError(plain)
	}
	if err != nil {
		return nil, fmt.Errorf("decode the %v: %w", slot, err)
	}
	if plain == nil {
		plain = []byte{}
	}
	return plain, nil
}

// call calls a method of a codec, and returns an error if it panics: the goroutine may be one that works for all runs.
func call(f func(Slot, []byte) ([]byte, error), slot Slot, in []byte) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, fmt.Errorf("%w: the codec panicked: %v", ErrUnreadable, v)
		}
	}()
	return f(slot, in)
}

// split returns the codec's bytes and the slot to which they are bound, for a payload that is stored in the given slot.
func split(slot Slot, stored []byte) (body []byte, bound Slot, err error) {
	named := len(stored) > 1 && stored[1] == formNamed
	if len(stored) < 2 || !named && stored[1] != formPlain {
		return nil, slot, fmt.Errorf("%w: its form is unknown", ErrDamaged)
	}
	body, bound = stored[2:], slot
	if slot.Kind == Received {
		bound.Kind = Step
	}
	if !named {
		return body, bound, nil
	}
	n, size := binary.Uvarint(body)
	if size <= 0 || n > uint64(len(body)-size) {
		return nil, slot, fmt.Errorf("%w: it is cut", ErrDamaged)
	}
	name := string(body[size : size+int(n)])
	if slot.Kind != Received && (slot.Kind != Signal || slot.Name != name) {
		return nil, slot, fmt.Errorf("%w: it is that of the signal %.100q", ErrDamaged, name)
	}
	bound.Kind, bound.Name = Signal, name
	return body[size+int(n):], bound, nil
}
