package model

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// Failures models store.Store.Failures.
func (m *Model) Failures(f store.Filter, examine, limit int) (groups []store.FailureGroup) {
	byKey := make(map[store.FailureKey][]*Run)
	for _, id := range m.sortedUUIDs() {
		if r := m.Runs[id]; r.hasFailed() {
			byKey[r.Failure] = append(byKey[r.Failure], r)
		}
	}
	for key, runs := range byKey {
		slices.Reverse(runs)
		g := store.FailureGroup{Key: key, HasMoreRuns: len(runs) >= examine}
		for _, r := range runs[:min(len(runs), examine)] {
			if !r.matches(&f) {
				continue
			}
			if g.RunCount == 0 || r.EndedAt.Before(g.First) {
				g.First = r.EndedAt
			}
			if g.RunCount == 0 || r.EndedAt.After(g.Last) {
				g.Last = r.EndedAt
				g.Newest = store.Run{UUID: r.UUID, Parent: r.Parent, Name: r.Name, Workflow: r.Workflow, Status: r.Status, Error: bytes.Clone(r.Error)}
			}
			g.RunCount++
		}
		if g.RunCount > 0 {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(l, r store.FailureGroup) int {
		return cmp.Or(cmp.Compare(l.Key.Workflow, r.Key.Workflow), cmp.Compare(l.Key.Step, r.Key.Step), cmp.Compare(l.Key.Type, r.Key.Type))
	})
	return groups[:min(len(groups), limit)]
}

func (r *Run) hasFailed() bool { return r.Status == store.Failed || r.Status == store.Expired }
