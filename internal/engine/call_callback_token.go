package engine

import (
	"bytes"
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/token"
)

// CallbackName returns the name under which the callback called name is recorded. A renamed callback without a record gets its first name,
// because an older version of the code may have passed on a token for that name.
func (s *Scope) CallbackName(name string) string {
	def := s.r.workflowDefinition()
	if full := s.fullName(name); def == nil || s.r.history[full] != nil || s.r.keyRenewals.keyNames[full] {
		return name
	}
	for name = range def.callNames(name) {
	}
	return name
}

// CallbackSignalName returns the name of the signal that completes the wait called name. Users can send the signal of such a wait only with
// a token. After the run has continued as new, a wait of the same name has another signal, and so another token.
func (s *Scope) CallbackSignalName(name string) string {
	return naming.CallbackSignal(s.fullName(name), s.r.keyRenewals.CallbackSuffix())
}

// CallbackToken returns the token of the wait called name. The key that signs tokens is already in memory, because a worker reads the key
// before it executes runs. In a preflight, the token is signed with a key that belongs to no database.
func (s *Scope) CallbackToken(name string) string {
	return token.Seal(*s.Engine().tokenKey.Load(), s.r.row.UUID, s.CallbackSignalName(name))
}

// DecodeCallbackToken returns the run and the signal to which the token text belongs. DecodeCallbackToken returns token.ErrInvalid for an
// invalid text.
func (e *Engine) DecodeCallbackToken(ctx context.Context, text string) (run, signal string, err error) {
	key, err := e.readTokenSigningKey(ctx, false)
	if err != nil {
		return "", "", err
	}
	run, signal, err = token.Open(key, text)
	if err == nil {
		return run, signal, nil
	}
	// The database may have been restored since the key was read, and may have another key.
	now, failed := e.readTokenSigningKey(ctx, true)
	if failed != nil || bytes.Equal(now, key) {
		return "", "", err
	}
	return token.Open(now, text)
}

// readTokenSigningKey returns the key that signs tokens. It reads the key from the database if it is not known
// yet, or if anew is true.
func (e *Engine) readTokenSigningKey(ctx context.Context, anew bool) ([]byte, error) {
	if known := e.tokenKey.Load(); known != nil && !anew {
		return *known, nil
	}
	key, err := e.store.TokenSigningKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the key of tokens: %w", err)
	}
	e.tokenKey.Store(&key)
	return key, nil
}
