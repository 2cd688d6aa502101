// Package record holds the recorded forms of what the engine decides: failures, the attempts of a step, choices,
// and how a failed run ends. The engine writes these records into the rows of checkpoints and runs. The root
// package and durabletest read them. A record that was written once is readable forever, so a field is
// never renamed.
package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// These are the codes that the library gives to failures. The root package maps them to sentinel errors, as
// it does with the codes that users register.
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
	CodeUnreadable     = "durable.unreadable"
)

// Failure is the recorded form of an error. The first execution and every replay see the same Failure.
type Failure struct {
	Message   string   `json:"message"`
	Type      string   `json:"type,omitempty"`     // Go type of the error, for display and metrics
	Codes     []string `json:"codes,omitempty"`    // of the registered sentinel errors that it matches
	Step      string   `json:"step,omitempty"`     // for a run: the step whose error the run returned
	Steps     []string `json:"steps,omitempty"`    // for a run: the others, if the error wraps those of several; see AddStep
	MoreSteps []byte   `json:"more,omitempty"`     // for a run: hashes of those for which Steps has no place
	Branches  []string `json:"branches,omitempty"` // for a run: the branches whose failures decided choices that made it fail
	Attempts  int32    `json:"attempts,omitzero"`
	Stack     string   `json:"stack,omitempty"` // of a panic
	Permanent bool     `json:"permanent,omitzero"`

	State *FailedState `json:"state,omitempty"` // if the error is a *StateError

	CauseType string `json:"-"` // for a run: the Go type of the error of the Step; it is not recorded here, but as the key of the failure

	CallIsOver  bool  `json:"-"` // the call can do nothing more; see ErrEffectInterrupted
	Suspended   bool  `json:"-"` // it is an ErrSuspended that the step's function got from another call of its run
	CommitError error `json:"-"` // why the database did not commit a transaction whose function succeeded

	moreSteps map[stepHash]bool // those in MoreSteps

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

// maxNamesSize bounds the names in Failure.Steps, and those in Failure.Branches, in bytes.
const maxNamesSize = 64 << 10

// stepHash is the beginning of the SHA-256 hash of a step's name as people see it.
type stepHash [8]byte

func hashOfStep(name string) (h stepHash) {
	sum := sha256.Sum256([]byte(name))
	copy(h[:], sum[:])
	return h
}

// AddStep adds a step whose error the run returned. Step is the first of them. Of those for which Steps has no place, MoreSteps has the hashes: a
// retry must execute all of them again.
func (f *Failure) AddStep(name string) {
	if f.Step == "" {
		f.Step = name
	}
	if name == f.Step || name == "" || slices.Contains(f.Steps, name) {
		return
	}
	if had := len(f.Steps); len(f.MoreSteps) == 0 {
		if f.Steps = addName(f.Steps, name); len(f.Steps) > had {
			return
		}
	}
	h := hashOfStep(name)
	if f.moreSteps[h] {
		return
	}
	if f.moreSteps == nil {
		f.moreSteps = make(map[stepHash]bool)
	}
	f.moreSteps[h] = true
	f.MoreSteps = append(f.MoreSteps, h[:]...)
}

// HasSteps returns a function that reports whether a step is one of those that AddStep has added. The name is as people see it.
func (f *Failure) HasSteps() func(name string) bool {
	names := map[string]bool{f.Step: true}
	for _, name := range f.Steps {
		names[name] = true
	}
	hashes := make(map[stepHash]bool, len(f.MoreSteps)/len(stepHash{}))
	for h := range slices.Chunk(f.MoreSteps, len(stepHash{})) {
		if len(h) == len(stepHash{}) {
			hashes[stepHash(h)] = true
		}
	}
	return func(name string) bool { return names[name] || len(hashes) > 0 && hashes[hashOfStep(name)] }
}

// AddBranch adds a branch whose failure decided a choice that made the run fail.
func (f *Failure) AddBranch(name string) { f.Branches = addName(f.Branches, name) }

// addName adds a name unless the names contain it or there is no place for it.
func addName(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	size := len(name)
	for _, s := range names {
		size += len(s)
	}
	if size > maxNamesSize {
		return names
	}
	return append(names, name)
}

// Encode returns the stored form. It replaces text that is not valid UTF-8, because the message of an
// error must never make its row unwritable.
func (f *Failure) Encode() []byte {
	clean := *f
	clean.Message, clean.Stack, clean.Type = StorableText(f.Message), StorableText(f.Stack), StorableText(f.Type)
	b, err := json.Marshal(&clean)
	if err != nil { // cannot happen: every field is tidy text or a number
		b = []byte(`{"message":"the failure could not be encoded"}`)
	}
	return b
}

// CheckFailureDecodable returns why this process cannot decode the stored form of a failure, or nil.
func CheckFailureDecodable(b []byte) error { return payload.Problem(b) }

// DecodeFailure decodes the stored form. For bytes that do not decode it returns a Failure that says so.
func DecodeFailure(b []byte) *Failure {
	f := new(Failure)
	if err := payload.Problem(b); err != nil {
		return &Failure{Message: err.Error(), Codes: []string{CodeUnreadable}}
	}
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
	return cmp.Or(f.Type, telemetry.OtherLabel)
}

// StorableText returns the text as a row holds it: valid UTF-8 without NUL, and cut after naming.MaxText bytes.
func StorableText(s string) string {
	if len(s) > naming.MaxText {
		s = s[:naming.MaxText] + " (cut)"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Cancelled returns the failure of a cancelled run.
func Cancelled(reason, actor string) *Failure {
	return endedBy(&Failure{Message: "cancelled", Type: "cancelled", Codes: []string{CodeCancelled}}, reason, actor)
}

// Terminated returns the failure of a terminated run.
func Terminated(reason, actor string) *Failure {
	return endedBy(&Failure{Message: "terminated", Type: "terminated", Codes: []string{CodeTerminated, CodeCancelled}}, reason, actor)
}

func endedBy(f *Failure, reason, actor string) *Failure {
	if actor != "" {
		f.Message += " by " + actor
	}
	if reason != "" {
		f.Message += ": " + reason
	}
	return f
}
