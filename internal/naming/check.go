package naming

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxName is the maximum length, in bytes, of the name of a run, a workflow, a queue or a step. Names are
// keys of an index.
const MaxName = 512

// MaxScopedName is the maximum length, in bytes, of a name with its scopes. An entry of a PostgreSQL index has
// at most 2,704 bytes, which include the rest of its key and, for a token, a prefix. The database would
// reject a longer name only after the step's function has taken effect.
const MaxScopedName = 2400

// MaxText is the maximum length in bytes of a text for people in a row, such as a reason or the message of
// an error. The text says what happened; it is not meant to carry data.
const MaxText = 16 << 10

// ErrInvalid is returned for a name or a text that a database would reject. The root package exports it as
// ErrInvalidName.
var ErrInvalid = errors.New("durable: invalid name")

// Check returns ErrInvalid unless name is valid UTF-8 without control characters, is not empty, and has at
// most MaxName bytes. The error uses what to describe the named thing.
func Check(what, name string) error {
	if name == "" {
		return fmt.Errorf("%w: the name of a %s is empty: give it one", ErrInvalid, what)
	}
	return checkShort("name of a ", what, name)
}

// checkShort returns ErrInvalid if text is too long for a name, is not valid UTF-8, or contains control
// characters. The error describes the text by kind and what, which are joined only there, because each step
// is checked.
func checkShort(kind, what, text string) error {
	switch {
	case len(text) > MaxName:
		return fmt.Errorf("%w: the %s%s has %d bytes, at most %d are kept (%.40q…): shorten it, or use a hash of it",
			ErrInvalid, kind, what, len(text), MaxName, text)
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: the %s%s, %q, is not valid UTF-8: encode it", ErrInvalid, kind, what, text)
	}
	for _, c := range text {
		if c < 0x20 || c == 0x7f {
			return fmt.Errorf("%w: the %s%s, %q, contains the control character %U: leave it out", ErrInvalid, kind, what, text, c)
		}
	}
	return nil
}

// CheckText returns ErrInvalid for a text for people, such as a reason, that a database would reject. An
// empty text is valid.
func CheckText(what, text string) error {
	switch {
	case len(text) > MaxText:
		return fmt.Errorf("%w: the %s has %d bytes, at most %d are kept: shorten it", ErrInvalid, what, len(text), MaxText)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: the %s %.40q is not valid UTF-8 text without NUL: encode it", ErrInvalid, what, text)
	}
	return nil
}

// CheckTag returns ErrInvalid for a tag whose key has no namespace, or whose key or value cannot be a name.
func CheckTag(key, value string) error {
	if err := Check("tag", key); err != nil {
		return err
	}
	if space, rest, _ := strings.Cut(key, "."); space == "" || rest == "" {
		return fmt.Errorf("%w: the tag %q has no namespace: call it like team.owner", ErrInvalid, key)
	}
	if value == "" {
		return fmt.Errorf("%w: the value of the tag %q is empty: give it one, or leave out the tag", ErrInvalid, key)
	}
	return checkShort("value of the tag ", strconv.Quote(key), value)
}
