package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Commit models store.Store.Commit: it sets the outcomes. It sets State only together with Fenced, and
// where Control must be reported.
func (m *Model) Commit(b *store.Batch) {
	// A store may write first, and read the reason of a conflict afterwards. It then finds that a run
	// was already released by the same transaction, and the outcome is Fenced, where otherwise
	// AlreadyRecorded or a second attempt is expected.
	released := func(run uuid.UUID) bool {
		return slices.ContainsFunc(b.OwnershipEnds, func(w *store.OwnershipEnd) bool { return w.UUID == run })
	}
	for _, w := range b.Starts {
		m.start(w, released(w.Run.Parent.UUID))
	}
	for _, w := range b.Steps {
		m.step(w, released(w.Step.Run))
	}
	for _, w := range b.Receives {
		m.receive(w, released(w.Step.Run))
	}
	// If a transaction both sends a signal to a run and parks it, the run is claimable at once. A store
	// may set WakeAt to the time of the signal or to the time of the park.
	var late []*store.SignalWrite
	for _, w := range b.Signals {
		switch wakes := m.signal(w); {
		case wakes && released(w.Run) && m.mayHappen():
			late = append(late, w)
		case wakes:
			m.wake(w.Run, w.WakeTime())
		}
	}
	var ended []*store.OwnershipEnd
	for _, w := range b.OwnershipEnds {
		if m.endOwnership(w) {
			ended = append(ended, w)
		}
	}
	for _, w := range late {
		m.wake(w.Run, w.WakeTime())
	}
	for _, w := range ended {
		m.wake(w.ParentToWake.UUID, w.Now)
	}
	m.endTransaction()
}

// start models one start. released tells whether the same transaction releases the parent. The
// parameter of step and receive tells the same of their run.
func (m *Model) start(w *store.StartWrite, released bool) {
	w.Outcome, w.ExistingRun, w.RunState = store.Written, nil, store.RunState{}
	had := m.findByName(w.Run.Name, w.Run.Parent)
	if had != nil && had.UUID == w.Run.UUID {
		return
	}
	parent := m.RunState(w.Run.Parent.UUID)
	switch {
	case w.Run.Parent.Valid && (!parent.IsOwnedAt(w.ParentEpoch) || had != nil && released && m.mayHappen()): // a write of an older epoch is Fenced, not AlreadyRecorded
		w.Outcome, w.RunState = store.Fenced, parent
		return
	case had != nil:
		row := had.Run
		w.Outcome, w.ExistingRun = store.AlreadyRecorded, &row
		return
	case w.Run.Parent.Valid && parent.Control != 0:
		w.Outcome, w.RunState = store.Fenced, parent
		return
	}
	r := &Run{Run: w.Run, Steps: make(map[string]store.Step), Tags: make(map[string]string), Divergences: make(map[string]store.Divergence)}
	for _, tag := range w.Tags {
		r.Tags[tag.Key] = tag.Value
	}
	m.Runs[r.UUID] = r
}

func (m *Model) step(w *store.StepWrite, released bool) {
	w.Outcome, w.RecordedStep, w.RunState = store.Written, nil, store.RunState{}
	fence := m
	if m.FencingState != nil {
		fence = m.FencingState
	}
	state := fence.RunState(w.Step.Run)
	own := state.IsOwnedAt(w.Step.Epoch)
	if own && state.Control != 0 {
		w.RunState = state
	}
	var row store.Step
	recorded := false
	if r := m.Runs[w.Step.Run]; r != nil {
		row, recorded = r.Steps[w.Step.Name]
	}
	simple := w.RowExists == recorded && !row.Status.IsTerminal() && !(recorded && isOlderWrite(&w.Step, &row))
	switch {
	case recorded && w.AlreadyWritten(&row) && !(own && !row.Status.IsTerminal() && m.mayHappen()): // a store may also update the times of the row
	case !own, released && !simple && m.mayHappen():
		w.Outcome, w.RunState = store.Fenced, state
	case recorded && row.Status.IsTerminal():
		w.Outcome, w.RecordedStep = store.AlreadyRecorded, &row
	case state.Control != 0 && w.Step.Kind == store.KindChild && w.Step.Status == store.StepStarted:
		w.Outcome = store.Fenced
	case recorded && isOlderWrite(&w.Step, &row):
	default:
		now := w.Step
		if recorded {
			now.Kind, now.Seq = row.Kind, row.Seq
		}
		m.Runs[now.Run].Steps[now.Name] = now
	}
}

// isOlderWrite reports whether a marker or backoff is older than a row that the same epoch has
// written.
func isOlderWrite(w, row *store.Step) bool {
	if w.Status.IsTerminal() || row.Epoch != w.Epoch {
		return false
	}
	return row.Attempt > w.Attempt || row.Attempt == w.Attempt && row.Status > w.Status
}

