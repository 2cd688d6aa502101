package engine

import (
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// localPermitLines holds the steps of this worker that wait in lines, in order. When a step gives its permit back, the first of the
// line ask in the same exchange: in most cases it grants the permit to the next one. Without that the exchange would offer it,
// and the offer would come back by a notification. Steps of other processes that are before them get an offer as always.
type localPermitLines map[store.PermitLineKey][]stepInLine

// stepInLine is a step in a line, with what decides about its order.
type stepInLine struct {
	*stepAwaitingPermit
	place store.Permit
}

func compareStepsInLine(a, b stepInLine) int { return store.ComparePlaces(&a.place, &b.place) }

// addToLocalLine records the place of a step in the line of the database. p.mu is held.
func (p *permitExchange) addToLocalLine(s *stepAwaitingPermit, a *store.PermitRequest) {
	step := stepInLine{s, store.Permit{Run: a.Run, Step: a.Step, Units: a.Units, Priority: a.Priority, ArrivedAt: a.ArrivedAt}}
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
	s.gone = true
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

// wakeForReturns lets the first steps of each line ask for the units that are to be given back to it. It returns how many steps
// it has woken. Asks that are pending already count. No call is in progress.
func (p *permitExchange) wakeForReturns() (woken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	units := make(map[store.PermitLineKey]int)
	for i := range p.returns {
		r := &p.returns[i]
		units[store.PermitLineKey{Limit: r.Limit, Key: r.Key}] += r.units
	}
	for line, n := range units {
		woken += p.localPermitLines.wakeFirst(line, n)
	}
	return woken
}

// wakeFirst lets the first steps of the line ask that can use the units. It returns how many did not ask already.
func (l localPermitLines) wakeFirst(line store.PermitLineKey, units int) (woken int) {
	for _, s := range l[line] {
		if units <= 0 {
			break
		}
		if s.run.wakeStep(s.stepAwaitingPermit) {
			woken++
		}
		units -= max(1, s.place.Units)
	}
	return woken
}

// recordOutcomes updates the lines after a call: steps that have got a permit leave them, and steps that wait take their places.
// It returns how many permits were granted. The next call may need the lines before the steps themselves have seen their outcomes.
func (p *permitExchange) recordOutcomes(asks []*pendingPermitRequest) (granted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range asks {
		switch {
		case a.place.gone:
		case a.Outcome == store.Locked:
			a.place.run.recordPlace(a.place, a.ArrivedAt)
			p.addToLocalLine(a.place, a.PermitRequest)
		default:
			p.removeFromLocalLine(a.place)
			if a.Outcome == store.Written {
				granted++
			}
		}
	}
	return granted
}
