// Package token makes and opens the tokens of callbacks. A token is the run's UUID, the name of the signal
// that completes the wait, and a MAC of both. The key of the MAC is in the database, where users who may
// only read runs cannot read it. All else in a token may be known to others, for example from an
// idempotency key that was given to an external system. The engine calls this package with the key.
package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
)

// ErrInvalid is returned for a text that is no token of this database. The root package exports it as
// ErrInvalidToken.
var ErrInvalid = errors.New("durable: invalid token")

// prefix begins every token, so that other text can be told from a token.
const prefix = "durable-"

// macSize is how many bytes of the HMAC-SHA256 a token carries.
const macSize = 16

// Seal returns the token for the signal of the run, signed with the key.
func Seal(key []byte, run uuid.UUID, signal string) string {
	b := append(run[:len(run):len(run)], signal...)
	return prefix + base64.RawURLEncoding.EncodeToString(append(b, macOf(key, b)...))
}

// macOf returns the MAC of text, the rest of a token. Nobody can compute it without the key.
func macOf(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("durable token 1\x00"))
	mac.Write(text)
	return mac.Sum(nil)[:macSize]
}

// Open returns the run and the signal that a token signed with the key stands for, or ErrInvalid.
func Open(key []byte, token string) (run, signal string, err error) {
	text, ok := strings.CutPrefix(token, prefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	id := len(uuid.UUID{})
	if !ok || err != nil || len(b) < id+2+macSize || b[id] != naming.Separator[0] || base64.RawURLEncoding.EncodeToString(b) != text {
		return "", "", fmt.Errorf("%w: %.40q is no token: give what Callback.Token returned", ErrInvalid, token)
	}
	b, mac := b[:len(b)-macSize], b[len(b)-macSize:]
	if !hmac.Equal(mac, macOf(key, b)) {
		return "", "", fmt.Errorf("%w: %.40q was altered, forged, or made with another database: give what Callback.Token returned", ErrInvalid, token)
	}
	run, signal = uuid.UUID(b[:id]).String(), string(b[id:])
	wait, _, _ := naming.ParseCallbackSignal(signal)
	for part := range strings.SplitSeq(wait, naming.Separator) {
		if err := naming.Check("wait", part); err != nil { // Callback.Wait refuses it too
			return "", "", err
		}
	}
	return run, signal, nil
}

var tokenPattern = regexp.MustCompile(prefix + "[A-Za-z0-9_-]+")

// EqualExceptMACs reports whether two texts are equal, apart from the MACs of tokens, which depend on the key of the database.
func EqualExceptMACs(a, b []byte) bool { return bytes.Equal(clearMACs(a), clearMACs(b)) }

// clearMACs returns the text with the MACs of all its tokens set to zero.
func clearMACs(text []byte) []byte {
	return tokenPattern.ReplaceAllFunc(text, func(found []byte) []byte {
		b, err := base64.RawURLEncoding.DecodeString(string(found[len(prefix):]))
		if id := len(uuid.UUID{}); err != nil || len(b) < id+2+macSize || b[id] != naming.Separator[0] {
			return found
		}
		clear(b[len(b)-macSize:])
		return []byte(prefix + base64.RawURLEncoding.EncodeToString(b))
	})
}
