package record

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestFailuresKeepFirstAndLast checks that the record holds the first and the last failed attempt, and that the
// error of the last is read from the row while the row holds it.
func TestFailuresKeepFirstAndLast(t *testing.T) {
	var f Failures
	if b := f.Encode(false); b != nil {
		t.Errorf("the record of no failures is %s", b)
	}
	for i, message := range []string{"one", "two", "three"} {
		f.Add(&FailedAttempt{Attempt: int32(i) + 1, Error: &Failure{Message: message, Stack: "a stack"}})
	}
	for _, rowHasError := range []bool{false, true} {
		row := &store.Step{Failures: f.Encode(rowHasError), Error: (&Failure{Message: "three"}).Encode()}
		if strings.Contains(string(row.Failures), "three") == rowHasError {
			t.Errorf("the row holds the last error: %v, and the record is %s", rowHasError, row.Failures)
		}
		read := DecodeFailures(row)
		if read.First.Error.Message != "one" || read.First.Error.Stack != "" || read.Latest().Attempt != 3 || read.Latest().Error.Message != "three" {
			t.Errorf("read %+v, then %+v", read.First, read.Latest())
		}
	}
	if f.First.Error.Stack == "" {
		t.Error("the encoding has changed the attempt itself")
	}
}

// TestFailuresAreBounded checks that a message of any length and content leaves the record small and readable.
func TestFailuresAreBounded(t *testing.T) {
	var f Failures
	f.Add(&FailedAttempt{Attempt: 1, Error: &Failure{Message: strings.Repeat("é\x00\xff", naming.MaxText)}})
	b := f.Encode(false)
	if read := DecodeFailures(&store.Step{Failures: b}); len(b) > 4*mostFailureText || read.First == nil || !strings.HasSuffix(read.First.Error.Message, "(cut)") {
		t.Errorf("the record has %d bytes, and was read as %+v", len(b), read.First)
	}
}

// TestUnreadableFailures checks that a record which does not decode is read as an empty one.
func TestUnreadableFailures(t *testing.T) {
	for _, b := range []string{"{", "[]", `{"first":1}`} {
		if f := DecodeFailures(&store.Step{Failures: []byte(b)}); !reflect.DeepEqual(f, Failures{}) {
			t.Errorf("%q was read as %+v", b, f)
		}
	}
}

// TestEndingRoundTrip checks that an ending is read as it was written, and that other bytes are an empty one.
func TestEndingRoundTrip(t *testing.T) {
	made := Ending{Status: "expired", Compensations: []string{"a/b", "c"}}
	if read := DecodeEnding(made.Encode()); !reflect.DeepEqual(read, made) {
		t.Errorf("%+v was read as %+v", made, read)
	}
	if read := DecodeEnding([]byte(`{"status":"expired","compensations":1}`)); !reflect.DeepEqual(read, Ending{}) {
		t.Errorf("unreadable bytes were read as %+v", read)
	}
}
