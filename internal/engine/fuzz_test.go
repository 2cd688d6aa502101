package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Whatever stands in an error's column, it is read, and what was read is written and read
// again as the same.
func FuzzDecodeFailure(f *testing.F) {
	for _, seed := range []string{`{"message":"no"}`, `{}`, `null`, `[]`, ``, `{"message":1}`, `{"codes":["a",null]}`, `{"attempts":1e99}`, "\xff", `{"message":"\ud800"}`, `{"unknown":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read := DecodeFailure(b)
		again := DecodeFailure(read.Encode())
		if len(read.Message) <= maxText && !strings.Contains(read.Message, "\x00") && again.Message != read.Message {
			t.Errorf("%q says %q, and written again %q", b, read.Message, again.Message)
		}
		if !slices.Equal(again.Codes, read.Codes) || again.Attempts != read.Attempts || again.Permanent != read.Permanent || again.Step != read.Step {
			t.Errorf("%q was read as %+v, and written again as %+v", b, read, again)
		}
		_ = read.ErrorType()
	})
}

// Whatever an error says, its record can be written and read.
func FuzzFailure(f *testing.F) {
	f.Add("no", "*errors.errorString", "a.code", "step", "stack", int32(3))
	f.Add("\xff\x00", "\xfe", "", "a\x1fb", strings.Repeat("x", maxText+1), int32(-1))
	f.Fuzz(func(t *testing.T, message, kind, code, step, stack string, attempts int32) {
		failure := &Failure{Message: message, Type: kind, Stack: stack, Attempts: attempts}
		if utf8.ValidString(code) && utf8.ValidString(step) { // names and registered codes
			failure.Codes, failure.Step = []string{code}, step
		}
		b := failure.Encode()
		if !utf8.Valid(b) || len(b) > 20*(len(code)+len(step)+3*(maxText+10)) {
			t.Fatalf("the record has %d bytes, valid UTF-8: %v", len(b), utf8.Valid(b))
		}
		read := DecodeFailure(b)
		if read.Message != tidy(message) || read.Attempts != attempts || !slices.Equal(read.Codes, failure.Codes) || read.Step != failure.Step {
			t.Errorf("%+v was read as %+v", failure, read)
		}
		if utf8.ValidString(message) && len(message) <= maxText && !strings.Contains(message, "\x00") && read.Message != message {
			t.Errorf("the message %q became %q", message, read.Message)
		}
	})
}

// A name that passes is one that every database keeps, and that no scope imitates.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "a", "team.owner", ".", "a.", "\x1f", "a\x7f", "\u0085", "\xff", "a\x00", strings.Repeat("é", 256), strings.Repeat("x", 513), "%s", "'; --", " "} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		err := CheckName("step", name)
		fit := name != "" && len(name) <= MaxName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool { return c < 0x20 || c == 0x7f })
		if (err == nil) != fit || err != nil && !errors.Is(err, ErrInvalidName) {
			t.Errorf("the name %q: %v", name, err)
		}
		for _, full := range []string{name, name + separator + value, value + separator + name} {
			if back := ParseDisplayName(DisplayName(full)); back != full || strings.Contains(DisplayName(full), separator) {
				t.Errorf("the name %q is shown as %q, and read as %q", full, DisplayName(full), back)
			}
		}
		if err == nil && (strings.Contains(name, separator) || DisplaySignal(name) != name || strings.ContainsRune(DisplayName(name), '/')) {
			t.Errorf("the name %q is shown as %q", name, DisplayName(name))
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("the error of %q is not text", name)
		}
		if err := CheckTag(name, value); err == nil && (CheckName("tag", name) != nil || CheckName("value", value) != nil || !strings.Contains(name, ".")) {
			t.Errorf("the tag %q = %q passes", name, value)
		}
		if err := CheckText("reason", value); err == nil && (!utf8.ValidString(value) || strings.ContainsRune(value, 0) || len(value) > maxText) {
			t.Errorf("the text %.40q passes", value)
		}
	})
}

// A token leads to one run and one wait, and nothing else is a token.
func FuzzOpenToken(f *testing.F) {
	id, key := uuid.New(), []byte("a key that nobody else has at all")
	f.Add(sealToken(key, id, "\x1fapproval"))
	for _, seed := range []string{"", tokenPrefix, tokenPrefix + "AAAA", "durable", "durable-\n", tokenPrefix + strings.Repeat("A", 22), tokenPrefix + strings.Repeat("A", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		run, signal, err := openToken(key, token)
		if err != nil {
			if !errors.Is(err, ErrInvalidToken) || run != "" || signal != "" {
				t.Errorf("%q: %q, %q, %v", token, run, signal, err)
			}
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("the error of %q holds control characters", token)
			}
			return
		}
		id, err := uuid.Parse(run)
		if err != nil || id.String() != run || len(signal) < 2 || signal[:1] != separator {
			t.Errorf("%q leads to %q, %q", token, run, signal)
		}
		if again := sealToken(key, id, signal); again != token {
			t.Errorf("%q leads to %q, %q, whose token is %q", token, run, signal, again)
		}
	})
}
