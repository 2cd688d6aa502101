package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What an unreadable payload holds behind its size.
const (
	holdsKeyID = 'k'
	holdsText  = 't'
)

// OpenOrMark returns the payload that Seal was given, or, if it cannot be decoded, what stands for it in this process: bytes for
// which Problem returns the error.
func OpenOrMark(c Codec, slot Slot, stored []byte) []byte {
	plain, err := Open(c, slot, stored)
	if err == nil {
		return plain
	}
	b := binary.AppendUvarint([]byte{Mark, formUnreadable}, uint64(len(stored)))
	if unknown, ok := errors.AsType[*UnknownEncryptionKeyError](err); ok {
		return append(append(b, holdsKeyID), unknown.KeyID...)
	}
	text := strings.ReplaceAll(err.Error(), ErrUnreadable.Error()+": ", "")
	return append(append(b, holdsText), text...)
}

// Problem returns why the payload cannot be decoded in this process, or nil if it is no encoded payload.
func Problem(b []byte) error {
	if !IsEncoded(b) {
		return nil
	}
	kind, text := unreadable(b)
	switch kind {
	case holdsKeyID:
		return &UnknownEncryptionKeyError{text}
	case holdsText:
		return fmt.Errorf("%w: %s", ErrUnreadable, text)
	}
	return ErrNoCodec
}

// unreadable returns what an unreadable payload holds. The kind is zero for any other payload.
func unreadable(b []byte) (kind byte, text string) {
	if len(b) < 2 || b[1] != formUnreadable {
		return 0, ""
	}
	if _, n := binary.Uvarint(b[2:]); n > 0 && len(b) > 2+n {
		return b[2+n], string(b[3+n:])
	}
	return 0, ""
}

// Shown returns the payload as people see it: itself, or, if it is encoded, a JSON object with the size in bytes in which it is
// stored, as the views of the database show it.
func Shown(b []byte) []byte {
	if !IsEncoded(b) {
		return b
	}
	size := uint64(len(b))
	if len(b) > 1 && b[1] == formUnreadable {
		size, _ = binary.Uvarint(b[2:])
	}
	return append(strconv.AppendUint([]byte(`{"encoded":`), size, 10), '}')
}
