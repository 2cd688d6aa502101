package sqlite

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeRun(x *writeTx, w *store.RunWrite) error {
	w.Outcome, w.State = store.Written, store.RunState{}
	if w.Held {
		return holdRun(x, w)
	}
	asked, woken := blockedByControl, ignoreControl
	switch w.Status {
	case store.Completed, store.Failed, store.Expired:
		asked = int64(store.CancelRequested)
	case store.Cancelled:
		asked = ignoreControl
	case store.Waiting:
		woken = blockedByControl
	}
	n, err := endOwnership(x, w, asked, woken)
	if err != nil {
		return err
	}
	if n == 0 {
		return resolveRunWrite(x, w)
	}
	if w.Status == store.Paused { // paused without a control request
		if n, err := x.exec(qRunSetAside, bindTime(writeTime(w)), bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.Number()); err != nil || n != 1 {
			return checkOneRow("setting aside run", w.UUID, n, err)
		}
	}
	return ownershipEnded(x, w, w.Status)
}

// endOwnership writes the end of an ownership, unless one of the control bits is set on the run, or one of the woken
// bits.
func endOwnership(x session, w *store.RunWrite, asked, woken int64) (int64, error) {
	return x.exec(
		qRunFinish, int64(w.Status), bindBytes(w.Output), bindBytes(w.Error), bindText(w.Reason), int64(w.Status), bindText(w.Trace),
		bindTime(w.WakeAt), bindTime(w.EndedAt), bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.Number(), asked, woken,
	)
}

// resolveRunWrite handles the end of an ownership that changed no row. Either the write is fenced, or a control request
// or a wake came first, and the ownership ends as that demands.
func resolveRunWrite(x *writeTx, w *store.RunWrite) error {
	row, ok, err := runByUUID(x, w.UUID, store.AllPayloads)
	if err != nil {
		return err
	}
	state := store.RunState{Found: ok, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	switch {
	case !runsAt(state, w.Epoch):
		if !ok || !w.AlreadyWritten(&row.Run) && !committedWithControl(w, &row.Run) {
			w.Outcome, w.State = store.Fenced, state
		}
		return nil
	case w.CancelForbids(row.Control):
		w.Outcome, w.State = store.Fenced, state
		return nil
	}
	if row.Control != 0 {
		w.State = state
	}
	now := *w
	switch {
	case w.Status.Terminal():
	case row.Control&store.CancelRequested != 0:
		now.Status, now.WakeAt = store.Pending, writeTime(w)
	case row.Control&store.PausedMask != 0:
		now.Status, now.WakeAt = store.Paused, time.Time{}
		if row.Reason != "" {
			now.Reason = row.Reason // the reason of the pause
		}
	case row.woken && w.Status == store.Waiting:
		now.WakeAt = writeTime(w)
	}
	if n, err := endOwnership(x, &now, ignoreControl, ignoreControl); err != nil || n != 1 {
		return checkOneRow("ending an ownership of run", w.UUID, n, err)
	}
	return ownershipEnded(x, &now, now.Status)
}

// holdRun releases or pauses a run whose writes the database rejects.
func holdRun(x *writeTx, w *store.RunWrite) error {
	row, ok, err := runByUUID(x, w.UUID, store.AllPayloads)
	if err != nil {
		return err
	}
	state := store.RunState{Found: ok, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	if !runsAt(state, w.Epoch) {
		if !ok || !w.AlreadyWritten(&row.Run) && !committedWithControl(w, &row.Run) {
			w.Outcome, w.State = store.Fenced, state
		}
		return nil
	}
	status, control, reason := store.Pending, row.Control, w.Reason
	crashes, progress := row.Crashes, row.progress
	var wake, paused time.Time
	if row.Control&store.PausedMask != 0 {
		status = store.Paused
		if row.Reason != "" {
			reason = row.Reason // the reason of the pause
		}
	} else {
		reached, err := countTerminalSteps(x, w.UUID)
		if err != nil {
			return err
		}
		if reached > progress {
			crashes = 0
		}
		crashes, progress = min(crashes, math.MaxInt16-1)+1, reached
		wake = store.HoldUntil(writeTime(w), crashes, row.Deadline)
		if w.MaxCrashes > 0 && int(crashes) >= w.MaxCrashes {
			status, control, wake, paused = store.Paused, control|store.PausedItself, time.Time{}, writeTime(w)
			reason = store.HeldTooOftenReason(reason, crashes)
		}
	}
	n, err := x.exec(
		qRunHold, int64(status), int64(control), bindTime(wake), reason, bindTime(paused),
		int64(crashes), progress, bindText(w.Trace), bindShard(w.UUID), bindUUID(w.UUID), w.Epoch.Number(),
	)
	if err != nil || n != 1 {
		return checkOneRow("holding run", w.UUID, n, err)
	}
	w.State = store.RunState{Found: true, Status: status, Epoch: w.Epoch, Control: control}
	now := *w
	now.WakeAt = wake
	return ownershipEnded(x, &now, status)
}

// committedWithControl reports whether this write was committed before, with the status that a control request
// demanded, and only its reply was lost.
func committedWithControl(w *store.RunWrite, row *store.Run) bool {
	if w.Status.Terminal() || row.Epoch != w.Epoch {
		return false
	}
	return row.Status == store.Pending && row.Control&store.CancelRequested != 0 ||
		row.Status == store.Paused && (row.Control&store.PausedMask != 0 || w.Held)
}

// ownershipEnded adds the hint and the event for the end of an ownership, and wakes the parent if the run has ended.
func ownershipEnded(x *writeTx, w *store.RunWrite, status store.Status) error {
	if status == store.Pending || status == store.Waiting && !w.WakeAt.IsZero() {
		x.addHint(store.HintClaim)
	}
	if status >= store.Paused {
		if err := writeEvent(x, w.UUID, store.EventOf(status), writeTime(w)); err != nil {
			return err
		}
	}
	if status.Terminal() && w.Parent.Valid {
		return wakeRun(x, w.Parent.UUID, writeTime(w))
	}
	return nil
}

// writeTime returns the time of the write, or the present time if the write has none.
func writeTime(w *store.RunWrite) time.Time {
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
		x.addHint(store.HintNotification)
	}
	return err
}
