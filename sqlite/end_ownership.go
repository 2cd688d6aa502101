package sqlite

import (
	"cmp"
	"database/sql/driver"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// writeOwnershipEnd ends an ownership of a run. Its first try changes no row if the run has a control request or a wake that changes
// the end.
func writeOwnershipEnd(x *writeTx, w *store.OwnershipEnd) error {
	w.Outcome, w.RunState = store.Written, store.RunState{}
	if w.HoldsRun {
		return holdRejectedRun(x, w)
	}
	control, woken := controlBitsBlockingEnd(w)
	n, err := endOwnership(x, w, control, woken)
	if err != nil {
		return err
	}
	if n == 0 {
		return resolveUnwrittenOwnershipEnd(x, w)
	}
	if w.Status == store.Paused { // paused without a control request
		if err := markPaused(x, w); err != nil {
			return err
		}
	}
	return announceOwnershipEnd(x, w, w.Status, store.ActorAndReason{}, "")
}

// markPaused marks a run that was paused without a control request, so that it can be resumed.
func markPaused(x *writeTx, w *store.OwnershipEnd) error {
	n, err := x.exec(qRunMarkPausedItself, bindTime(ownershipEndTime(w)), bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.EncodeInt64())
	return checkOneRow("setting aside run", w.UUID, n, err)
}

// controlBitsBlockingEnd returns the control bits, and the mark of a wake, that would change this end of an ownership.
func controlBitsBlockingEnd(w *store.OwnershipEnd) (control, woken int64) {
	switch {
	case w.CancelForbidsEnd(store.CancelRequested):
		return int64(store.CancelRequested), noControlBits
	case w.Status.IsTerminal():
		return noControlBits, noControlBits
	case w.Status == store.Waiting:
		return allControlBits, allControlBits
	}
	return allControlBits, noControlBits
}

// endOwnership writes the end of an ownership, unless one of the control bits is set on the run, or one of the woken
// bits.
func endOwnership(x executor, w *store.OwnershipEnd, control, woken int64) (int64, error) {
	var failedStep, failedType driver.Value
	if w.HasFailed() {
		failedStep, failedType = w.FailedStep, w.FailedType
	}
	return x.exec(
		qRunEndOwnership, int64(w.Status), bindBytes(w.Output), bindBytes(w.Error), bindText(w.HoldReason), int64(w.Status), bindText(w.Trace),
		bindTime(w.WakeAt), bindTime(w.EndedAt), failedStep, failedType, bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.EncodeInt64(), control, woken,
	)
}

// resolveUnwrittenOwnershipEnd handles the end of an ownership that changed no row. Either the write has its outcome without another
// try, or a control request or a wake came first and determines how the ownership ends.
func resolveUnwrittenOwnershipEnd(x *writeTx, w *store.OwnershipEnd) error {
	row, decided, err := decideOwnershipEndOutcome(x, w)
	if err != nil || decided {
		return err
	}
	if row.Control != 0 {
		w.RunState = store.RunState{Found: true, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	}
	end := withControlRequestsApplied(w, &row)
	if n, err := endOwnership(x, &end, noControlBits, noControlBits); err != nil || n != 1 {
		return checkOneRow("ending an ownership of run", w.UUID, n, err)
	}
	if end.Status == store.Paused && row.Control&store.PausedMask == 0 { // the bits that are set are no requests
		if err := markPaused(x, w); err != nil {
			return err
		}
	}
	return announceOwnershipEnd(x, &end, end.Status, w.PauseActorAndReason(row.Control, row.PausedBy, row.PauseOrHoldReason), "")
}

// decideOwnershipEndOutcome reads the run, sets the outcome of the write, and reports whether the outcome is decided. If it is not,
// the outcome is Written, and the caller still has to write.
func decideOwnershipEndOutcome(x executor, w *store.OwnershipEnd) (row runRow, decided bool, err error) {
	row, found, err := runByUUID(x, w.UUID, store.AllPayloads)
	if err != nil {
		return row, false, err
	}
	state := store.RunState{Found: found, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	switch w.Outcome = w.OutcomeFromRows(state, &row.Run); w.Outcome {
	case store.Fenced:
		w.RunState = state
	case 0:
		w.Outcome = store.Written
		return row, false, nil
	}
	return row, true, nil
}

// withControlRequestsApplied returns the write with the changes that the control requests and the wakes of the run demand.
func withControlRequestsApplied(w *store.OwnershipEnd, row *runRow) store.OwnershipEnd {
	end := *w
	switch {
	case w.Status.IsTerminal():
	case row.Control&store.CancelRequested != 0 && !w.CancelBegun:
		end.Status, end.WakeAt = store.Pending, ownershipEndTime(w)
	case row.Control&store.PausedMask != 0:
		end.Status, end.WakeAt = store.Paused, time.Time{}
		end.HoldReason = cmp.Or(row.PauseOrHoldReason, w.HoldReason) // the reason of the pause
	case row.woken && w.Status == store.Waiting:
		end.WakeAt = ownershipEndTime(w)
	}
	return end
}

// heldRunUpdate has the new values in the row of a held run.
type heldRunUpdate struct {
	status              store.Status
	control             store.ControlBits
	reason              string
	wakeAt              time.Time
	pausedAt            time.Time
	crashes             int16
	progressAtLastCrash int64
}

// holdRejectedRun releases or pauses a run whose writes the database rejects.
func holdRejectedRun(x *writeTx, w *store.OwnershipEnd) error {
	row, decided, err := decideOwnershipEndOutcome(x, w)
	if err != nil || decided {
		return err
	}
	if w.Divergence != nil {
		return holdRunForDrift(x, w, &row)
	}
	h := holdUpdateForPause(w, &row)
	if row.Control&store.PausedMask == 0 {
		reached, err := readProgress(x, w.UUID)
		if err != nil {
			return err
		}
		h = holdUpdateForCrash(w, &row, reached)
	}
	n, err := x.exec(
		qRunHoldAfterRejectedWrite, int64(h.status), int64(h.control), bindTime(h.wakeAt), h.reason, bindTime(h.pausedAt),
		int64(h.crashes), h.progressAtLastCrash, bindText(w.Trace), bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.EncodeInt64(),
	)
	if err != nil || n != 1 {
		return checkOneRow("holding run", w.UUID, n, err)
	}
	w.RunState = store.RunState{Found: true, Status: h.status, Epoch: w.Epoch, Control: h.control}
	end := *w
	end.WakeAt = h.wakeAt
	return announceOwnershipEnd(x, &end, h.status, w.PauseActorAndReason(row.Control, row.PausedBy, row.PauseOrHoldReason), eventHoldReason(&row, h.reason))
}

// holdUpdateForPause returns the update of a held run whose pause was requested: the run is paused, and no crash is counted.
func holdUpdateForPause(w *store.OwnershipEnd, row *runRow) heldRunUpdate {
	return heldRunUpdate{
		status: store.Paused, control: row.Control, reason: cmp.Or(row.PauseOrHoldReason, w.HoldReason), // the reason of the pause
		crashes: row.Crashes, progressAtLastCrash: row.progressAtLastCrash,
	}
}

// holdUpdateForCrash returns the update of any other held run. It counts a crash, unless the write has NotCountedAsCrash. The run becomes
// claimable later, or is paused if it has reached MaxCrashes. The argument reached is its progress; see run_progress.sql.
func holdUpdateForCrash(w *store.OwnershipEnd, row *runRow, reached int64) heldRunUpdate {
	if w.NotCountedAsCrash {
		return heldRunUpdate{
			status: store.Pending, control: row.Control, reason: w.HoldReason, wakeAt: store.HoldUntilAfterCrash(w, ownershipEndTime(w), 0, row.Deadline),
			crashes: row.Crashes, progressAtLastCrash: row.progressAtLastCrash,
		}
	}
	crashes := row.Crashes
	if reached > row.progressAtLastCrash {
		crashes = 0
	}
	crashes = min(crashes, math.MaxInt16-1) + 1
	h := heldRunUpdate{status: store.Pending, control: row.Control, reason: w.HoldReason, crashes: crashes, progressAtLastCrash: reached}
	if w.MaxCrashes > 0 && int(crashes) >= w.MaxCrashes {
		h.status, h.control, h.pausedAt = store.Paused, row.Control|store.PausedItself, ownershipEndTime(w)
		h.reason = store.HeldTooOftenReason(w.HoldReason, crashes)
		return h
	}
	h.wakeAt = store.HoldUntilAfterCrash(w, ownershipEndTime(w), crashes, row.Deadline)
	return h
}

// eventHoldReason returns the reason of a hold for the event of the run. If a pause was requested, the event has the reason of the pause
// instead.
func eventHoldReason(row *runRow, reason string) string {
	if row.Control&store.PausedMask != 0 {
		return ""
	}
	return reason
}

// writeOwnershipEndEvent writes the event of a run that is paused or has ended.
func writeOwnershipEndEvent(x executor, w *store.OwnershipEnd, status store.Status, pause store.ActorAndReason, holdReason string) error {
	switch {
	case status < store.Paused:
		return nil
	case status == store.Cancelled:
		return writeCancelledEvent(x, w.UUID, ownershipEndTime(w))
	case status != store.Paused:
		pause = store.ActorAndReason{}
	}
	pause.At = ownershipEndTime(w)
	return writeEventWithActor(x, &pause, &store.Event{Type: store.EventTypeOfStatus(status), Run: w.UUID, NewValue: holdReason})
}

// announceOwnershipEnd adds the hint and the event for the end of an ownership, and wakes the parent if the run has ended. The argument
// pause has the actor and the reason of the pause, if the run is paused. The argument holdReason tells why it is held, if nobody requested the
// pause.
func announceOwnershipEnd(x *writeTx, w *store.OwnershipEnd, status store.Status, pause store.ActorAndReason, holdReason string) error {
	if status == store.Pending || status == store.Waiting && !w.WakeAt.IsZero() {
		x.addHint(store.HintClaim)
	}
	if err := writeOwnershipEndEvent(x, w, status, pause, holdReason); err != nil {
		return err
	}
	if !status.IsTerminal() || !w.ParentToWake.Valid {
		return nil
	}
	if w.CountingCall != "" {
		if waits, err := countChildEnd(x, w); err != nil || waits {
			return err
		}
	}
	return wakeRun(x, w.ParentToWake.UUID, ownershipEndTime(w))
}

// ownershipEndTime returns the time of the write, or the present time if the write has none.
func ownershipEndTime(w *store.OwnershipEnd) time.Time {
	switch {
	case !w.Now.IsZero():
		return w.Now
	case !w.EndedAt.IsZero():
		return w.EndedAt
	}
	return now()
}

// wakeRun wakes a run that is waiting or running, so that it checks what it waits for. Runs with another status check
// that when they are claimed.
func wakeRun(x *writeTx, run uuid.UUID, at time.Time) error {
	status, err := queryStatus(x, qRunWake, bindTime(at), bindShard(run), bindUUID(run))
	switch status {
	case store.Waiting:
		x.addHint(store.HintClaim)
	case store.Running:
		x.addHint(store.HintOwnedRunChange)
	}
	return err
}
