package engine

import (
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// localPermitLines holds the steps of this worker that wait in lines, in order. When a step gives its permit back, the first of the
// line ask at once: in most cases the exchange that returns the permit grants it to the next one. Without that the
// exchange would offer it, and the offer would come back by a notification. Steps of other processes that are before
// them get an offer as always.
type localPermitLines map[store.PermitLineKey][]stepInLine

// stepInLine is a step in a line, with what decides about its order.
type stepInLine struct {
	*stepAwaitingPermit
	place store.Permit
}

func compareStepsInLine(a, b stepInLine) int { return store.ComparePlaces(&a.place, &b.place) }

// addToLocalLine records the place of a step in the line of the database.
func (p *permitExchange) addToLocalLine(s *stepAwaitingPermit, a *store.PermitRequest) {
	step := stepInLine{s, store.Permit{Run: a.Run, Step: a.Step, Units: a.Units, Priority: a.Priority, ArrivedAt: a.ArrivedAt}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.localPermitLines == nil {
		p.localPermitLines = make(localPermitLines)
	}
	p.removeFromLocalLine(s)
	line := p.localPermitLines[s.line]
	i, _ := slices.BinarySearchFunc(line, step, compareStepsInLine)
	p.localPermitLines[s.line] = slices.Insert(line, i, step)
}

// leaveLocalLine removes a step that no longer waits.
func (p *permitExchange) leaveLocalLine(s *stepAwaitingPermit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeFromLocalLine(s)
}

// removeFromLocalLine removes the step from its line. p.mu is held.
func (p *permitExchange) removeFromLocalLine(s *stepAwaitingPermit) {
	line := slices.DeleteFunc(p.localPermitLines[s.line], func(o stepInLine) bool { return o.stepAwaitingPermit == s })
	if len(line) == 0 {
		delete(p.localPermitLines, s.line)
	} else {
		p.localPermitLines[s.line] = line
	}
}

// wakeNext lets the first steps of the line ask that can use the units.
func (p *permitExchange) wakeNext(line store.PermitLineKey, units int) {
	p.mu.Lock()
	first := slices.Clone(p.localPermitLines[line][:min(len(p.localPermitLines[line]), units)])
	p.mu.Unlock()
	for _, s := range first {
		if units <= 0 {
			return
		}
		s.run.wakeStep(s.stepAwaitingPermit) // one that asks already counts too
		units -= max(1, s.place.Units)
	}
}
