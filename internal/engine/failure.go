package engine

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// These are the codes that the library gives to failures. The root package maps them to sentinel errors,
// as it does with the codes that users register.
const (
	CodePanic          = "durable.panic"
	CodeGoexit         = "durable.goexit"
	CodeOutsideStep    = "durable.outside_step"
	CodeTimeout        = "durable.timeout"
	CodeOutcomeUnknown = "durable.outcome_unknown"
	CodeRefused        = "durable.refused_by_database"
	CodeDiverged       = "durable.diverged"
	CodeCancelled      = "durable.cancelled"
	CodeTerminated     = "durable.terminated"
	CodeCompensation   = "durable.compensation_failed"
	CodeCrashLoop      = "durable.crash_loop"
)

// Failure is the recorded form of an error. The first execution and every replay see the same Failure.
type Failure struct {
	Message   string   `json:"message"`
	Type      string   `json:"type,omitempty"`  // Go type of the error, for display and metrics
	Codes     []string `json:"codes,omitempty"` // of the registered sentinel errors that it matches
	Step      string   `json:"step,omitempty"`  // for a run: the step whose error the run returned
	Attempts  int32    `json:"attempts,omitzero"`
	Stack     string   `json:"stack,omitempty"` // of a panic
	Permanent bool     `json:"permanent,omitzero"`

	State *FailedState `json:"state,omitempty"` // if the error is a *StateError

	Left      bool  `json:"-"` // the call can do nothing more; see ErrLeft
	Suspended bool  `json:"-"` // it is an ErrSuspended that the step's function got from another call of its run
	Held      error `json:"-"` // why the database did not commit a transaction whose function succeeded

	// These fields are set for a child that did not complete.
	Run      string `json:"run,omitempty"` // UUID of the child
	Workflow string `json:"workflow,omitempty"`
	Status   string `json:"status,omitempty"`
}

// FailedState is the recorded form of a StateError: the state of a run that did not allow an operation.
type FailedState struct {
	Run    string `json:"run"` // the ID or UUID that the caller used
	Verb   string `json:"verb"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// maxText is the maximum length in bytes of each text of an error in a row. The text says what happened;
// it is not meant to carry data.
const maxText = 16 << 10

// Encode returns the stored form. It replaces text that is not valid UTF-8, because the message of an
// error must never make its row unwritable.
func (f *Failure) Encode() []byte {
	clean := *f
	clean.Message, clean.Stack, clean.Type = tidy(f.Message), tidy(f.Stack), tidy(f.Type)
	b, err := json.Marshal(&clean)
	if err != nil { // cannot happen: every field is tidy text or a number
		b = []byte(`{"message":"the failure could not be encoded"}`)
	}
	return b
}

// DecodeFailure decodes the stored form. For bytes that do not decode it returns a Failure that says so.
func DecodeFailure(b []byte) *Failure {
	f := new(Failure)
	if err := json.Unmarshal(b, f); err != nil {
		return &Failure{Message: fmt.Sprintf("unreadable failure record (%d bytes): %v", len(b), err)}
	}
	return f
}

// ErrorType returns the value of the error.type attribute.
func (f *Failure) ErrorType() string {
	if f == nil {
		return ""
	}
	if len(f.Codes) > 0 {
		return f.Codes[0]
	}
	return cmp.Or(f.Type, telemetry.Other)
}

func tidy(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + " (cut)"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func panicFailure(value any, stack []byte) *Failure {
	f := &Failure{Message: "panic: " + TextOf(value), Type: fmt.Sprintf("%T", value), Codes: []string{CodePanic}, Stack: string(stack)}
	if err, ok := value.(error); ok && errors.Is(err, ErrOutsideStep) { // a retry would fail in the same way
		f.Codes, f.Permanent = append(f.Codes, CodeOutsideStep), true
	}
	return f
}

// TextOf returns the text of a value that a panic carries. The value's Error or String method may panic
// itself, for example an Error method of a nil pointer. fmt recovers from most of these panics, and TextOf
// from the others.
func TextOf(value any) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("a %T, whose text cannot be had", value)
		}
	}()
	if err, ok := value.(error); ok {
		return err.Error()
	}
	return fmt.Sprint(value)
}

func divergedKind(r *store.Run, name string, recorded, asked store.Kind) error {
	return fmt.Errorf("%w: %q in run %q of workflow %q is recorded as a %s, and the code now asks for a %s: give the new call another name, or bring back the old one",
		ErrDiverged, DisplayName(name), r.Address(), r.Workflow, recorded, asked)
}
