package model

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// FenceForRepair models store.Store.Fence.
func (m *Model) FenceForRepair(f *store.FenceRequest) {
	r, state := m.Runs[f.Run], m.RunState(f.Run)
	if r == nil || r.Status.IsTerminal() || state != f.StateBefore {
		f.RunState, f.Outcome = state, f.OutcomeFromState(state)
		return
	}
	f.Outcome = store.Written
	if r.Status == store.Running {
		m.recordEvent(r, store.EventLeaseLost, f.Now)
		m.recordEvent(r, store.EventPaused, f.Now)
	}
	if control := f.ControlAfterFence(); control != r.Control {
		r.Control, r.PauseOrHoldReason, r.PausedBy = control, f.Reason, f.Actor
	}
	if r.PausedAt.IsZero() {
		r.PausedAt = f.Now
	}
	r.Status, r.Epoch, r.Owner, r.WakeAt, r.Woken = store.Paused, f.EpochAfterFence(), uuid.NullUUID{}, time.Time{}, false
	m.endTransaction()
}

// Repair models store.Store.Repair.
func (m *Model) Repair(r *store.RepairRequest) {
	states := make(map[uuid.UUID]store.RunState)
	for _, id := range r.RunsInLockOrder() {
		states[id] = m.RunState(id)
	}
	first := m.Runs[r.Runs[0].Run]
	done := first != nil && slices.ContainsFunc(first.Generations, func(g Generation) bool {
		return g.Number == r.Runs[0].SupersededNumber && g.RequestID == r.RequestID
	})
	if r.Outcome = r.OutcomeFromStates(states, done); r.Outcome != 0 {
		return
	}
	if r.Outcome = store.Written; slices.ContainsFunc(r.Runs, func(p store.RunRepair) bool { return !m.isAsPlanned(&p) }) {
		r.Outcome = store.Fenced
		return
	}
	if r.CancelRequest != nil {
		m.control(r.CancelRequest)
	}
	for i := range r.Runs {
		m.repairRun(r, &r.Runs[i])
	}
	if r.ResumeRequest != nil {
		m.control(r.ResumeRequest)
	}
	m.endTransaction()
}

// isAsPlanned reports whether the rows of the run are as the repair says.
func (m *Model) isAsPlanned(p *store.RunRepair) bool {
	r := m.Runs[p.Run]
	return (p.ContinuesAsNew || p.CheckpointCount == len(r.Steps)) &&
		!slices.ContainsFunc(p.KeptSteps, func(name string) bool { _, found := r.Steps[name]; return !found }) &&
		!slices.ContainsFunc(p.DetachedChildren, func(id uuid.UUID) bool { c := m.Runs[id]; return c == nil || c.Parent.UUID != p.Run })
}

func (m *Model) repairRun(r *store.RepairRequest, p *store.RunRepair) {
	run := m.Runs[p.Run]
	over := store.Run{
		UUID: run.UUID, Status: run.Status, Control: run.Control, Priority: run.Priority, Epoch: run.Epoch, CreatedAt: run.CreatedAt, StartedAt: run.StartedAt,
		EndedAt: run.EndedAt, Deadline: run.Deadline, PausedAt: run.PausedAt, CancelledAt: run.CancelledAt, Workflow: run.Workflow, Queue: run.Queue,
		Version: run.Version, Trace: run.Trace, PauseOrHoldReason: run.PauseOrHoldReason, PausedBy: run.PausedBy, CancelledBy: run.CancelledBy, CancelReason: run.CancelReason,
		Input: run.Input, Output: run.Output, Error: run.Error,
	}
	live := !run.Status.IsTerminal()
	if live {
		over.Status = store.Superseded
	}
	before := Generation{SupersededGeneration: store.SupersededGeneration{
		Run: over, Number: p.SupersededNumber, ArchiveID: p.ArchiveID(), StoredBytes: len(run.Input) + len(run.Output) + len(run.Error),
		RequestID: r.RequestID, Verb: r.Verb, Actor: r.Actor, Reason: r.Reason, FromStep: p.FromStep, At: r.Now, Detail: p.Detail,
	}, Steps: make(map[string]store.Step)}
	steps := make(map[string]store.Step)
	for name, s := range run.Steps {
		if slices.Contains(p.KeptSteps, name) {
			kept := s
			kept.Epoch, kept.Seq = p.Epoch, store.SeqOfKeptCall(s.Seq, p.FirstChangedSeq)
			steps[name] = kept
		}
		s.Run = before.ArchiveID
		before.Steps[name] = s
	}
	for _, s := range p.NewSteps {
		s.Run, s.Epoch = p.Run, p.Epoch
		steps[s.Name] = s
	}
	run.Steps, run.Generations = steps, append(run.Generations, before)
	for _, c := range m.Runs {
		if c.Parent.Valid && c.Parent.UUID == p.Run && (p.ContinuesAsNew || slices.Contains(p.DetachedChildren, c.UUID)) {
			c.Parent.UUID = before.ArchiveID
		}
	}
	for i := range run.Signals {
		if s := &run.Signals[i]; s.IsReceived && slices.Contains(p.ReleasedReceivers, s.By) {
			s.IsReceived, s.By = false, ""
		}
	}
	if !live {
		run.Deadline = p.Deadline
	}
	if p.ContinuesAsNew {
		run.Input, run.FirstInputHash = p.Input, p.FirstInputHash
	}
	switch {
	case p.Status != store.Paused:
		run.PauseOrHoldReason, run.PausedBy, run.PausedAt = "", "", time.Time{}
	case !live:
		run.PausedAt = r.Now
	}
	if p.ReleasesHold() {
		run.Divergences = make(map[string]store.Divergence)
	}
	run.Status, run.Epoch, run.Control, run.WakeAt, run.Owner, run.ProgressAtLastCrash = p.Status, p.Epoch, p.Control, p.WakeAt, p.Owner, p.Progress
	if live && p.Status == store.Waiting && !run.Deadline.IsZero() && run.Deadline.Before(run.WakeAt) {
		run.WakeAt = run.Deadline
	}
	run.Crashes, run.Woken, run.Output, run.Error, run.EndedAt, run.Failure = 0, false, nil, nil, time.Time{}, store.FailureKey{}
	run.CancelReason, run.CancelledBy, run.CancelledAt = "", "", time.Time{}
	m.recordEvent(run, r.EventType(), r.Now)
	e := &m.txEvents[len(m.txEvents)-1]
	e.Actor, e.Reason, e.OldValue, e.NewValue = r.Actor, r.Reason, strconv.Itoa(int(p.SupersededNumber)), strconv.Itoa(int(p.SupersededNumber)+1)
}

