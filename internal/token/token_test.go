package token

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
)

// A token leads to one run and one wait, and nothing else is a token.
func FuzzOpenToken(f *testing.F) {
	id, key := uuid.New(), []byte("a key that nobody else has at all")
	f.Add(Seal(key, id, naming.CallbackSignal("approval", "")))
	f.Add(Seal(key, id, naming.CallbackSignal("branch\x1fapproval", "#2")))
	for _, seed := range []string{"", prefix, prefix + "AAAA", "durable", "durable-\n", prefix + strings.Repeat("A", 22), prefix + strings.Repeat("A", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		run, signal, err := Open(key, token)
		if err != nil {
			if !errors.Is(err, ErrInvalid) || run != "" || signal != "" {
				t.Errorf("%q: %q, %q, %v", token, run, signal, err)
			}
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("the error of %q holds control characters", token)
			}
			return
		}
		id, err := uuid.Parse(run)
		if err != nil || id.String() != run || len(signal) < 2 || signal[:1] != naming.Separator {
			t.Errorf("%q leads to %q, %q", token, run, signal)
		}
		if again := Seal(key, id, signal); again != token {
			t.Errorf("%q leads to %q, %q, whose token is %q", token, run, signal, again)
		}
	})
}
