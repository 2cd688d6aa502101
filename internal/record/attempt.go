package record

import (
	"encoding/json/v2"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/payload"
	"github.com/seed8ec063be/durable/internal/store"
)

// FailedAttempt is the record of an attempt that failed or was interrupted.
type FailedAttempt struct {
	Attempt     int32     `json:"attempt"`
	Worker      string    `json:"worker,omitempty"` // the worker's name
	WorkerID    string    `json:"worker_id,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`     // zero if the process died, or if the run was lost to another execution
	NextAt      time.Time `json:"next_at,omitzero"`      // when the attempt after it was due
	Interrupted bool      `json:"interrupted,omitzero"`  // the attempt was cut off and did not fail
	Error       *Failure  `json:"error,omitzero"`        // nil if the attempt was interrupted
	AtMostOnce  bool      `json:"at_most_once,omitzero"` // only in Failures.Open: the attempt is of an at-most-once step
}

// Failures is the record of the failed and interrupted attempts of one step, in store.Step.Failures. A
// step that succeeds at its first attempt has no such record. The row of a child has no attempts; its
// record only holds the child's workflow and generation.
type Failures struct {
	First *FailedAttempt `json:"first,omitzero"`
	Last  *FailedAttempt `json:"last,omitzero"` // nil if only one attempt failed
	// Open is the attempt in progress, in the row of a started marker. If another execution finds the row
	// in this state, the attempt was interrupted.
	Open *FailedAttempt `json:"open,omitzero"`
	// Workflow is the workflow of the child, in the row of a child. A replay must start a child of the
	// same workflow.
	Workflow string `json:"workflow,omitempty"`
	// Generation is the generation of the run that started the child, in the row of a child. The first generation is left out.
	Generation int32 `json:"generation,omitzero"`
	// Detached says that the child is detached, in the row of a child. The code may not make the call any more, which says the same.
	Detached bool `json:"detached,omitzero"`
}

// ChildUUID returns the UUID of the child that the call of a row of the parent started.
func ChildUUID(parent uuid.UUID, row *store.Step) uuid.UUID {
	f := DecodeFailures(row)
	return f.ChildUUID(parent, row)
}

// ChildUUID does the same as the function ChildUUID, for the decoded record of the row.
func (f *Failures) ChildUUID(parent uuid.UUID, row *store.Step) uuid.UUID {
	return store.ChildUUID(parent, row.Name, row.StartedAt, max(1, f.Generation))
}

// DecodeFailures decodes the record of a row. The row itself holds the error of the last attempt while there
// is one, and DecodeFailures adds it. For a record that does not decode it returns an empty one, because the
// record is mostly for display.
func DecodeFailures(s *store.Step) (f Failures) {
	if len(s.Failures) == 0 || json.Unmarshal(s.Failures, &f) != nil {
		return Failures{}
	}
	if last := f.Latest(); last != nil && last.Error == nil && !last.Interrupted && len(s.Error) > 0 {
		last.Error = DecodeFailure(s.Error)
	}
	return f
}

// IsUnknownOnce reports whether the row is the started marker of an attempt of an at-most-once step: whether the attempt took effect is not
// known, unless it is in progress. A record that cannot be decoded may be one.
func IsUnknownOnce(s *store.Step) bool {
	if s.Status != store.StepStarted || s.Kind != store.KindStep && s.Kind != store.KindTx || len(s.Failures) == 0 {
		return false
	}
	if payload.Problem(s.Failures) != nil {
		return true
	}
	open := DecodeFailures(s).Open
	return open != nil && open.AtMostOnce
}

// Latest returns the last attempt that failed or was interrupted, or nil if there is none.
func (f *Failures) Latest() *FailedAttempt {
	if f.Last != nil {
		return f.Last
	}
	return f.First
}

// Add adds an attempt that failed or was interrupted.
func (f *Failures) Add(a *FailedAttempt) {
	if f.First == nil {
		f.First = a
	} else {
		f.Last = a
	}
}

// Encode returns the record, or nil if it would be empty. If rowHasError is true, the row holds the error of
// the last attempt, and the record omits it.
func (f Failures) Encode(rowHasError bool) []byte {
	if f.First == nil && f.Open == nil {
		return nil
	}
	f.First = f.First.stored(rowHasError && f.Last == nil)
	f.Last = f.Last.stored(rowHasError)
	b, err := json.Marshal(&f)
	if err != nil {
		return nil // cannot happen: the record holds tidy text and numbers
	}
	return b
}

// mostFailureText is the maximum length in bytes of an error's message in the record.
const mostFailureText = 2 << 10

func (a *FailedAttempt) stored(bare bool) *FailedAttempt {
	if a == nil {
		return nil
	}
	own := *a
	if bare {
		own.Error = nil
	} else if a.Error != nil {
		f := *a.Error
		f.Stack = "" // the stack is in the log
		if f.Message = StorableText(f.Message); len(f.Message) > mostFailureText {
			f.Message = StorableText(f.Message[:mostFailureText]) + " (cut)"
		}
		f.Type = StorableText(f.Type)
		own.Error = &f
	}
	return &own
}
