package permits

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// extraPermitRequestersWoken is how many further steps of a run request their permits when one of them stops waiting.
const extraPermitRequestersWoken = 2

// WaitingSteps are the steps of one run that wait for permits, by limit key. What is free goes to those that are first in
// the limit key, so only these send requests when the run is woken: otherwise n steps would send n requests each.
type WaitingSteps struct {
	mu         sync.Mutex
	byLimitKey map[store.LimitKey][]*WaitingStep
}

// WaitingStep is one step that waits. It is requesting until recordPlace is called, and after each wake.
type WaitingStep struct {
	runSteps     *WaitingSteps
	limitKey     store.LimitKey
	step         string
	arrivedAt    time.Time // zero: not known yet
	isRequesting bool
	requestDue   wakeup.Chan // has a value when the step should request its permit
	hasLeft      bool        // it has left the local limit key; guarded by Batcher.mu
}

// Add adds a step, which then requests its permit.
func (q *WaitingSteps) Add(g store.LimitKey, step string) *WaitingStep {
	s := &WaitingStep{runSteps: q, limitKey: g, step: step, isRequesting: true, requestDue: wakeup.NewChan()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.byLimitKey == nil {
		q.byLimitKey = make(map[store.LimitKey][]*WaitingStep)
	}
	q.byLimitKey[g] = append(q.byLimitKey[g], s)
	return s
}

// RequestDue returns a channel that has a value when the step should request its permit again.
func (s *WaitingStep) RequestDue() <-chan struct{} { return s.requestDue }

// recordPlace records the place of a step in the line of the database.
func (q *WaitingSteps) recordPlace(s *WaitingStep, arrived time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.isRequesting = false
	if s.arrivedAt.Equal(arrived) {
		return
	}
	q.remove(s)
	s.arrivedAt = arrived
	line := q.byLimitKey[s.limitKey]
	i, _ := slices.BinarySearchFunc(line, s, comparePermitPlaces)
	q.byLimitKey[s.limitKey] = slices.Insert(line, i, s)
}

// comparePermitPlaces orders as store.ComparePermits does, with those last that have no place yet.
func comparePermitPlaces(a, b *WaitingStep) int {
	switch {
	case a.arrivedAt.IsZero() && b.arrivedAt.IsZero():
		return 0
	case a.arrivedAt.IsZero():
		return 1
	case b.arrivedAt.IsZero():
		return -1
	}
	return cmp.Or(a.arrivedAt.Compare(b.arrivedAt), strings.Compare(a.step, b.step))
}

func (q *WaitingSteps) remove(s *WaitingStep) {
	line := q.byLimitKey[s.limitKey]
	if i := slices.Index(line, s); i >= 0 {
		q.byLimitKey[s.limitKey] = slices.Delete(line, i, i+1)
	}
	if len(q.byLimitKey[s.limitKey]) == 0 {
		delete(q.byLimitKey, s.limitKey)
	}
}

// endWait removes a step that no longer waits, and lets the next ones request their permits.
func (q *WaitingSteps) endWait(s *WaitingStep) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(s)
	left := extraPermitRequestersWoken
	for _, next := range q.byLimitKey[s.limitKey] {
		if left == 0 || next.arrivedAt.IsZero() {
			return
		}
		if !next.isRequesting {
			next.isRequesting = true
			next.requestDue.Notify()
		}
		left--
	}
}

// Wake lets the first steps of each limit key send requests, and also those whose requests may have been decided before the event that woke the run.
func (q *WaitingSteps) Wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.byLimitKey {
		for i, s := range line {
			if i == 0 || s.isRequesting {
				s.isRequesting = true
				s.requestDue.Notify()
			}
		}
	}
}

// wakeStep lets one step request its permit. It returns false if the step is requesting already, or no longer waits.
func (q *WaitingSteps) wakeStep(s *WaitingStep) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.isRequesting || !slices.Contains(q.byLimitKey[s.limitKey], s) {
		return false
	}
	s.isRequesting = true
	s.requestDue.Notify()
	return true
}
