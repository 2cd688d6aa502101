package engine

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// A token is the run's UUID, the name of the signal that completes the wait, and a MAC of both. The key
// of the MAC is in the database, where users who may only read runs cannot read it. All else in a token
// may be known to others, for example from an idempotency key that was given to an external system.

// tokenPrefix begins every token, so that other text can be told from a token.
const tokenPrefix = "durable-"

// macSize is how many bytes of the HMAC-SHA256 a token carries.
const macSize = 16

// TokenSignal returns the name of the signal that completes the wait called name. Users can send this
// signal only with a token.
func (s *Scope) TokenSignal(name string) string { return separator + s.prefix + name }

// Token returns the token of the wait called name. A worker reads the key before it executes anything.
func (s *Scope) Token(name string) string {
	return sealToken(*s.Engine().tokenKey.Load(), s.r.row.UUID, s.TokenSignal(name))
}

func sealToken(key []byte, run uuid.UUID, signal string) string {
	b := append(run[:len(run):len(run)], signal...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(b, macOf(key, b)...))
}

// macOf returns the MAC of text, the rest of a token. Nobody can compute it without the key.
func macOf(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("durable token 1\x00"))
	mac.Write(text)
	return mac.Sum(nil)[:macSize]
}

// OpenToken returns the run and the signal that a token stands for, or ErrInvalidToken.
func (e *Engine) OpenToken(ctx context.Context, token string) (run, signal string, err error) {
	key, err := e.readTokenKey(ctx, false)
	if err != nil {
		return "", "", err
	}
	run, signal, err = openToken(key, token)
	if err == nil {
		return run, signal, nil
	}
	// The database may have been restored since, with another key.
	now, failed := e.readTokenKey(ctx, true)
	if failed != nil || bytes.Equal(now, key) {
		return "", "", err
	}
	return openToken(now, token)
}

// openToken returns what a token signed with the key stands for.
func openToken(key []byte, token string) (run, signal string, err error) {
	text, ok := strings.CutPrefix(token, tokenPrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	id := len(uuid.UUID{})
	if !ok || err != nil || len(b) < id+2+macSize || b[id] != separator[0] || base64.RawURLEncoding.EncodeToString(b) != text {
		return "", "", fmt.Errorf("%w: %.40q is no token: give what Awaitable.Token returned", ErrInvalidToken, token)
	}
	b, mac := b[:len(b)-macSize], b[len(b)-macSize:]
	if !hmac.Equal(mac, macOf(key, b)) {
		return "", "", fmt.Errorf("%w: %.40q was altered, forged, or made with another database: give what Awaitable.Token returned", ErrInvalidToken, token)
	}
	run, signal = uuid.UUID(b[:id]).String(), string(b[id:])
	for part := range strings.SplitSeq(signal[len(separator):], separator) {
		if err := CheckName("wait", part); err != nil { // Awaitable.Wait refuses it too
			return "", "", err
		}
	}
	return run, signal, nil
}

// readTokenKey returns the key that signs tokens. It reads the key from the database if it is not known
// yet, or if anew is true.
func (e *Engine) readTokenKey(ctx context.Context, anew bool) ([]byte, error) {
	if known := e.tokenKey.Load(); known != nil && !anew {
		return *known, nil
	}
	key, err := e.store.TokenKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the key of tokens: %w", err)
	}
	e.tokenKey.Store(&key)
	return key, nil
}
