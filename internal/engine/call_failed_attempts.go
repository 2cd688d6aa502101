package engine

import (
	"time"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// encodeFailedAttempts returns the record of the failed attempts for the task's row, or nil if it would be empty.
// If open is true, the row is a started marker, and the record includes the attempt in progress. If
// rowHasError is true, the row holds the error of the last attempt, and the record omits it.
func (t *stepTask) encodeFailedAttempts(open, rowHasError bool) []byte {
	var f record.Failures
	if t.failures != nil {
		f = *t.failures
	}
	if open {
		f.Open = t.newAttemptRecord()
		f.Open.AtMostOnce = t.spec.AtMostOnce
	}
	return f.Encode(rowHasError)
}

// newAttemptRecord returns the record of the attempt in progress.
func (t *stepTask) newAttemptRecord() *record.FailedAttempt {
	return &record.FailedAttempt{Attempt: t.attempt, Worker: t.r.e.cfg.Name, WorkerID: t.r.w.id.String(), StartedAt: t.attemptBegan}
}

// initFromRow initializes the task from the row that earlier attempts have written.
func (t *stepTask) initFromRow(row *store.Step) {
	t.attempt, t.firstBegan, t.hasRow, t.seq = row.Attempt+1, row.StartedAt, true, row.Seq
	failures := record.DecodeFailures(row)
	open := failures.Open
	failures.Open = nil
	t.failures = &failures
	if row.Status != store.StepStarted {
		return
	}
	if open == nil || open.Attempt != row.Attempt { // the started marker of an older version
		open = &record.FailedAttempt{Attempt: row.Attempt}
	}
	open.Interrupted, open.AtMostOnce = true, false
	t.failures.Add(open)
}

// noteFailedAttempt notes that the attempt in progress has failed or, if f is nil, was interrupted. The argument next is when the next attempt
// is due; zero means at once, or never.
func (t *stepTask) noteFailedAttempt(now time.Time, f *record.Failure, next time.Time) {
	a := t.newAttemptRecord()
	a.EndedAt, a.Error, a.Interrupted, a.NextAt = now, f, f == nil, next.Truncate(time.Microsecond)
	if t.failures == nil {
		t.failures = new(record.Failures)
	}
	t.failures.Add(a)
}
