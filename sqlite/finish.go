package sqlite

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeRun(x *writing, w *store.RunWrite) error {
	w.Outcome, w.State = store.Written, store.RunState{}
	if w.Held {
		return holdRun(x, w)
	}
	asked, woken := anyBits, noBits
	switch w.Status {
	case store.Completed, store.Failed, store.Expired:
		asked = int64(store.CancelRequested)
	case store.Cancelled:
		asked = noBits
	case store.Waiting:
		woken = anyBits
	}
	n, err := finish(x, w, asked, woken)
	if err != nil {
		return err
	}
	if n == 0 {
		return settleRun(x, w)
	}
	if w.Status == store.Paused { // nobody has asked for it
		if n, err := x.exec(qRunSetAside, micros(at(w)), shardOf(w.ID), key(w.ID), w.Epoch.Number()); err != nil || n != 1 {
			return changed("setting aside run", w.ID, n, err)
		}
	}
	return finished(x, w, w.Status)
}

// finish ends the ownership, unless one of the bits is set on the run, or woken is.
func finish(x session, w *store.RunWrite, asked, woken int64) (int64, error) {
	return x.exec(
		qRunFinish, int64(w.Status), blob(w.Output), blob(w.Error), textOrNull(w.Reason), int64(w.Status), textOrNull(w.Trace),
		micros(w.WakeAt), micros(w.EndedAt), shardOf(w.ID), key(w.ID), w.Epoch.Number(), asked, woken,
	)
}

// settleRun says why the end of an ownership took no row; or it finds that something was
// asked of the run, or that it was woken, and ends it as that demands.
func settleRun(x *writing, w *store.RunWrite) error {
	row, ok, err := runByID(x, w.ID, store.AllPayloads)
	if err != nil {
		return err
	}
	state := store.RunState{Found: ok, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	switch {
	case !runsAt(state, w.Epoch):
		if !ok || !w.AlreadyWritten(&row.Run) && !overruled(w, &row.Run) {
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
		now.Status, now.WakeAt = store.Pending, at(w)
	case row.Control&store.PausedMask != 0:
		now.Status, now.WakeAt = store.Paused, time.Time{}
		if row.Reason != "" {
			now.Reason = row.Reason // of the pause
		}
	case row.woken && w.Status == store.Waiting:
		now.WakeAt = at(w)
	}
	if n, err := finish(x, &now, noBits, noBits); err != nil || n != 1 {
		return changed("ending an ownership of run", w.ID, n, err)
	}
	return finished(x, &now, now.Status)
}

// holdRun releases a run, or pauses it, since the database does not take what it has to write.
func holdRun(x *writing, w *store.RunWrite) error {
	row, ok, err := runByID(x, w.ID, store.AllPayloads)
	if err != nil {
		return err
	}
	state := store.RunState{Found: ok, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
	if !runsAt(state, w.Epoch) {
		if !ok || !w.AlreadyWritten(&row.Run) && !overruled(w, &row.Run) {
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
			reason = row.Reason // of the pause
		}
	} else {
		reached, err := terminalSteps(x, w.ID)
		if err != nil {
			return err
		}
		if reached > progress {
			crashes = 0
		}
		crashes, progress = min(crashes, math.MaxInt16-1)+1, reached
		wake = store.HoldUntil(at(w), crashes, row.Deadline)
		if w.MaxCrashes > 0 && int(crashes) >= w.MaxCrashes {
			status, control, wake, paused = store.Paused, control|store.PausedItself, time.Time{}, at(w)
			reason = store.HeldTooOftenReason(reason, crashes)
		}
	}
	n, err := x.exec(
		qRunHold, int64(status), int64(control), micros(wake), reason, micros(paused),
		int64(crashes), progress, textOrNull(w.Trace), shardOf(w.ID), key(w.ID), w.Epoch.Number(),
	)
	if err != nil || n != 1 {
		return changed("holding run", w.ID, n, err)
	}
	w.State = store.RunState{Found: true, Status: status, Epoch: w.Epoch, Control: control}
	now := *w
	now.WakeAt = wake
	return finished(x, &now, status)
}

// overruled reports whether the row is what this write became by what was asked of the
// run: it was committed before, and its answer was lost.
func overruled(w *store.RunWrite, row *store.Run) bool {
	if w.Status.Terminal() || row.Epoch != w.Epoch {
		return false
	}
	return row.Status == store.Pending && row.Control&store.CancelRequested != 0 ||
		row.Status == store.Paused && (row.Control&store.PausedMask != 0 || w.Held)
}

// finished does what else the end of an ownership means.
func finished(x *writing, w *store.RunWrite, status store.Status) error {
	if status == store.Pending || status == store.Waiting && !w.WakeAt.IsZero() {
		x.tell(store.HintClaim)
	}
	if status >= store.Paused {
		if err := writeEvent(x, w.ID, store.EventOf(status), at(w)); err != nil {
			return err
		}
	}
	if status.Terminal() && w.Parent.Valid {
		return wake(x, w.Parent.UUID, at(w))
	}
	return nil
}

// at is when the write was made, as far as it says so.
func at(w *store.RunWrite) time.Time {
	switch {
	case !w.Now.IsZero():
		return w.Now
	case !w.EndedAt.IsZero():
		return w.EndedAt
	}
	return now()
}

// wake has a run look again at what it waits for. One that is neither waiting nor running
// does so in any case when it is claimed.
func wake(x *writing, run uuid.UUID, at time.Time) error {
	status, err := statusOf(x, qRunWake, micros(at), shardOf(run), key(run))
	switch status {
	case store.Waiting:
		x.tell(store.HintClaim)
	case store.Running:
		x.tell(store.HintNotification)
	}
	return err
}
