package store

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	offerDuration    = 2 * time.Second  // how long units are kept for a step whose run was woken
	maxOfferTimeLeft = 10 * time.Second // an offer that has more time left than that was made before the clock was set back
)

// expiredLeaseRetryDelay is when a step repeats its request if its run has no lease at the moment. The step keeps its place.
const expiredLeaseRetryDelay = 500 * time.Millisecond

// MaxPermitsRead is how many waiting steps of a limit key a store reads for one plan at most, and how many steps that have missed an offer.
// A store reads the steps that have missed an offer separately, because the line may begin with any number of such steps if no worker
// executes their runs.
const MaxPermitsRead = 100

// LimitKeyState is the state of one limit key, which the transaction that grants permits has locked.
type LimitKeyState struct {
	LimitKey
	Settings  LimitSettings
	HasBounds bool      // the limit has bounds; otherwise nothing is granted
	Now       time.Time // the time of places and of the rate: never before that of an earlier transaction of this limit key
	// RateUsedUntil is the time up to which the rate has been used: the theoretical arrival time of the generic cell rate algorithm (ITU-T
	// I.371).
	RateUsedUntil    time.Time
	ClosedUntil      time.Time       // nothing is granted before this time
	Permits          []PermitWithRun // those that are held or offered, and of those that wait the first MaxPermitsRead that have missed an offer, and then that have not, in order
	DatabaseTimeline string          // the point of the database's history at which the limit key was last used; empty: unknown
}

// PermitWithRun is a permit together with the state of its run.
type PermitWithRun struct {
	PermitRow
	RunState   RunState
	LeaseUntil time.Time // when the lease of the run ends
	RunLocked  bool      // another transaction has locked the run, so it cannot be woken now
}

// isInUse reports whether the permit is in use: its attempt executes, or may still do so. The argument now is the time of the caller,
// as the leases are, and not of the limit key: if the clock was set back, leases end before the time of the limit key.
func (p *PermitWithRun) isInUse(now time.Time) bool {
	return p.Status == PermitHeld && p.RunState.Status == Running && p.RunState.Epoch == p.Epoch && p.LeaseUntil.After(now)
}

// mayWait reports whether the step of the permit may stand in the line. A running run whose pause is requested keeps its places until
// it has left memory, because its steps would not know that they have lost them if the run is resumed before.
func (p *PermitWithRun) mayWait() bool {
	return p.RunState.Found && p.RunState.Status < Paused && (p.RunState.Status == Running || !p.pauseRequested())
}

func (p *PermitWithRun) pauseRequested() bool { return p.RunState.Control&PausedMask != 0 }

// isOffered reports whether the units are kept for the step.
func (p *PermitWithRun) isOffered(now time.Time) bool {
	return p.Status == PermitOffered && p.OfferedUntil.After(now) && !p.OfferedUntil.After(now.Add(maxOfferTimeLeft))
}

// isWakeable reports whether the run of the step can be woken for an offer.
func (p *PermitWithRun) isWakeable() bool {
	return !p.MissedOffer && !p.RunLocked && !p.pauseRequested() && p.isOfPresentExecution()
}

// isOfPresentExecution reports whether the execution that requested the permit last continues, in memory or when it is woken. If not, the
// next execution requests the permit again, unless it does not reach the step: the run may be cancelled, or was repaired.
func (p *PermitWithRun) isOfPresentExecution() bool {
	return p.RunState.Epoch == p.Epoch && (p.RunState.Status == Running || p.RunState.Status == Waiting)
}

// PermitPlan holds what a transaction changes in one limit key.
type PermitPlan struct {
	ToDelete      []PermitRow
	ToWrite       []PermitRow // replaces the row of the step, if it has one
	ToOffer       []PermitRow // as Write, if the run can be locked: it is woken
	RateUsedUntil time.Time
	ClosedUntil   time.Time
	nextOfferAt   time.Time // when the first in line can be offered what the rate does not allow now; zero: no time is known
}

// ComparePermits compares the places of two steps in the line of a limit key. A step with a higher priority comes first; among steps of
// the same priority, the step that arrived earlier comes first.
func ComparePermits(a, b *PermitRow) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority), a.ArrivedAt.Compare(b.ArrivedAt),
		bytes.Compare(a.Run[:], b.Run[:]), strings.Compare(a.Step, b.Step),
	)
}

