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

// Codes that the library itself gives to failures. The root package maps them, and
// those that users register, to sentinel errors.
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

// Failure is an error as it is recorded: what the first execution and every replay
// see alike.
type Failure struct {
	Message   string   `json:"message"`
	Type      string   `json:"type,omitempty"`  // Go type of the error, for people and metrics
	Codes     []string `json:"codes,omitempty"` // of the registered sentinels that it matches
	Step      string   `json:"step,omitempty"`  // of a run: the step whose error it returned
	Attempts  int32    `json:"attempts,omitzero"`
	Stack     string   `json:"stack,omitempty"` // of a panic
	Permanent bool     `json:"permanent,omitzero"`

	State *FailedState `json:"state,omitempty"` // of a *StateError

	Left      bool  `json:"-"` // the call can do nothing any more; see ErrLeft
	Suspended bool  `json:"-"` // it is ErrSuspended, which a step's function met in a call of its run
	Held      error `json:"-"` // of a transaction whose function did not fail: why the database did not take it

	// Of a child that did not complete.
	Run      string `json:"run,omitempty"` // its UUID
	Workflow string `json:"workflow,omitempty"`
	Status   string `json:"status,omitempty"`
}

// FailedState is the state of a run that did not go with what was asked of it.
type FailedState struct {
	Run    string `json:"run"` // as it was addressed
	Verb   string `json:"verb"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// maxText bounds what an error may add to a row: the text tells what happened, and
// is no channel for data.
const maxText = 16 << 10

// Encode is the stored form. Text that is not valid UTF-8 is replaced: an error's
// words must never make its row unwritable.
func (f *Failure) Encode() []byte {
	clean := *f
	clean.Message, clean.Stack, clean.Type = tidy(f.Message), tidy(f.Stack), tidy(f.Type)
	b, err := json.Marshal(&clean)
	if err != nil { // every field is tidy text or a number
		b = []byte(`{"message":"the failure could not be encoded"}`)
	}
	return b
}

// DecodeFailure reads the stored form. What does not decode is shown, not lost.
func DecodeFailure(b []byte) *Failure {
	f := new(Failure)
	if err := json.Unmarshal(b, f); err != nil {
		return &Failure{Message: fmt.Sprintf("unreadable failure record (%d bytes): %v", len(b), err)}
	}
	return f
}

// ErrorType is the value of the error.type attribute.
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
	if err, ok := value.(error); ok && errors.Is(err, ErrOutsideStep) { // another attempt would only meet it again
		f.Codes, f.Permanent = append(f.Codes, CodeOutsideStep), true
	}
	return f
}

// TextOf is the text of a value that a panic carries. Its own method for that may panic
// too (an Error on a nil pointer), which fmt survives for all but runtime errors.
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
		ErrDiverged, Shown(name), r.Address(), r.Workflow, recorded, asked)
}
