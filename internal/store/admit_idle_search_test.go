package store

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// idleRunsInMemory is an IdleRunsReader of runs that wait, which it reads two at a time.
type idleRunsInMemory struct {
	waiting []AdmissionRun
	locked  uuid.UUID
	unseen  bool
}

func (m *idleRunsInMemory) HasUnseenRuns() (bool, error) { return m.unseen, nil }

func (m *idleRunsInMemory) ReadIdleRuns(c IdleRunsCursor) (IdleRunsChunk, error) {
	chunk := IdleRunsChunk{ReadUntil: c.After}
	if c.Status == Paused {
		return chunk, nil
	}
	for _, r := range m.waiting {
		if slices.Compare(r.Run[:], c.After[:]) <= 0 {
			continue
		}
		if chunk.HasMore = r.Run == m.locked || len(chunk.Uncounted) == 2; chunk.HasMore {
			break
		}
		chunk.Uncounted, chunk.ReadUntil = append(chunk.Uncounted, r), r.Run
	}
	return chunk, nil
}

// No root run begins before all idle runs were read, whatever locks them, and no run with a wake time is left that no admission has seen.
// Each pass may be in another process.
func TestARunBeginsOnlyAfterTheSearchForIdleRuns(t *testing.T) {
	q := newQueueInMemory(QueueSettings{MaxInProgress: 6})
	q.state.RecordedSettings = q.state.Settings.EncodeJSON()
	var idle idleRunsInMemory
	for range 5 {
		r := q.start("", 0, 1, true)
		r.Admission, r.Status, r.WasExecuted, r.HasPlace, r.WakeAt = AdmissionNotNeeded, Waiting, true, false, q.state.Now.AddDate(1, 0, 0)
		idle.waiting = append(idle.waiting, *r)
		delete(q.runs, r.Run)
	}
	late := idle.waiting[4] // becomes idle during the search
	idle.waiting = idle.waiting[:4]
	q.start("", 0, 1, true)
	q.start("", 0, 1, true)
	pass := func(what string, open, executing int, advances, ends bool) {
		t.Helper()
		s := q.state
		s.AddRuns(q.sorted(func(r *AdmissionRun) bool { return r.Admission == AdmissionPending && !r.WakeAt.After(s.Now) }))
		s.AddRunsInLine(WaitingRunsRange{Root: true}, q.sorted(func(r *AdmissionRun) bool { return r.State == PlaceInLine }), false)
		if err := s.SearchIdleRuns(&idle); err != nil {
			t.Fatal(err)
		}
		plan := s.Plan("", 0)
		for _, r := range plan.RunsToWrite {
			if r.Status != Waiting {
				q.runs[r.Run] = &r
			}
		}
		q.state.Use, q.state.AppliedSettings = s.Use, s.AppliedSettings
		if s.Use.InProgress != open || s.Use.Executing != executing || plan.SearchAdvanced != advances || plan.HasMoreWork == ends || s.settingsChanged() {
			t.Errorf("%s: %+v, advanced %v, more work %v, applied %q", what, s.Use, plan.SearchAdvanced, plan.HasMoreWork, s.AppliedSettings)
		}
	}
	idle.unseen = true
	pass("a run that no admission has seen may become idle", 0, 0, false, false)
	idle.unseen, idle.locked = false, idle.waiting[3].Run
	pass("the first part", 2, 0, true, false)
	pass("up to a locked run", 3, 0, true, false)
	pass("still locked", 3, 0, false, false)
	idle.unseen, idle.locked = true, uuid.UUID{}
	pass("a run has woken before the search", 4, 0, true, false)
	pass("no admission has seen it yet", 4, 0, false, false)
	idle.unseen = false
	pass("all that were found are counted", 6, 2, true, true)
	idle.waiting = []AdmissionRun{late}
	pass("before the second search", 6, 2, false, true)
	q.state.Now = q.state.Now.Add(secondIdleSearchDelay)
	idle.locked = late.Run
	pass("the second search reaches a locked run", 6, 2, true, false)
	idle.locked = uuid.UUID{}
	pass("it counts the run", 7, 2, true, true)
	if q.state.AppliedSettings != q.state.RecordedSettings {
		t.Errorf("the search goes on at %q", q.state.AppliedSettings)
	}
}