func (m *Model) receive(w *store.ReceiveWrite, released bool) {
	w.Outcome, w.RecordedStep, w.RunState = store.Written, nil, store.RunState{}
	state := m.RunState(w.Step.Run)
	own := state.IsOwnedAt(w.Step.Epoch)
	var row store.Step
	recorded := false
	r := m.Runs[w.Step.Run]
	if r != nil {
		row, recorded = r.Steps[w.Step.Name]
	}
	ended := recorded && row.Status.IsTerminal()
	replayed := ended && row.Epoch == w.Step.Epoch && row.Attempt == w.Step.Attempt
	if !replayed && (!own || ended && released && m.mayHappen()) {
		w.Outcome, w.RunState = store.Fenced, state
		return
	}
	if own && state.Control != 0 {
		w.RunState = state
	}
	if ended {
		w.Outcome, w.RecordedStep = store.AlreadyRecorded, &row
		return
	}
	now := w.Step
	now.Failures = nil
	if recorded {
		now.Kind, now.Seq, now.Failures = row.Kind, row.Seq, row.Failures
	}
	if recorded && row.Attempt == now.Attempt {
		now.StartedAt, now.NextAt = row.StartedAt, row.NextAt
	}
	var bound time.Time
	if recorded && row.Attempt >= now.Attempt {
		bound = row.NextAt
	}
	s := r.oldestSignal(w.Signal, bound)
	if s == nil && recorded && isOlderWrite(&now, &row) && m.mayHappen() {
		w.RecordedStep = &row // a receive that is older than the row, like an older marker
		return
	}
	if s != nil {
		s.IsReceived, s.By = true, cmp.Or(w.Receiver, now.Name)
		now.Status, now.Output, now.Error = store.StepCompleted, s.Payload, nil
	}
	if !now.Status.IsTerminal() {
		now.EndedAt = time.Time{} // as documented at Step.EndedAt
	}
	r.Steps[now.Name] = now
	w.RecordedStep = &now
}

// oldestSignal returns the oldest waiting signal of that name, or nil. If bound is not zero, the
// signal must have arrived by then.
func (r *Run) oldestSignal(name string, bound time.Time) (first *Signal) {
	for i := range r.Signals {
		s := &r.Signals[i]
		if s.Name != name || s.IsReceived || !bound.IsZero() && s.ArrivedAt.After(bound) {
			continue
		}
		if first == nil || s.CreatedAt.Before(first.CreatedAt) || s.CreatedAt.Equal(first.CreatedAt) && lessUUID(s.ID, first.ID) {
			first = s
		}
	}
	return first
}

// signal models one signal. It reports whether the signal wakes the run.
func (m *Model) signal(w *store.SignalWrite) bool {
	w.Outcome, w.ExistingSignal, w.RunState = store.Written, nil, store.RunState{}
	r := m.Runs[w.Run]
	if r != nil {
		for _, s := range r.Signals {
			if s.ID == w.ID {
				return m.mayHappen() // a retry may wake the run again
			}
		}
		for _, s := range r.Signals {
			if w.Key != "" && s.Key == w.Key {
				had := s.SignalWrite
				had.ArrivedAt = time.Time{}
				w.Outcome, w.ExistingSignal = store.AlreadyRecorded, &had
				return false
			}
		}
	}
	if state := m.RunState(w.Run); !state.IsLive() {
		w.Outcome, w.RunState = store.Fenced, state
		return false
	}
	r.Signals = append(r.Signals, Signal{SignalWrite: store.SignalWrite{
		Run: w.Run, ID: w.ID, Name: w.Name, Key: w.Key, Payload: w.Payload, CreatedAt: w.CreatedAt, ArrivedAt: w.ArrivedAt,
	}})
	if w.ActorAndReason.HasActorOrReason() {
		m.recordAct(w.Run, w.ActorAndReason, store.Event{Type: store.EventSignalled, NewValue: w.Name})
	}
	return true
}

