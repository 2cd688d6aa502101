package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed8ec063be/durable/internal/naming"
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
		if len(read.Message) <= naming.MaxText && !strings.Contains(read.Message, "\x00") && again.Message != read.Message {
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
	f.Add("\xff\x00", "\xfe", "", "a\x1fb", strings.Repeat("x", naming.MaxText+1), int32(-1))
	f.Fuzz(func(t *testing.T, message, kind, code, step, stack string, attempts int32) {
		failure := &Failure{Message: message, Type: kind, Stack: stack, Attempts: attempts}
		if utf8.ValidString(code) && utf8.ValidString(step) { // names and registered codes
			failure.Codes, failure.Step = []string{code}, step
		}
		b := failure.Encode()
		if !utf8.Valid(b) || len(b) > 20*(len(code)+len(step)+3*(naming.MaxText+10)) {
			t.Fatalf("the record has %d bytes, valid UTF-8: %v", len(b), utf8.Valid(b))
		}
		read := DecodeFailure(b)
		if read.Message != StorableText(message) || read.Attempts != attempts || !slices.Equal(read.Codes, failure.Codes) || read.Step != failure.Step {
			t.Errorf("%+v was read as %+v", failure, read)
		}
		if utf8.ValidString(message) && len(message) <= naming.MaxText && !strings.Contains(message, "\x00") && read.Message != message {
			t.Errorf("the message %q became %q", message, read.Message)
		}
	})
}

// A run's failure names several steps once each, and not more than a row should hold.
func TestFailureSteps(t *testing.T) {
	var f Failure
	for _, name := range []string{"", "a", "b", "a", "b", "c"} {
		f.AddStep(name)
	}
	if back := DecodeFailure(f.Encode()); back.Step != "a" || !slices.Equal(back.Steps, []string{"b", "c"}) {
		t.Errorf("the failure is %+v", back)
	}
	for i := range 1000 {
		f.AddStep(fmt.Sprint(i, strings.Repeat("x", 500)))
	}
	if n := len(f.Encode()); n < maxNamesSize/2 || n > 2*maxNamesSize {
		t.Errorf("the failure takes %d bytes", n)
	}
}