// PermitRequestingSteps holds what a store has read about the steps that request permits: the permits that these steps have already, of any
// limit key, and the states of their runs.
type PermitRequestingSteps struct {
	HeldPermits map[*PermitRequest]PermitRow
	Runs        map[uuid.UUID]PermitRequestingRun
}

// PermitRequestingRun is the run of a step that requests a permit.
type PermitRequestingRun struct {
	RunState   RunState
	LeaseUntil time.Time // when the lease of the run ends
}

// Plan decides which steps get a permit of the limit key, and sets the outcomes of the requests. The argument timeline is the present
// timeline of the database.
func (l *LimitKeyState) Plan(b *PermitBatch, steps *PermitRequestingSteps, timeline string) PermitPlan {
	plan := PermitPlan{RateUsedUntil: l.Settings.rate().capUsedUntilAtBurst(l.RateUsedUntil, l.Now), ClosedUntil: l.ClosedUntil}
	if l.DatabaseTimeline != "" && timeline != "" && timeline != l.DatabaseTimeline {
		plan.ClosedUntil = l.Now.Add(max(b.CloseDurationAfterRewind, l.Settings.rate().timeToRefill())) // what was granted after that point is not known
	}
	var requests []*PermitRequest
	requesting := make(map[stepKey]*PermitRequest)
	for _, a := range b.Requests {
		if a.Limit == l.Limit && a.Key == l.Key && !l.fenceStaleRequest(a, steps.Runs[a.Run].RunState) {
			requests, requesting[stepKey{a.Run, a.Step}] = append(requests, a), a
		}
	}
	free, end := l.freeUnits(&plan), l.lastReadWaitingPermit()
	var line []PermitWithRun
	passed := false // steps get no further offers, so that the next plan reads others instead
	for i := range l.Permits {
		p := &l.Permits[i]
		a := requesting[stepKey{p.Run, p.Step}]
		switch {
		case p.Status == PermitHeld && a != nil: // decided with the requests
		case p.isInUse(b.Now):
			free.takeUnits(l.Settings.CapUnits(p.Units), false)
		case p.Status == PermitHeld, !p.mayWait():
			plan.ToDelete = append(plan.ToDelete, p.PermitRow)
		case a != nil:
		case p.Status == PermitOffered && (p.pauseRequested() || l.yieldsToEarlierStep(p, requests, steps)):
			p.Status, p.OfferedUntil = PermitWaiting, time.Time{}
			plan.ToWrite = append(plan.ToWrite, p.PermitRow)
			line = append(line, *p)
		case p.isOffered(b.Now):
			free.offerUnits(l.Settings.CapUnits(p.Units))
		case p.Status == PermitOffered:
			p.Status, p.OfferedUntil, p.MissedOffer = PermitWaiting, time.Time{}, true
			plan.ToWrite = append(plan.ToWrite, p.PermitRow)
			line = append(line, *p)
		case !p.MissedOffer && !p.isOfPresentExecution():
			p.MissedOffer, passed = true, true
			plan.ToWrite = append(plan.ToWrite, p.PermitRow)
			line = append(line, *p)
		default:
			line = append(line, *p)
		}
	}
	for _, a := range requests {
		if p, wants := l.planRequest(a, b.Now, steps, free, &plan); wants && (end == nil || ComparePermits(&p.PermitRow, end) <= 0) {
			line = append(line, p)
		}
	}
	slices.SortFunc(line, func(a, b PermitWithRun) int { return ComparePermits(&a.PermitRow, &b.PermitRow) })
	mayServeMore := l.grantInOrder(line, b.Now, requesting, free, &plan)
	switch {
	case !plan.nextOfferAt.IsZero():
		b.ScheduleRecheck(l.LimitKey, plan.nextOfferAt)
	case mayServeMore && passed && end != nil:
		b.ScheduleRecheck(l.LimitKey, b.Now)
	}
	return plan
}

// yieldsToEarlierStep reports whether an earlier step of the same run, which has missed its offer, requests its permit. Then the earlier
// step is served first: of the steps of one run, only the first in the line request permits.
func (l *LimitKeyState) yieldsToEarlierStep(p *PermitWithRun, requests []*PermitRequest, steps *PermitRequestingSteps) bool {
	return slices.ContainsFunc(requests, func(a *PermitRequest) bool {
		had, known := steps.HeldPermits[a]
		return a.Run == p.Run && known && had.MissedOffer && had.Limit == l.Limit && had.Key == l.Key && ComparePermits(&had, &p.PermitRow) < 0
	})
}

