package engine

import (
	"encoding/json/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// FailedAttempt is what is kept of an attempt that failed or was interrupted.
type FailedAttempt struct {
	Attempt     int32     `json:"attempt"`
	Worker      string    `json:"worker,omitempty"` // its name
	WorkerID    string    `json:"worker_id,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`    // zero if its process died, or lost the run
	Interrupted bool      `json:"interrupted,omitzero"` // it did not fail: it was cut off
	Error       *Failure  `json:"error,omitzero"`       // nil if it was interrupted
}

// Failures is the record of the attempts of one step that failed or were interrupted, in
// store.Step.Failures. A step that succeeds at first has none. A child's row has no attempts, and keeps its workflow there.
type Failures struct {
	First *FailedAttempt `json:"first,omitzero"`
	Last  *FailedAttempt `json:"last,omitzero"` // nil if it is the first one
	// Open is the attempt that is under way, in the row of a started marker. If the row is found so by
	// another execution, that attempt was interrupted.
	Open *FailedAttempt `json:"open,omitzero"`
	// Workflow is the child's, in the row of a child: its replay must be of the same one.
	Workflow string `json:"workflow,omitempty"`
}

// FailuresOf reads the record of a row, with the error of the last attempt, which is the row's own while
// there is one. A record that cannot be read is passed over: it is for people only.
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

// Latest is the last attempt that failed or was interrupted, nil if none was.
func (f *Failures) Latest() *FailedAttempt { return f.last() }

func (f *Failures) add(a *FailedAttempt) {
	if f.First == nil {
		f.First = a
	} else {
		f.Last = a
	}
}

// encodeFailures returns the record for the task's row, nil if there is nothing to tell; with the attempt under way, if
// the row is its marker. If the row has the error of the last attempt itself, the record leaves it out.
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
		return nil // tidy text and numbers are always encoded
	}
	return b
}

// mostFailureText bounds an error's text in the record.
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
		f.Stack = "" // it is in the log
		if f.Message = tidy(f.Message); len(f.Message) > mostFailureText {
			f.Message = tidy(f.Message[:mostFailureText]) + " (cut)"
		}
		f.Type = tidy(f.Type)
		own.Error = &f
	}
	return &own
}

// currently is the task's attempt under way.
func (t *task) currently() *FailedAttempt {
	return &FailedAttempt{Attempt: t.attempt, Worker: t.r.e.cfg.Name, WorkerID: t.r.w.id.String(), StartedAt: t.began}
}

// resume takes over what the row tells of the attempts before.
func (t *task) resume(row *store.Step) {
	t.attempt, t.first, t.exists, t.seq = row.Attempt+1, row.StartedAt, true, row.Seq
	failures := FailuresOf(row)
	open := failures.Open
	failures.Open = nil
	t.failures = &failures
	if row.Status != store.StepStarted {
		return
	}
	if open == nil || open.Attempt != row.Attempt { // the marker of an older version
		open = &FailedAttempt{Attempt: row.Attempt}
	}
	open.Interrupted = true
	t.failures.add(open)
}

// failedAt notes that the attempt under way has failed, or was interrupted if f is nil.
func (t *task) failedAt(now time.Time, f *Failure) {
	a := t.currently()
	a.EndedAt, a.Error, a.Interrupted = now, f, f == nil
	if t.failures == nil {
		t.failures = new(Failures)
	}
	t.failures.add(a)
}
