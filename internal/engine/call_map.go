package engine

import (
	"errors"
	"strconv"
	"sync"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// OpenMapScope opens a scope for a Map and records the number of its items, so that users can see its progress. The row of the Map is written
// in the background; the caller calls the returned function at the end of the Map. In a scope that can begin no new calls, such as that of
// an ended branch, there is no row, and each item returns its own result or error.
func (s *Scope) OpenMapScope(name string, site uintptr, total int) (*Scope, func(), error) {
	if err := naming.Check("map", name); err != nil {
		return nil, nil, err
	}
	full := s.fullName(name)
	s.r.mu.Lock()
	recorded, err := s.beginCallLocked(full, store.KindMap, site)
	out := s.endReasonLocked()
	if s.r.openedMaps == nil {
		s.r.openedMaps = make(map[string]struct{})
	}
	s.r.openedMaps[full] = struct{}{}
	sub := s.subScope(full)
	sub.mapName = name
	sub.noteNewMap(s, recorded, site)
	s.r.mu.Unlock()
	if errors.Is(err, ErrDiverged) {
		s.reportDivergence(full, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if s.isInsideCall() {
		return nil, nil, nestedCallError(s.r, full)
	}
	if recorded != nil || total == 0 || out != nil || s.r.preflightFindings != nil {
		return sub, func() {}, nil
	}
	sub.mapRow = &mapRow{total: total, task: &stepTask{
		r: s.r, scope: s, spec: &CallSpec{Kind: store.KindMap}, name: full, attempt: 1, firstBegan: s.r.e.clock.Now(), seq: s.nextSeq(site),
	}}
	return sub, sub.mapRow.end, nil
}

// mapRow is the row of a Map that is not recorded. It is written when the first item is about to be executed. If that item holds the run, a row
// would make the next execution take the Map for one that an earlier execution had made, and code that fits the history would miss it. If all
// items are refused, a row would be written or not, depending on what else is committed.
type mapRow struct {
	total int
	task  *stepTask
	once  sync.Once
	entry *journal.Entry // nil: the row is not written
}

// write writes the row in the background, unless it was written or the item is about to be refused, perhaps because another item holds the run.
// m may be nil.
func (m *mapRow) write() {
	if m == nil || m.task.scope.isClosed() {
		return
	}
	m.once.Do(func() {
		w := m.task.newStepWrite(store.StepCompleted, strconv.AppendInt(nil, int64(m.total), 10), nil)
		if entry, err := m.task.r.e.journal.AppendStartedMarker(w); err == nil { // else the items' own writes fail for the same cause
			m.entry = entry
		}
	})
}

// isClosed reports whether calls in the scope can do nothing new. Other than endReason, it does not record that the goroutine was notified of a
// suspension, because the call that follows is refused, and then shows whether the run was parked too early.
func (s *Scope) isClosed() bool {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return s.endReasonLocked() != nil
}

// end is called when all items have returned.
func (m *mapRow) end() {
	m.once.Do(func() {})
	if m.entry != nil {
		_, _ = m.task.r.e.journal.WithdrawOrAwaitStartedMarker(m.entry)
	}
}