// stepKey identifies a step.
type stepKey struct {
	run  uuid.UUID
	step string
}

// lastReadWaitingPermit returns the last permit that was read of those that can get an offer, or nil if the whole line was read.
func (l *LimitKeyState) lastReadWaitingPermit() (last *PermitRow) {
	n := 0
	for i := range l.Permits {
		if p := &l.Permits[i].PermitRow; p.Status == PermitWaiting && !p.MissedOffer {
			last = p
			n++
		}
	}
	if n < MaxPermitsRead {
		return nil
	}
	return new(*last) // the plan changes what was read
}

// fenceStaleRequest reports whether the request comes from an execution that has ended, and sets its outcome then. Such a request changes nothing: the
// step may have a permit of a later execution.
func (l *LimitKeyState) fenceStaleRequest(a *PermitRequest, state RunState) bool {
	a.GrantedAt, a.RetryAt, a.RunState, a.LimitHasRate = time.Time{}, time.Time{}, RunState{}, l.Settings.Rate > 0
	if state.Found && state.Status == Running && state.Epoch == a.Epoch {
		return false
	}
	a.Outcome, a.RunState = Fenced, state
	return true
}

// planRequest plans one request before anything is granted. It returns the place of the request in the line, and false
// if the request has its outcome already.
func (l *LimitKeyState) planRequest(a *PermitRequest, now time.Time, steps *PermitRequestingSteps, free *freeUnits, plan *PermitPlan) (PermitWithRun, bool) {
	p, known := steps.HeldPermits[a]
	run := steps.Runs[a.Run]
	if known && p.Status == PermitHeld && p.Epoch == a.Epoch && p.Attempt == a.Attempt && run.LeaseUntil.After(now) {
		free.takeUnits(l.Settings.CapUnits(p.Units), false)
		a.Outcome, a.GrantedAt, a.ArrivedAt = Written, p.GrantedAt, p.ArrivedAt // the reply to an earlier request was lost
		return PermitWithRun{}, false
	}
	place := PermitRow{
		Limit: l.Limit, Key: l.Key, Run: a.Run, Step: a.Step, Status: PermitWaiting, Epoch: a.Epoch, Attempt: a.Attempt,
		Units: a.Units, Priority: a.Priority, ArrivedAt: l.Now,
	}
	switch {
	case known && p.Status != PermitHeld && p.Limit == l.Limit && p.Key == l.Key:
		place.ArrivedAt = p.ArrivedAt
	case !a.ArrivedAt.IsZero() && a.ArrivedAt.Before(l.Now): // it had the permit, gave it back unused, and requests it again
		place.ArrivedAt = a.ArrivedAt
	}
	a.Outcome, a.ArrivedAt = Locked, place.ArrivedAt
	plan.ToWrite = append(plan.ToWrite, place)
	return PermitWithRun{PermitRow: place, RunState: run.RunState, LeaseUntil: run.LeaseUntil}, true
}

// grantInOrder grants and offers what is free, in the order of the line, up to the first that does not fit: so a
// step that needs many units is not passed for ever. It reports whether all of the line were served that could be.
func (l *LimitKeyState) grantInOrder(line []PermitWithRun, now time.Time, requesting map[stepKey]*PermitRequest, free *freeUnits, plan *PermitPlan) bool {
	if !l.HasBounds {
		return !l.wakeFirstWaiter(line, now, plan)
	}
	rate := l.Settings.rate()
	before, blocked := 0, false // units of the line before this one
	for i := range line {
		p := &line[i]
		units := l.Settings.CapUnits(p.Units)
		a := requesting[stepKey{p.Run, p.Step}]
		if a == nil && !p.isWakeable() {
			continue // it keeps its place, and is served when its run requests the permit
		}
		if a != nil && !p.LeaseUntil.After(now) { // its permit would end at once; the process renews the lease, or another one takes the run over
			a.RetryAt = now.Add(expiredLeaseRetryDelay)
			continue
		}
		if !blocked && !free.hasRoomFor(units) {
			blocked = true
			if a == nil {
				plan.nextOfferAt = l.nextOfferAt(free, units, plan)
			}
		}
		switch {
		case blocked && a != nil && l.Settings.Rate > 0 && (free.hasNoConcurrencyBound || free.notHeld-before >= units):
			a.RetryAt = laterTime(plan.ClosedUntil, rate.timeWhenFree(laterTime(plan.RateUsedUntil, l.Now), free.offered+before+units))
			before += units
		case blocked:
			if a != nil && plan.ClosedUntil.After(l.Now) {
				a.RetryAt = plan.ClosedUntil
			}
			before += units
		case a != nil:
			free.takeUnits(units, true)
			a.Outcome, a.GrantedAt = Written, l.Now
			if rate.Count > 0 {
				plan.RateUsedUntil = rate.usedUntilAfterGrant(plan.RateUsedUntil, l.Now, units)
			}
			p.Status, p.GrantedAt = PermitHeld, l.Now
			plan.addGrantedPermit(p.PermitRow, l.Settings.Concurrent > 0)
		default:
			free.offerUnits(units)
			p.Status, p.OfferedUntil = PermitOffered, now.Add(offerDuration)
			plan.ToOffer = append(plan.ToOffer, p.PermitRow)
		}
	}
	return !blocked
}

