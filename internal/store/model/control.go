package model

import (
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Control models store.Store.Control: it sets the results.
func (m *Model) Control(o *store.ControlRequest) {
	m.control(o)
	m.endTransaction()
}

// control is Control within a transaction.
func (m *Model) control(o *store.ControlRequest) {
	concerned := make(map[uuid.UUID]bool)
	for _, id := range o.Runs {
		r := m.Runs[id]
		if r == nil {
			continue
		}
		for _, below := range m.tree(id, false) {
			concerned[below.UUID] = true
		}
		for above := m.Runs[r.Parent.UUID]; above != nil; above = m.Runs[above.Parent.UUID] {
			concerned[above.UUID] = true
		}
	}
	var nodes []store.RunToControl
	for id := range maps.Keys(concerned) {
		r := m.Runs[id]
		n := store.RunToControl{UUID: id, Parent: r.Parent, Status: r.Status, Epoch: r.Epoch, Control: r.Control, Owner: r.Owner, Detached: r.Detached}
		nodes = append(nodes, n)
	}
	changes, wake := o.Plan(nodes)
	for i := range changes {
		m.applyChange(o, &changes[i])
	}
	for _, e := range o.ActorEvents(changes) {
		m.recordAct(e.Run, o.ActorAndReason(), e)
	}
	for _, id := range wake {
		m.wake(id, o.Now)
	}
}

func (m *Model) applyChange(o *store.ControlRequest, c *store.ControlChange) {
	r := m.Runs[c.Before.UUID]
	if o.ShiftTimers && c.AuditColumns == store.AuditColumnsClearPause && c.Before.Status == store.Paused && !r.PausedAt.IsZero() {
		r.shiftTimers(r.PausedAt, o.Now)
	}
	r.Status, r.Control, r.Detached = c.Status, c.Control, c.Detached
	switch c.WakeAt {
	case store.WakeAtNull:
		r.WakeAt = time.Time{}
	case store.WakeAtNow:
		r.WakeAt = o.Now
	}
	switch c.AuditColumns {
	case store.AuditColumnsSetPause:
		r.PauseOrHoldReason, r.PausedBy = o.Reason, o.Actor
		if r.PausedAt.IsZero() { // otherwise the run remains paused since then
			r.PausedAt = o.Now
		}
	case store.AuditColumnsClearPause:
		r.PauseOrHoldReason, r.PausedBy, r.PausedAt, r.Crashes = "", "", time.Time{}, 0
	case store.AuditColumnsSetCancel:
		r.CancelReason, r.CancelledBy, r.CancelledAt = o.Reason, o.Actor, o.Now
		r.PauseOrHoldReason, r.PausedBy, r.PausedAt = "", "", time.Time{}
	}
	if c.EndsRun() {
		r.EndedAt, r.Error, r.Owner, r.Woken = o.Now, o.Error, uuid.NullUUID{}, false
	}
	if c.EndsRun() && c.Before.Status == store.Running { // the owner loses its lease
		m.recordEvent(r, store.EventLeaseLost, o.Now)
	}
	if c.Status >= store.Paused && c.Status != c.Before.Status {
		act := store.ActorAndReason{At: o.Now}
		switch c.Status {
		case store.Paused:
			act = o.ActorAndReason()
		case store.Cancelled:
			act.Actor, act.Reason = r.CancelledBy, r.CancelReason
		}
		m.recordAct(r.UUID, act, store.Event{Type: store.EventTypeOfStatus(c.Status)})
	}
}

// SetDeadline models store.Store.SetDeadline.
func (m *Model) SetDeadline(d *store.DeadlineChangeRequest) {
	d.Outcome, d.RunState = store.Fenced, m.RunState(d.Run)
	r := m.Runs[d.Run]
	if r == nil || r.Status.IsTerminal() || r.Control&store.CancelRequested != 0 {
		return
	}
	pending := r.Deadline.IsZero() || r.Deadline.After(d.Now)
	if !pending && (r.Status != store.Paused || r.PausedAt.IsZero() || !r.Deadline.After(r.PausedAt)) {
		return
	}
	d.Outcome, d.RunState = store.Written, store.RunState{}
	if d.ActorAndReason.HasActorOrReason() && !r.Deadline.Equal(d.NewDeadline) {
		m.recordAct(r.UUID, d.ActorAndReason, store.Event{Type: store.EventTimeoutSet, OldValue: store.TimeText(r.Deadline), NewValue: store.TimeText(d.NewDeadline)})
		m.endTransaction()
	}
	r.Deadline = d.NewDeadline
	switch {
	case r.Status == store.Running:
		r.Woken = true
	case (r.Status == store.Waiting || r.Status == store.Pending && r.Crashes > 0) && !d.NewDeadline.IsZero() && (r.WakeAt.IsZero() || d.NewDeadline.Before(r.WakeAt)):
		r.WakeAt = d.NewDeadline
	}
}

// shiftTimers adds the length of the pause to the deadline and the timers that had not passed when the
// run was paused.
func (r *Run) shiftTimers(since, until time.Time) {
	pause := until.Sub(since)
	if pause <= 0 {
		return
	}
	if r.Deadline.After(since) {
		r.Deadline = r.Deadline.Add(pause)
	}
	moved := make(map[string]store.Step)
	for name, s := range r.Steps {
		if s.NextAt.After(since) && (!s.Status.IsTerminal() || s.Kind == store.KindSleep && !r.sleepHasPassed(&s)) {
			s.NextAt = s.NextAt.Add(pause)
		}
		tried := s.Kind == store.KindStep || s.Kind == store.KindTx || s.Kind == store.KindCompensation
		if tried && !s.Status.IsTerminal() { // its total timeout counts from its start
			if s.StartedAt = s.StartedAt.Add(pause); s.StartedAt.After(until) {
				s.StartedAt = until
			}
		}
		moved[name] = s
	}
	maps.Copy(r.Steps, moved)
}

// sleepHasPassed reports whether a call that is later than the sleep began when its time had come.
func (r *Run) sleepHasPassed(sleep *store.Step) bool {
	for _, s := range r.Steps {
		if s.Seq > sleep.Seq && s.Kind != store.KindCompensation && !s.StartedAt.Before(sleep.NextAt) {
			return true
		}
	}
	return false
}
