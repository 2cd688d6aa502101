package model

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Get models store.Store.Get.
func (m *Model) Get(refs []store.RunRef) []*store.Run {
	rows := make([]*store.Run, len(refs))
	for i, ref := range refs {
		r := (*Run)(nil)
		if id, ok := ref.AsUUID(); ok {
			r = m.Runs[id]
		}
		if r == nil {
			r = m.findByName(ref.UUIDOrName, uuid.NullUUID{})
		}
		if r != nil {
			row := r.Run
			row.Crashes = r.crashesSinceProgress()
			rows[i] = &row
		}
	}
	return rows
}

// Find models store.Store.Find.
func (m *Model) Find(refs []store.RunRef, with store.PayloadSelection) []*store.Run {
	rows := m.Get(refs)
	for _, row := range rows {
		if row != nil && with&store.WithInput == 0 {
			row.Input = nil
		}
		if row != nil && with&store.WithOutputAndError == 0 {
			row.Output, row.Error = nil, nil
		}
	}
	return rows
}

// Statuses models store.Store.Statuses.
func (m *Model) Statuses(runs []uuid.UUID) []store.Status {
	statuses := make([]store.Status, len(runs))
	for i, id := range runs {
		statuses[i] = m.RunState(id).Status
	}
	return statuses
}

// History models store.Store.History.
func (m *Model) History(run uuid.UUID) []store.Step {
	if r := m.Runs[run]; r != nil {
		steps := r.history()
		store.SortByCallOrder(steps)
		return steps
	}
	return nil
}

// RunProgress models store.Store.Outline.
func (m *Model) RunProgress(run uuid.UUID, now time.Time) (o store.RunProgress) {
	r := m.Runs[run]
	if r == nil {
		return o
	}
	o.LastLeaseLoss = r.LastLeaseLoss
	for _, s := range r.history() {
		if s.Kind == store.KindChoice && s.Status == store.StepCompleted {
			o.Choices = append(o.Choices, s)
		}
		if !s.Status.IsTerminal() || (s.Kind == store.KindSleep || s.Kind == store.KindKeyRenewal) && s.NextAt.After(now) {
			o.OpenCalls = append(o.OpenCalls, s)
		}
		if s.Kind == store.KindMap {
			o.Maps = append(o.Maps, store.MapProgress{Step: s, DoneCount: r.itemsDone(s.Name)})
		}
	}
	store.SortByCallOrder(o.OpenCalls)
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		o.Tags = append(o.Tags, store.Tag{Key: key, Value: r.Tags[key]})
	}
	return o
}

// itemsDone returns how many items of a Map have completed or failed. The name of an item consists of
// the Map's name, the separator of scopes and the item's key. A longer name belongs to a call inside
// an item.
func (r *Run) itemsDone(name string) (n int) {
	for _, s := range r.Steps {
		item, ok := strings.CutPrefix(s.Name, name+"\x1f")
		if ok && s.Status.IsTerminal() && !strings.Contains(item, "\x1f") {
			n++
		}
	}
	return n
}

