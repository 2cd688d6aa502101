package permits

import (
	"slices"

	"github.com/seed8ec063be/durable/internal/store"
)

// waitersByLimitKey holds the steps of this worker that wait for permits, in order. When a step gives its permit back, the first
// waiting steps of the same limit key send requests in the same exchange: in most cases it grants the permit to the next one. Without that the exchange would offer it,
// and the offer would come back by a notification. Steps of other processes that are before them get an offer as always.
type waitersByLimitKey map[store.LimitKey][]localWaiter

// localWaiter is a waiting step, with what decides about its order.
type localWaiter struct {
	*WaitingStep
	permit store.PermitRow
}

func compareLocalWaiters(a, b localWaiter) int {
	return store.ComparePermits(&a.permit, &b.permit)
}

// addLocalWaiter records the place of a step in the line of the database. p.mu is held.
func (p *Batcher) addLocalWaiter(s *WaitingStep, a *store.PermitRequest) {
	step := localWaiter{s, store.PermitRow{Run: a.Run, Step: a.Step, Units: a.Units, Priority: a.Priority, ArrivedAt: a.ArrivedAt}}
	if p.localWaiters == nil {
		p.localWaiters = make(waitersByLimitKey)
	}
	p.removeLocalWaiter(s)
	line := p.localWaiters[s.limitKey]
	i, _ := slices.BinarySearchFunc(line, step, compareLocalWaiters)
	p.localWaiters[s.limitKey] = slices.Insert(line, i, step)
}

// EndWait removes a step that no longer waits, and lets the next steps of its run request their permits.
func (p *Batcher) EndWait(s *WaitingStep) {
	p.endLocalWait(s)
	s.runSteps.endWait(s)
}

// endLocalWait removes a step that no longer waits.
func (p *Batcher) endLocalWait(s *WaitingStep) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.hasLeft = true
	p.removeLocalWaiter(s)
}

// removeLocalWaiter removes the step from the waiters of its limit key. p.mu is held.
func (p *Batcher) removeLocalWaiter(s *WaitingStep) {
	line := slices.DeleteFunc(p.localWaiters[s.limitKey], func(o localWaiter) bool { return o.WaitingStep == s })
	if len(line) == 0 {
		delete(p.localWaiters, s.limitKey)
	} else {
		p.localWaiters[s.limitKey] = line
	}
}

// wakeLocalWaiters lets the first steps of each limit key request the units that are to be given back to it. It returns how many steps
// it has woken. Requests that are pending already count. No call is in progress.
func (p *Batcher) wakeLocalWaiters() (woken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	units := make(map[store.LimitKey]int)
	for i := range p.pendingReturns {
		r := &p.pendingReturns[i]
		units[store.LimitKey{Limit: r.Limit, Key: r.Key}] += r.units
	}
	for line, n := range units {
		woken += p.localWaiters.wakeStepsForUnits(line, n)
	}
	return woken
}

// wakeStepsForUnits lets the first waiting steps that can use the units send requests. It returns how many had no request pending.
func (l waitersByLimitKey) wakeStepsForUnits(line store.LimitKey, units int) (woken int) {
	for _, s := range l[line] {
		if units <= 0 {
			break
		}
		if s.runSteps.wakeStep(s.WaitingStep) {
			woken++
		}
		units -= max(1, s.permit.Units)
	}
	return woken
}

// updateLocalWaitersFromOutcomes updates the waiters after a call: steps that have got a permit are removed, and steps that wait take their places.
// It returns how many permits were granted. The next call may need the waiters before the steps themselves have seen their outcomes.
func (p *Batcher) updateLocalWaitersFromOutcomes(requests []*pendingRequest) (granted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range requests {
		p.hasNewWaiter = p.hasNewWaiter || a.Outcome == store.Locked
		switch {
		case a.step.hasLeft:
		case a.Outcome == store.Locked:
			a.step.runSteps.recordPlace(a.step, a.ArrivedAt)
			p.addLocalWaiter(a.step, a.PermitRequest)
		default:
			p.removeLocalWaiter(a.step)
			if a.Outcome == store.Written {
				granted++
			}
		}
	}
	return granted
}