// Fork models store.Store.Fork.
func (m *Model) Fork(f *store.ForkRequest) {
	had := m.findByName(f.Start.Run.Name, f.Start.Run.Parent)
	m.start(f.Start, false)
	if had != nil {
		return
	}
	r := m.Runs[f.Start.Run.UUID]
	for _, s := range f.Steps {
		s.Run, s.Epoch = r.UUID, r.Epoch
		r.Steps[s.Name] = s
	}
	m.recordEvent(r, store.EventRepaired, r.CreatedAt)
	e := &m.txEvents[len(m.txEvents)-1]
	e.Actor, e.Reason, e.OldValue = f.Actor, f.Reason, f.Source.String()
	m.endTransaction()
}

// DeleteTrees models store.Store.DeleteTrees for one caller at a time. Events of a run that was deleted have no name any more.
func (m *Model) DeleteTrees(d *store.DeleteTreesRequest) {
	for i := range d.Trees {
		t := &d.Trees[i]
		plan := t.Plan(m.treeNodes(), d.Now, func(uuid.UUID) bool { return true })
		for _, id := range plan.Runs {
			delete(m.Runs, id)
		}
		for _, g := range plan.Generations {
			if r := m.Runs[g.Parent.UUID]; r != nil {
				r.Generations = slices.DeleteFunc(slices.Clone(r.Generations), func(o Generation) bool { return o.ArchiveID == g.UUID })
			}
		}
		m.forgetNames(plan.Runs)
		if t.Outcome == store.Written && d.WithEvents {
			m.txEvents = append(m.txEvents, store.Event{
				Type: store.EventDeleted, At: d.Now, Run: t.Root, Actor: d.Actor, Reason: d.Reason, OldValue: t.Name, NewValue: strconv.Itoa(t.DeletedRunCount),
			})
		}
	}
	m.endTransaction()
}

// treeNodes returns all runs and all superseded generations.
func (m *Model) treeNodes() (nodes []store.TreeNode) {
	for r := range maps.Values(m.Runs) {
		nodes = append(nodes, store.TreeNode{UUID: r.UUID, Parent: r.Parent, Status: r.Status, Epoch: r.Epoch, EndedAt: r.EndedAt, Detached: r.Detached})
		for i := range r.Generations {
			g := &r.Generations[i]
			nodes = append(nodes, store.TreeNode{
				UUID: g.ArchiveID, Parent: uuid.NullUUID{UUID: r.UUID, Valid: true}, Generation: g.Number, Status: g.Run.Status, Epoch: g.Run.Epoch, EndedAt: g.At,
			})
		}
	}
	return nodes
}

// forgetNames makes the events of deleted runs as they are read then.
func (m *Model) forgetNames(runs []uuid.UUID) {
	for i, tx := range m.Events {
		m.Events[i] = slices.Clone(tx)
		for j := range tx {
			ForgetName(&m.Events[i][j], runs)
		}
	}
}

// ForgetName makes an event as it is read when its run is one of the given ones, which were deleted.
func ForgetName(e *store.Event, deleted []uuid.UUID) {
	if slices.Contains(deleted, e.Run) {
		e.Name, e.IsChild, e.Workflow = "", false, ""
	}
}

// GenerationsOf models store.Store.Generations.
func (m *Model) GenerationsOf(run uuid.UUID) (all []store.SupersededGeneration) {
	if r := m.Runs[run]; r != nil {
		for i := range r.Generations {
			all = append(all, r.Generations[i].SupersededGeneration)
		}
	}
	return all
}

// ArchivedHistory models store.Store.History of a superseded generation.
func (m *Model) ArchivedHistory(run uuid.UUID, number int32) []store.Step {
	for i := range m.Runs[run].Generations {
		if g := &m.Runs[run].Generations[i]; g.Number == number {
			steps := (&Run{Steps: g.Steps}).history()
			store.SortByCallOrder(steps)
			return steps
		}
	}
	return nil
}
