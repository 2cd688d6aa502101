package durable

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// New returns the error of an invalid registration, because RegisterError in a declaration cannot return it.
func TestRegistrationsThatCannotWorkAreRefused(t *testing.T) {
	registry.Lock()
	before := registry.wrong
	registry.wrong = nil
	registry.Unlock()
	defer func() {
		registry.Lock()
		defer registry.Unlock()
		registry.wrong = before
	}()
	sentinel := errors.New("declined")
	if got := RegisterError("", sentinel); got != sentinel {
		t.Errorf("the sentinel became %v", got)
	}
	RegisterError("durable.mine", sentinel)
	RegisterError("context.mine", sentinel)
	RegisterError("shop.\x00", sentinel)
	if err := RegisterError("shop.nil", nil); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("a nil sentinel became %v", err)
	}
	RegisterError("shop.list", uncomparable{})
	RegisterError("shop.list", uncomparable{})
	_, err := New(struct{ Store }{}, Config{}) // New does not use the store
	if !errors.Is(err, ErrInvalidConfig) {
		t.Fatalf("New returned %v", err)
	}
	for _, code := range []string{`RegisterError("")`, "durable.mine", "context.mine", `shop.\x00`, "shop.nil", "shop.list"} {
		if !strings.Contains(err.Error(), code) {
			t.Errorf("%v does not name %s", err, code)
		}
	}
	if f := toRecordedFailure(errors.Join(uncomparable{}, sentinel)); len(f.Codes) != 0 {
		t.Errorf("refused registrations are recorded: %q", f.Codes)
	}
}

// The error of a branch that decided a choice is recorded as that error, with the branch.
func TestRecordedFailureOfAChoice(t *testing.T) {
	f := toRecordedRunFailure(&choiceDecidingError{&choiceDecidingError{errors.New("no luck"), "a/b"}, "a"})
	if f.Message != "no luck" || f.Type != "*errors.errorString" || !slices.Equal(f.Branches, []string{"a", "a/b"}) {
		t.Errorf("%+v", f)
	}
}

type uncomparable []int

// Error makes the type an error whose values cannot be compared.
func (uncomparable) Error() string { return "uncomparable" }