// CountUnreceivedSignals models store.Store.CountUnreceivedSignals.
func (m *Model) CountUnreceivedSignals(runs []uuid.UUID) (counts []store.SignalCount) {
	for _, id := range runs {
		r := m.Runs[id]
		if r == nil {
			continue
		}
		waiting := make(map[string]int)
		for _, s := range r.Signals {
			if !s.IsReceived {
				waiting[s.Name]++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(waiting)) {
			counts = append(counts, store.SignalCount{Run: id, Name: name, Count: waiting[name]})
		}
	}
	return counts
}

// List models store.Store.List.
func (m *Model) List(f store.Filter, before uuid.UUID, limit int) (runs []*store.Run) {
	ids := m.sortedUUIDs()
	slices.Reverse(ids)
	for _, id := range ids {
		r := m.Runs[id]
		if len(runs) < limit && (before == uuid.UUID{} || lessUUID(id, before)) && r.matches(&f) && m.isChildOfAny(r, f.Parents) {
			runs = append(runs, r.withoutPayloads())
		}
	}
	return runs
}

func (r *Run) matches(f *store.Filter) bool {
	value, tagged := r.Tags[f.Tag.Key]
	switch {
	case f.Workflow != "" && r.Workflow != f.Workflow,
		f.Queue != "" && r.Queue != f.Queue,
		f.Failure.Workflow != "" && (!r.hasFailed() || r.Failure != f.Failure),
		len(f.Priorities) > 0 && !slices.Contains(f.Priorities, r.Priority),
		len(f.Statuses) > 0 && !slices.Contains(f.Statuses, r.Status),
		f.Tag.Key != "" && (!tagged || f.Tag.Value != "" && f.Tag.Value != value),
		!strings.HasPrefix(r.Name, f.NamePrefix),
		!f.CreatedAfter.IsZero() && !r.CreatedAt.After(f.CreatedAfter),
		!f.CreatedBefore.IsZero() && !r.CreatedAt.Before(f.CreatedBefore),
		f.OnlyRoots && r.Parent.Valid,
		len(f.UUIDs) > 0 && !slices.Contains(f.UUIDs, r.UUID):
		return false
	}
	return true
}

// isChildOfAny reports whether the run is a child of one of the parents, in any generation of the parent. Without parents, it is true.
func (m *Model) isChildOfAny(r *Run, parents []uuid.UUID) bool {
	return len(parents) == 0 || r.Parent.Valid && (slices.Contains(parents, r.Parent.UUID) || slices.ContainsFunc(parents, func(id uuid.UUID) bool {
		p := m.Runs[id]
		return p != nil && p.hasGeneration(r.Parent.UUID)
	}))
}

// hasGeneration reports whether the run has a superseded generation with the archive ID.
func (r *Run) hasGeneration(archive uuid.UUID) bool {
	return slices.ContainsFunc(r.Generations, func(g Generation) bool { return g.ArchiveID == archive })
}

// FindGenerations models store.RepairStore.FindGenerations. The result is in the order of the runs and their generations.
func (m *Model) FindGenerations(archives []uuid.UUID) (found []store.GenerationKey) {
	for _, id := range m.sortedUUIDs() {
		for _, g := range m.Runs[id].Generations {
			if slices.Contains(archives, g.ArchiveID) {
				found = append(found, store.GenerationKey{ArchiveID: g.ArchiveID, Run: id, Number: g.Number})
			}
		}
	}
	return found
}

// withoutPayloads returns a copy of the row without its input and output.
func (r *Run) withoutPayloads() *store.Run {
	row := r.Run
	row.Crashes = r.crashesSinceProgress()
	row.Input, row.Output = nil, nil
	return &row
}

// Tree models store.Store.Tree.
func (m *Model) Tree(run uuid.UUID, allGenerations bool) (runs []*store.Run) {
	for _, r := range m.tree(run, allGenerations) {
		runs = append(runs, r.withoutPayloads())
	}
	return runs
}

// tree returns the run and its descendants, level by level, each level ordered by UUID. With allGenerations, the children of superseded
// generations are among them.
func (m *Model) tree(run uuid.UUID, allGenerations bool) (all []*Run) {
	var level []*Run
	if r := m.Runs[run]; r != nil {
		level = append(level, r)
	}
	for len(level) > 0 {
		slices.SortFunc(level, func(l, r *Run) int { return bytes.Compare(l.UUID[:], r.UUID[:]) })
		all = append(all, level...)
		var below []*Run
		for _, r := range m.Runs {
			if slices.ContainsFunc(level, func(p *Run) bool {
				return r.Parent.Valid && (r.Parent.UUID == p.UUID || allGenerations && p.hasGeneration(r.Parent.UUID))
			}) {
				below = append(below, r)
			}
		}
		level = below
	}
	return all
}

// TreeCounts models store.Store.RunTreeCounts.
func (m *Model) TreeCounts(run uuid.UUID, now time.Time) store.TreeCounts {
	counts := store.TreeCounts{RunsByStatus: make(map[store.Status]int), OpenCallsByKind: make(map[store.StepKind]int)}
	for _, r := range m.tree(run, true) {
		counts.RunsByStatus[r.Status]++
		if r.Status == store.Pending && r.Epoch == (store.Epoch{}) && r.WakeAt.After(now) {
			counts.DelayedCount++
		}
		for _, s := range r.Steps {
			if !r.Status.IsTerminal() && (!s.Status.IsTerminal() || s.Kind == store.KindSleep && s.NextAt.After(now)) {
				counts.OpenCallsByKind[s.Kind]++
			}
		}
	}
	return counts
}

// crashesSinceProgress returns the number of crashes since the last progress.
func (r *Run) crashesSinceProgress() int16 {
	if r.progress() > r.ProgressAtLastCrash {
		return 0
	}
	return r.Crashes
}

// MatchesEvents reports whether these are all events of the model, with the events of each transaction
// together. If swap is true, the last two transactions may be exchanged if no run has events in both.
func (m *Model) MatchesEvents(events []store.Event, swap bool) bool {
	groups := m.Events
	if matchEvents(groups, events) {
		return true
	}
	if n := len(groups); swap && n >= 2 && haveNoRunInCommon(groups[n-2], groups[n-1]) {
		groups = slices.Clone(groups)
		groups[n-2], groups[n-1] = groups[n-1], groups[n-2]
		return matchEvents(groups, events)
	}
	return false
}

// ReorderEvents reorders the last two transactions to match the order of the given events.
func (m *Model) ReorderEvents(events []store.Event) {
	if n := len(m.Events); n >= 2 && !matchEvents(m.Events, events) {
		m.Events = slices.Clone(m.Events)
		m.Events[n-2], m.Events[n-1] = m.Events[n-1], m.Events[n-2]
	}
}

func matchEvents(groups [][]store.Event, events []store.Event) bool {
	for _, group := range groups {
		if len(group) > len(events) {
			return false
		}
		want, got := slices.Clone(group), slices.Clone(events[:len(group)])
		slices.SortFunc(want, compareEvents)
		slices.SortFunc(got, compareEvents)
		for i := range want {
			got[i].Cursor = ""
			if !got[i].At.Equal(want[i].At) {
				return false
			}
			got[i].At = want[i].At
			if got[i] != want[i] {
				return false
			}
		}
		events = events[len(group):]
	}
	return len(events) == 0
}

// haveNoRunInCommon reports whether no run has events in both lists.
func haveNoRunInCommon(l, r []store.Event) bool {
	for _, one := range l {
		if slices.ContainsFunc(r, func(other store.Event) bool { return other.Run == one.Run }) {
			return false
		}
	}
	return true
}

// RunUUIDs returns the UUIDs of all runs, ordered by name.
func (m *Model) RunUUIDs() []uuid.UUID {
	return slices.SortedFunc(maps.Keys(m.Runs), func(l, r uuid.UUID) int {
		return cmp.Or(cmp.Compare(m.Runs[l].Name, m.Runs[r].Name), bytes.Compare(l[:], r[:]))
	})
}
