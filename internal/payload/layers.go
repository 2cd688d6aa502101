package payload

import (
	"crypto/sha256"
	"encoding/json/jsontext"
	"fmt"
	"unicode/utf8"
)

// The second byte of what a codec of package codec returns; the first one is Mark. No plain payload begins with Mark, so a codec
// that was added to a chain, or taken out of it, is noticed. Stored payloads have these bytes, so they never change. Each two of them
// differ in more than one bit.
const (
	ByCompress      = 'c' // Zstandard follows
	ByCompressPlain = 'p' // Compress has not made the payload smaller, and it follows as it was
	ByEncrypt       = 'e' // the length of the key's ID, the ID, the nonce and the ciphertext follow
)

// missingCodecError returns the error for bytes that the codec of this process has decoded, and that another codec has encoded before.
func missingCodecError(b []byte) error {
	var name string
	switch {
	case len(b) < 2:
		return fmt.Errorf("%w: it is cut", ErrDamaged)
	case b[1] == ByCompress || b[1] == ByCompressPlain:
		name = "codec.Compress"
	case b[1] == ByEncrypt:
		name = "codec.Encrypt"
	default:
		name = fmt.Sprintf("a codec whose bytes begin with %x", b[:2])
	}
	return fmt.Errorf("%w: it was encoded by %s, which the codec of this process lacks: add it to the codec.Chain of Config.Codec", ErrUnreadable, name)
}

// CheckPlain returns an error that wraps ErrDamaged if the bytes cannot be a payload that was not encoded.
func CheckPlain(slot Slot, b []byte) error {
	valid := false
	switch slot.Kind {
	case Reason, Divergence, FoldCall:
		valid = utf8.Valid(b)
	case FirstInput:
		valid = len(b) == sha256.Size
	default:
		valid = jsontext.Value(b).IsValid(jsontext.AllowDuplicateNames(true))
	}
	if !valid {
		return fmt.Errorf("%w: no codec of this process has encoded it: use the codecs with which it was encoded", ErrDamaged)
	}
	return nil
}