// wakeFirstWaiter wakes the first step in a line whose limit has no bounds, because they were deleted. The step requests its
// permit again, and then the bounds that its code declares apply. Nothing is granted without a request. It reports whether a step was woken.
func (l *LimitKeyState) wakeFirstWaiter(line []PermitWithRun, now time.Time, plan *PermitPlan) bool {
	for i := range l.Permits {
		if p := &l.Permits[i]; p.Status == PermitOffered {
			return true
		}
	}
	for i := range line {
		if p := &line[i]; p.isWakeable() {
			p.Status, p.OfferedUntil = PermitOffered, now.Add(offerDuration)
			plan.ToOffer = append(plan.ToOffer, p.PermitRow)
			return true
		}
	}
	return false
}

// nextOfferAt returns when the first in line can be offered its units, if only the rate or a failover delays it.
// What is held is looked at when it is given back.
func (l *LimitKeyState) nextOfferAt(free *freeUnits, units int, plan *PermitPlan) time.Time {
	switch {
	case plan.ClosedUntil.After(l.Now):
		return plan.ClosedUntil
	case l.Settings.Rate == 0 || !free.hasNoConcurrencyBound && free.notHeld < units:
		return time.Time{}
	}
	return l.Settings.rate().timeWhenFree(laterTime(plan.RateUsedUntil, l.Now), free.offered+units)
}

// addGrantedPermit writes a granted permit instead of the place that the plan has written for it. A limit without
// Concurrent needs no record of what is held.
func (p *PermitPlan) addGrantedPermit(granted PermitRow, recorded bool) {
	p.ToWrite = slices.DeleteFunc(p.ToWrite, func(w PermitRow) bool { return w.Run == granted.Run && w.Step == granted.Step })
	if recorded {
		p.ToWrite = append(p.ToWrite, granted)
	} else {
		p.ToDelete = append(p.ToDelete, granted)
	}
}

// freeUnits is what a limit key can grant.
type freeUnits struct {
	notHeld               int  // that are not held
	hasNoConcurrencyBound bool // there is no Concurrent
	allowedByRate         int  // units that the rate allows now, without those that are offered
	offered               int  // units that are offered; the rate is used up by them when they are granted
	hasNoRate             bool // there is no Rate
}

// freeUnits returns what the limit key can grant before anything is counted as held.
func (l *LimitKeyState) freeUnits(plan *PermitPlan) *freeUnits {
	f := &freeUnits{notHeld: l.Settings.Concurrent, hasNoConcurrencyBound: l.Settings.Concurrent == 0, hasNoRate: l.Settings.Rate == 0}
	if !f.hasNoRate {
		f.allowedByRate = l.Settings.rate().freeUnitsAt(plan.RateUsedUntil, l.Now)
	}
	if plan.ClosedUntil.After(l.Now) || !l.HasBounds {
		*f = freeUnits{}
	}
	return f
}

// takeUnits counts units. granted tells that they are granted now, so that they count for the rate.
func (f *freeUnits) takeUnits(units int, granted bool) {
	f.notHeld -= units
	if granted {
		f.allowedByRate -= units
	}
}

// offerUnits counts units that are kept for a step.
func (f *freeUnits) offerUnits(units int) {
	f.takeUnits(units, true)
	f.offered += units
}

func (f *freeUnits) hasRoomFor(units int) bool {
	return (f.hasNoConcurrencyBound || f.notHeld >= units) && (f.hasNoRate || f.allowedByRate >= units)
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
