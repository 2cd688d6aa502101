package engine

import (
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// standing holds the steps of this worker that wait in lines, in order. When a step gives its permit back, the first of the
// line ask at once: in most cases the exchange that returns the permit grants it to the next one. Without that the
// exchange would offer it, and the offer would come back by a notification. Steps of other processes that are before
// them get an offer as always.
type standing map[store.PermitLineKey][]standingStep

// standingStep is a step in a line, with what decides about its order.
type standingStep struct {
	*stepAwaitingPermit
	place store.Permit
}

func compareStandingSteps(a, b standingStep) int { return store.ComparePlaces(&a.place, &b.place) }

// stand records the place of a step in the line of the database.
func (p *permitExchange) stand(s *stepAwaitingPermit, a *store.PermitRequest) {
	step := standingStep{s, store.Permit{Run: a.Run, Step: a.Step, Units: a.Units, Priority: a.Priority, ArrivedAt: a.ArrivedAt}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.standing == nil {
		p.standing = make(standing)
	}
	p.removeStanding(s)
	line := p.standing[s.line]
	i, _ := slices.BinarySearchFunc(line, step, compareStandingSteps)
	p.standing[s.line] = slices.Insert(line, i, step)
}

// leave removes a step that no longer waits.
func (p *permitExchange) leave(s *stepAwaitingPermit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeStanding(s)
}

// removeStanding removes the step from its line. p.mu is held.
func (p *permitExchange) removeStanding(s *stepAwaitingPermit) {
	line := slices.DeleteFunc(p.standing[s.line], func(o standingStep) bool { return o.stepAwaitingPermit == s })
	if len(line) == 0 {
		delete(p.standing, s.line)
	} else {
		p.standing[s.line] = line
	}
}

// wakeNext lets the first steps of the line ask that can use the units.
func (p *permitExchange) wakeNext(line store.PermitLineKey, units int) {
	p.mu.Lock()
	first := slices.Clone(p.standing[line][:min(len(p.standing[line]), units)])
	p.mu.Unlock()
	for _, s := range first {
		if units <= 0 {
			return
		}
		s.run.wakeStep(s.stepAwaitingPermit) // one that asks already counts too
		units -= max(1, s.place.Units)
	}
}