// endOwnership models one OwnershipEnd. It reports whether the end of the run wakes its parent.
func (m *Model) endOwnership(w *store.OwnershipEnd) bool {
	w.Outcome, w.RunState = store.Written, store.RunState{}
	state := m.RunState(w.UUID)
	r := m.Runs[w.UUID]
	cancel, pause := state.Control&store.CancelRequested != 0, state.Control&store.PausedMask != 0
	if !state.IsOwnedAt(w.Epoch) {
		// A pause or cancel request may have changed the state that the write wanted.
		overruled := r != nil && !w.Status.IsTerminal() && r.Epoch == w.Epoch &&
			(cancel && r.Status == store.Pending || (pause || w.HoldsRun) && r.Status == store.Paused)
		if r == nil || !w.AlreadyWritten(&r.Run) && !overruled {
			w.Outcome, w.RunState = store.Fenced, state
		}
		// The child has ended, by this write or by another one. A store may wake its parent again.
		return r != nil && w.ParentToWake.Valid && w.Status.IsTerminal() && r.Status.IsTerminal() && m.mayHappen()
	}
	if w.CancelForbidsEnd(state.Control) {
		w.Outcome, w.RunState = store.Fenced, state
		return false
	}
	if w.HoldsRun {
		m.holdRun(r, w)
		return false
	}
	reason := r.PauseOrHoldReason
	woken := r.Woken
	r.Status, r.WakeAt, r.PauseOrHoldReason = w.Status, w.WakeAt, w.HoldReason
	r.Output, r.Error, r.EndedAt = w.Output, w.Error, w.EndedAt
	if w.HasFailed() {
		r.Failure = store.FailureKey{Workflow: r.Workflow, Step: w.FailedStep, Type: w.FailedType}
	}
	r.Owner, r.Woken, r.Crashes = uuid.NullUUID{}, false, r.crashesSinceProgress()
	if w.Trace != "" {
		r.Trace = w.Trace
	}
	switch {
	case w.Status.IsTerminal():
	case cancel && !w.CancelBegun:
		r.Status, r.WakeAt = store.Pending, w.Now
	case pause:
		r.Status, r.WakeAt = store.Paused, time.Time{}
		if reason != "" {
			r.PauseOrHoldReason = reason // the reason of the pause remains
		}
	case woken && w.Status == store.Waiting:
		r.WakeAt = w.Now
	case w.Status == store.Paused && m.mayHappen():
		// A store may also set PausedItself, so that the run can be resumed.
		r.Control, r.PausedAt = r.Control|store.PausedItself, w.Now
	}
	if r.Status == store.Pending && r.PauseOrHoldReason == "" {
		r.PauseOrHoldReason = reason // the reason of an earlier hold remains
	}
	if r.Status >= store.Paused {
		var act store.ActorAndReason
		if r.Status == store.Paused {
			act = w.PauseActorAndReason(state.Control, r.PausedBy, reason)
		}
		if r.Status == store.Cancelled {
			act = store.ActorAndReason{Actor: r.CancelledBy, Reason: r.CancelReason}
		}
		act.At = w.Now
		m.recordAct(r.UUID, act, store.Event{Type: store.EventTypeOfStatus(r.Status)})
	}
	return w.ParentToWake.Valid && w.Status.IsTerminal()
}

// holdRun models an OwnershipEnd that holds the run.
func (m *Model) holdRun(r *Run, w *store.OwnershipEnd) {
	pause := w.PauseActorAndReason(r.Control, r.PausedBy, r.PauseOrHoldReason)
	pause.At = w.Now
	requested := r.Control&store.PausedMask != 0
	r.Status, r.WakeAt, r.Owner, r.Woken = store.Pending, time.Time{}, uuid.NullUUID{}, false
	if w.Trace != "" {
		r.Trace = w.Trace
	}
	if w.Divergence != nil {
		r.Divergences[w.Divergence.Version] = *w.Divergence
		if r.Status, r.Control = store.Paused, r.Control|store.HeldForDrift; r.Control&store.PausedMask == 0 {
			r.PauseOrHoldReason, r.PausedAt = "", w.Now
		}
		if r.PauseOrHoldReason == "" {
			r.PauseOrHoldReason = w.HoldReason
		}
	} else if r.Control&store.PausedMask != 0 { // not a crash if a pause was requested
		r.Status = store.Paused
		if r.PauseOrHoldReason == "" {
			r.PauseOrHoldReason = w.HoldReason
		}
	} else if w.NotCountedAsCrash {
		r.PauseOrHoldReason, r.WakeAt = w.HoldReason, store.HoldUntilAfterCrash(w, w.Now, 0, r.Deadline)
	} else {
		if reached := r.progress(); reached > r.ProgressAtLastCrash {
			r.Crashes, r.ProgressAtLastCrash = 0, reached
		}
		r.Crashes++
		r.PauseOrHoldReason = w.HoldReason
		if r.WakeAt = store.HoldUntilAfterCrash(w, w.Now, r.Crashes, r.Deadline); w.MaxCrashes > 0 && int(r.Crashes) >= w.MaxCrashes {
			r.Status, r.Control, r.WakeAt, r.PausedAt = store.Paused, r.Control|store.PausedItself, time.Time{}, w.Now
			r.PauseOrHoldReason = store.HeldTooOftenReason(w.HoldReason, r.Crashes)
		}
	}
	w.RunState = store.RunState{Found: true, Status: r.Status, Epoch: r.Epoch, Control: r.Control}
	if r.Status == store.Paused {
		event := store.Event{Type: store.EventPaused}
		if !requested {
			event.NewValue = r.PauseOrHoldReason
		}
		m.recordAct(r.UUID, pause, event)
	}
}

// SetTags models store.Store.Tag.
func (m *Model) SetTags(run uuid.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) bool {
	r := m.Runs[run]
	if r == nil || epoch != (store.Epoch{}) && (r.Epoch != epoch || r.Status != store.Running) {
		return false
	}
	if by.HasActorOrReason() && slices.ContainsFunc(tags, func(tag store.Tag) bool { return r.Tags[tag.Key] != tag.Value }) {
		m.recordAct(run, by, store.Event{Type: store.EventTagged, NewValue: store.TagsText(tags)})
		m.endTransaction()
	}
	for _, tag := range tags {
		if tag.Value == "" {
			delete(r.Tags, tag.Key)
		} else {
			r.Tags[tag.Key] = tag.Value
		}
	}
	return true
}
