package store

import "bytes"

// WriteOutcome is the result of one item of a batch.
type WriteOutcome uint8

// The outcomes. The store never returns the zero value.
const (
	Written WriteOutcome = 1 // the row has the values of this write
	Adopted WriteOutcome = 2 // another write came first; the item holds its row
	Fenced  WriteOutcome = 3 // this epoch no longer owns the run, or the run is no longer running
	Locked  WriteOutcome = 4 // another transaction, perhaps one of a user, has locked a row; try again
)

// RunState is what a store reads of a run to find out why a write for it changed no row.
type RunState struct {
	Found   bool
	Status  Status
	Epoch   Epoch
	Control ControlBits
}

// The guards. Each write is one statement with its guards in SQL, which the suite in storetest compares
// with the functions below.

// IsOwnedAt reports whether the run is still running at the writer's epoch. Otherwise the write is Fenced.
func (s RunState) IsOwnedAt(epoch Epoch) bool {
	return s.Found && s.Status == Running && s.Epoch == epoch
}

// IsLive reports whether the run exists and has not ended. A run that has ended never changes.
func (s RunState) IsLive() bool { return s.Found && !s.Status.IsTerminal() }

// CancelForbidsEnd reports whether a requested cancel forbids the end status of this write: such a run can
// end only as Cancelled.
func (w *OwnershipEnd) CancelForbidsEnd(control ControlBits) bool {
	return control&CancelRequested != 0 && w.Status.IsTerminal() && w.Status != Cancelled
}

// The outcomes of writes that changed no row. A store calls Decide with the rows that it has read since. The
// model in package model has its own copy of these rules, to check them.

// OutcomeFromRows returns the outcome of a start that created no run. parent is the state of a child's parent, and existing is
// the run with the same name and parent, or nil. OutcomeFromRows returns zero if nothing prevents the start any more; then the
// caller writes it again.
func (w *StartWrite) OutcomeFromRows(parent RunState, existing *Run) WriteOutcome {
	child := w.Run.Parent.Valid
	switch {
	case existing != nil && existing.UUID == w.Run.UUID:
		return Written // the result of an earlier try was lost
	case child && !parent.IsOwnedAt(w.ParentEpoch):
		return Fenced // a superseded writer adopts nothing
	case existing != nil:
		return Adopted
	case child && parent.Control != 0:
		return Fenced
	}
	return 0
}

// OutcomeFromRows returns the outcome of a step write that changed no row. row is the step's row, or nil. OutcomeFromRows returns
// zero if the write can still be made: see NeedsSecondTry.
func (w *StepWrite) OutcomeFromRows(run RunState, row *Step) WriteOutcome {
	switch {
	case row != nil && w.AlreadyWritten(row):
		return Written // the result of an earlier try was lost
	case !run.IsOwnedAt(w.Step.Epoch):
		return Fenced
	case row != nil && row.Status.IsTerminal():
		return Adopted
	case run.Control != 0 && w.StartsChild():
		return Fenced // as the start of the child is
	case row != nil && w.OlderThan(row):
		return Written // without effect
	}
	return 0
}

// NeedsSecondTry reports whether to try the write of the step again. Call it after OutcomeFromRows has returned zero. NeedsSecondTry
// returns true if RowExists is wrong, or if the run has a pause or cancel request. A second try that ignores RowExists and
// control requests then succeeds. If NeedsSecondTry returns false, another transaction has locked the row.
func (w *StepWrite) NeedsSecondTry(run RunState, row *Step) bool {
	return run.Control != 0 || w.RowExists != (row != nil)
}

// OutcomeFromRows returns the outcome of a receive that changed no row. row is the step's row, or nil. OutcomeFromRows returns
// zero if the receive can still be made.
func (w *ReceiveWrite) OutcomeFromRows(run RunState, row *Step) WriteOutcome {
	ended := row != nil && row.Status.IsTerminal()
	switch {
	case ended && row.Epoch == w.Step.Epoch && row.Attempt == w.Step.Attempt:
		return Adopted // perhaps the result of an earlier try of this receive was lost
	case !run.IsOwnedAt(w.Step.Epoch):
		return Fenced
	case ended:
		return Adopted
	}
	return 0
}

// OutcomeFromRows returns the outcome of a run write that changed no row. run and row show the same run; if the run was not
// found, row is not read. OutcomeFromRows returns zero if the ownership can still end, by the rules of OwnershipEnd for control
// requests.
func (w *OwnershipEnd) OutcomeFromRows(run RunState, row *Run) WriteOutcome {
	switch {
	case run.Found && (w.AlreadyWritten(row) || w.wasOverruledByControl(row)):
		return Written // the result of an earlier try was lost
	case !run.IsOwnedAt(w.Epoch), w.CancelForbidsEnd(run.Control):
		return Fenced
	}
	return 0
}

// wasOverruledByControl reports whether the row has the state into which a control request turns this write.
func (w *OwnershipEnd) wasOverruledByControl(row *Run) bool {
	if w.Status.IsTerminal() || row.Epoch != w.Epoch {
		return false
	}
	switch row.Status {
	case Pending:
		return row.Control&CancelRequested != 0
	case Paused:
		return row.Control&PausedMask != 0 || w.HoldsRun
	}
	return false
}

// AlreadyWritten reports whether the row has the values of this write, by the same epoch and attempt. Then the
// write was committed before, and its result was lost.
func (w *StepWrite) AlreadyWritten(row *Step) bool {
	want := &w.Step
	return row.Epoch == want.Epoch && row.Attempt == want.Attempt && row.Status == want.Status &&
		samePayload(row.Output, want.Output) && samePayload(row.Error, want.Error)
}

// OlderThan reports whether a marker or a backoff comes too late, because the same epoch has written a
// later state since. step_update.sql has the same rule.
func (w *StepWrite) OlderThan(row *Step) bool {
	want := &w.Step
	if want.Status.IsTerminal() || row.Epoch != want.Epoch {
		return false
	}
	return row.Attempt > want.Attempt || row.Attempt == want.Attempt && row.Status > want.Status
}

// StartsChild reports whether the write is the Started row of a child. It is written together with the
// child's start, or not at all.
func (w *StepWrite) StartsChild() bool {
	return w.Step.Kind == KindChild && !w.Step.Status.IsTerminal()
}

// AlreadyWritten reports whether the row has the values of this write; see StepWrite.AlreadyWritten.
func (w *OwnershipEnd) AlreadyWritten(row *Run) bool {
	return row.Epoch == w.Epoch && row.Status == w.Status &&
		samePayload(row.Output, w.Output) && samePayload(row.Error, w.Error)
}

// samePayload reports whether two payloads are equal. A nil payload differs from an empty one.
func samePayload(l, r []byte) bool { return (l == nil) == (r == nil) && bytes.Equal(l, r) }
