package engine

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// stepsWokenNext is how many further steps of a run ask when one of them is done with waiting.
const stepsWokenNext = 2

// runPermitWaits are the steps of one run that wait for permits, by line. What is free goes to those that are first in
// the line, so only these ask when the run is woken: otherwise n steps would ask n times each.
type runPermitWaits struct {
	mu    sync.Mutex
	lines map[store.PermitLineKey][]*stepAwaitingPermit
}

// stepAwaitingPermit is one step that waits. It is asking until recordPlace is called, and after each wake.
type stepAwaitingPermit struct {
	run      *runPermitWaits
	line     store.PermitLineKey
	step     string
	arrived  time.Time // zero: not known yet
	isAsking bool
	mustAsk  notifier // has a value when the step should ask
	gone     bool     // it has left the local line; guarded by permitExchange.mu
}

// addStep adds a step, which then asks.
func (q *runPermitWaits) addStep(g store.PermitLineKey, step string) *stepAwaitingPermit {
	s := &stepAwaitingPermit{run: q, line: g, step: step, isAsking: true, mustAsk: newNotifier()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lines == nil {
		q.lines = make(map[store.PermitLineKey][]*stepAwaitingPermit)
	}
	q.lines[g] = append(q.lines[g], s)
	return s
}

// recordPlace records the place of a step in the line of the database.
func (q *runPermitWaits) recordPlace(s *stepAwaitingPermit, arrived time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.isAsking = false
	if s.arrived.Equal(arrived) {
		return
	}
	q.remove(s)
	s.arrived = arrived
	line := q.lines[s.line]
	i, _ := slices.BinarySearchFunc(line, s, comparePermitPlaces)
	q.lines[s.line] = slices.Insert(line, i, s)
}

// comparePermitPlaces orders as store.ComparePlaces does, with those last that have no place yet.
func comparePermitPlaces(a, b *stepAwaitingPermit) int {
	switch {
	case a.arrived.IsZero() && b.arrived.IsZero():
		return 0
	case a.arrived.IsZero():
		return 1
	case b.arrived.IsZero():
		return -1
	}
	return cmp.Or(a.arrived.Compare(b.arrived), strings.Compare(a.step, b.step))
}

func (q *runPermitWaits) remove(s *stepAwaitingPermit) {
	line := q.lines[s.line]
	if i := slices.Index(line, s); i >= 0 {
		q.lines[s.line] = slices.Delete(line, i, i+1)
	}
	if len(q.lines[s.line]) == 0 {
		delete(q.lines, s.line)
	}
}

// leaveLine removes a step that no longer waits, and lets the next ones ask.
func (q *runPermitWaits) leaveLine(s *stepAwaitingPermit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(s)
	left := stepsWokenNext
	for _, next := range q.lines[s.line] {
		if left == 0 || next.arrived.IsZero() {
			return
		}
		if !next.isAsking {
			next.isAsking = true
			next.mustAsk.notify()
		}
		left--
	}
}

// wake lets the first of each line ask, and those whose ask may have been judged before what woke the run.
func (q *runPermitWaits) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, line := range q.lines {
		for i, s := range line {
			if i == 0 || s.isAsking {
				s.isAsking = true
				s.mustAsk.notify()
			}
		}
	}
}

// wakeStep lets one step ask. It reports false if the step asks already, or no longer waits.
func (q *runPermitWaits) wakeStep(s *stepAwaitingPermit) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.isAsking || !slices.Contains(q.lines[s.line], s) {
		return false
	}
	s.isAsking = true
	s.mustAsk.notify()
	return true
}
