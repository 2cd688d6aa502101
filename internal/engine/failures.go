package engine

import (
	"encoding/json/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// FailedAttempt is the record of an attempt that failed or was interrupted.
type FailedAttempt struct {
	Attempt     int32     `json:"attempt"`
	Worker      string    `json:"worker,omitempty"` // the worker's name
	WorkerID    string    `json:"worker_id,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`    // zero if the process died, or if the run was lost to another execution
	Interrupted bool      `json:"interrupted,omitzero"` // the attempt was cut off and did not fail
	Error       *Failure  `json:"error,omitzero"`       // nil if the attempt was interrupted
}

// Failures is the record of the failed and interrupted attempts of one step, in store.Step.Failures. A
// step that succeeds at its first attempt has no such record. The row of a child has no attempts; its
// record only holds the child's workflow.
type Failures struct {
	First *FailedAttempt `json:"first,omitzero"`
	Last  *FailedAttempt `json:"last,omitzero"` // nil if only one attempt failed
	// Open is the attempt in progress, in the row of a started marker. If another execution finds the row
	// in this state, the attempt was interrupted.
	Open *FailedAttempt `json:"open,omitzero"`
	// Workflow is the workflow of the child, in the row of a child. A replay must start a child of the
	// same workflow.
	Workflow string `json:"workflow,omitempty"`
}

// FailuresOf decodes the record of a row. The row itself holds the error of the last attempt while there
// is one, and FailuresOf adds it. For a record that does not decode it returns an empty one, because the
// record is mostly for display.
func FailuresOf(s *store.Step) (f Failures) {
	if len(s.Failures) == 0 || json.Unmarshal(s.Failures, &f) != nil {
		return Failures{}
	}
	if last := f.last(); last != nil && last.Error == nil && !last.Interrupted && len(s.Error) > 0 {
		last.Error = DecodeFailure(s.Error)
	}
	return f
}

func (f *Failures) last() *FailedAttempt {
	if f.Last != nil {
		return f.Last
	}
	return f.First
}

// Latest returns the last attempt that failed or was interrupted, or nil if there is none.
func (f *Failures) Latest() *FailedAttempt { return f.last() }

func (f *Failures) add(a *FailedAttempt) {
	if f.First == nil {
		f.First = a
	} else {
		f.Last = a
	}
}

// encodeFailures returns the record for the task's row, or nil if it would be empty. If open is true, the
// row is a started marker, and the record includes the attempt in progress. If rowHasError is true, the
// row holds the error of the last attempt, and the record omits it.
func (t *task) encodeFailures(open, rowHasError bool) []byte {
	var f Failures
	if t.failures != nil {
		f = *t.failures
	}
	if open {
		f.Open = t.currently()
	}
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
		if f.Message = tidy(f.Message); len(f.Message) > mostFailureText {
			f.Message = tidy(f.Message[:mostFailureText]) + " (cut)"
		}
		f.Type = tidy(f.Type)
		own.Error = &f
	}
	return &own
}

// currently returns the record of the attempt in progress.
func (t *task) currently() *FailedAttempt {
	return &FailedAttempt{Attempt: t.attempt, Worker: t.r.e.cfg.Name, WorkerID: t.r.w.id.String(), StartedAt: t.began}
}

// resume initializes the task from the row that earlier attempts have left.
func (t *task) resume(row *store.Step) {
	t.attempt, t.first, t.exists, t.seq = row.Attempt+1, row.StartedAt, true, row.Seq
	failures := FailuresOf(row)
	open := failures.Open
	failures.Open = nil
	t.failures = &failures
	if row.Status != store.StepStarted {
		return
	}
	if open == nil || open.Attempt != row.Attempt { // the started marker of an older version
		open = &FailedAttempt{Attempt: row.Attempt}
	}
	open.Interrupted = true
	t.failures.add(open)
}

// failedAt notes that the attempt in progress has failed, or was interrupted if f is nil.
func (t *task) failedAt(now time.Time, f *Failure) {
	a := t.currently()
	a.EndedAt, a.Error, a.Interrupted = now, f, f == nil
	if t.failures == nil {
		t.failures = new(Failures)
	}
	t.failures.add(a)
}
