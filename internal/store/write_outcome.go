package store

import "bytes"

// WriteOutcome tells what a store did with one item of a batch.
type WriteOutcome uint8

// The outcomes. The store never returns the zero value.
const (
	Written         WriteOutcome = 1 // the row has the values of this write
	AlreadyRecorded WriteOutcome = 2 // another write came first; the item holds its row
	Fenced          WriteOutcome = 3 // this epoch no longer owns the run, or the run is no longer running
	Locked          WriteOutcome = 4 // another transaction, perhaps one of a user, has locked a row; try again
)

// RunState holds what a store reads from a run's row to find out why a write for the run changed no row.
type RunState struct {
	Found   bool
	Status  Status
	Epoch   Epoch
	Control ControlBits
}

// The guards. Each write is one statement with its guards in SQL, which the suite in storetest compares
// with the functions below.

// IsOwnedAt reports whether the run is still running at the writer's epoch. If IsOwnedAt returns false, the write is Fenced.
func (s RunState) IsOwnedAt(epoch Epoch) bool {
	return s.Found && s.Status == Running && s.Epoch == epoch
}

// IsLive reports whether the run exists and has not ended. A run that has ended never changes.
func (s RunState) IsLive() bool { return s.Found && !s.Status.IsTerminal() }

// CancelForbidsEnd reports whether a requested cancel forbids the final status of this write. A run whose cancel was requested can end only
// as Cancelled.
func (w *OwnershipEnd) CancelForbidsEnd(control ControlBits) bool {
	return control&CancelRequested != 0 && w.Status.IsTerminal() && w.Status != Cancelled
}

// The outcomes of writes that changed no row. A store calls OutcomeFromRows with the rows that it has read after the write. The model
// in package model has its own copy of these rules, to check them.

// OutcomeFromRows returns the outcome of a start that created no run. The argument parent is the state of a child's parent; existing is the
// run with the same name and parent, or nil. OutcomeFromRows returns zero if nothing prevents the start any more; the caller then writes
// the start again.
func (w *StartWrite) OutcomeFromRows(parent RunState, existing *Run) WriteOutcome {
	child := w.Run.Parent.Valid
	switch {
	case existing != nil && existing.UUID == w.Run.UUID:
		return Written // the result of an earlier try was lost
	case child && !parent.IsOwnedAt(w.ParentEpoch):
		return Fenced // a writer that no longer owns the parent does not adopt the existing child
	case existing != nil:
		return AlreadyRecorded
	case child && parent.Control != 0:
		return Fenced
	}
	return 0
}

// OutcomeFromRows returns the outcome of a step write that changed no row. The argument row is the step's row, or nil. OutcomeFromRows
// returns zero if the store can still write the step; see NeedsSecondTry.
func (w *StepWrite) OutcomeFromRows(run RunState, row *Step) WriteOutcome {
	switch {
	case row != nil && w.AlreadyWritten(row):
		return Written // the result of an earlier try was lost
	case !run.IsOwnedAt(w.Step.Epoch):
		return Fenced
	case row != nil && row.Status.IsTerminal():
		return AlreadyRecorded
	case run.Control != 0 && w.StartsChild():
		return Fenced // as the start of the child is Fenced
	case row != nil && w.OlderThan(row):
		return Written // the write is older than the row, and has no effect
	}
	return 0
}

// NeedsSecondTry reports whether the store should try to write the step again. Call NeedsSecondTry after OutcomeFromRows has returned zero.
// NeedsSecondTry returns true if RowExists is wrong, or if the run has a pause or cancel request. In both cases, a second try that ignores
// RowExists and control requests succeeds. If NeedsSecondTry returns false, another transaction has locked the step's row.
func (w *StepWrite) NeedsSecondTry(run RunState, row *Step) bool {
	return run.Control != 0 || w.RowExists != (row != nil)
}

// OutcomeFromRows returns the outcome of a receive that changed no row. The argument row is the step's row, or nil. OutcomeFromRows returns
// zero if the store can still write the receive.
func (w *ReceiveWrite) OutcomeFromRows(run RunState, row *Step) WriteOutcome {
	ended := row != nil && row.Status.IsTerminal()
	switch {
	case ended && row.Epoch == w.Step.Epoch && row.Attempt == w.Step.Attempt:
		return AlreadyRecorded // perhaps the result of an earlier try of this receive was lost
	case !run.IsOwnedAt(w.Step.Epoch):
		return Fenced
	case ended:
		return AlreadyRecorded
	}
	return 0
}

// OutcomeFromRows returns the outcome of an OwnershipEnd that changed no row. The arguments run and row describe the same run; if the run
// was not found, OutcomeFromRows does not read row. OutcomeFromRows returns zero if the ownership can still end, by the rules of
// OwnershipEnd for control requests.
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

// AlreadyWritten reports whether the row has the values of this write, by the same epoch and attempt. If AlreadyWritten returns true, the
// write was committed before, and its result was lost.
func (w *StepWrite) AlreadyWritten(row *Step) bool {
	want := &w.Step
	return row.Epoch == want.Epoch && row.Attempt == want.Attempt && row.Status == want.Status &&
		samePayload(row.Output, want.Output) && samePayload(row.Error, want.Error)
}

// OlderThan reports whether a started marker or a backoff comes too late, because the same epoch has already written a later state of the
// step. The statement step_update.sql contains the rule of OlderThan too.
func (w *StepWrite) OlderThan(row *Step) bool {
	want := &w.Step
	if want.Status.IsTerminal() || row.Epoch != want.Epoch {
		return false
	}
	return row.Attempt > want.Attempt || row.Attempt == want.Attempt && row.Status > want.Status
}

// StartsChild reports whether the write is the row that records the start of a child. A store writes this row together with the child's
// start, or not at all.
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
