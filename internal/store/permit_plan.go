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
	maxOfferTimeLeft = 10 * time.Second // an offer with more time left was made before the clock was set back
)

// expiredLeaseRetryDelay is the time after which a step repeats its request if its run has no lease at the moment. The step keeps its
// place in the line.
const expiredLeaseRetryDelay = 500 * time.Millisecond

// MaxPermitsRead is how many waiting steps of a limit key that have not missed an offer a store reads for one plan at most, and also how
// many steps that have missed an offer. A store reads the steps that have missed an offer separately, because the line may begin with any
// number of such steps if no worker executes their runs.
const MaxPermitsRead = 100

// LimitKeyState is the state of one limit key, which the transaction that grants permits has locked.
type LimitKeyState struct {
	LimitKey
	Settings  LimitSettings
	HasBounds bool      // the limit has bounds; otherwise nothing is granted
	Now       time.Time // the time that places and the rate use: never before the Now of an earlier transaction of this limit key
	// RateUsedUntil is the time up to which the rate has been used: the theoretical arrival time of the generic cell rate algorithm (ITU-T
	// I.371).
	RateUsedUntil    time.Time
	ClosedUntil      time.Time       // nothing is granted before this time
	Permits          []PermitWithRun // all that are held or offered; then, in order, the first MaxPermitsRead waiting ones that have missed an offer, and the first MaxPermitsRead that have not
	DatabaseTimeline string          // the point of the database's history at which the limit key was last used; empty: unknown
}

// PermitWithRun is a permit together with the state of its run.
type PermitWithRun struct {
	PermitRow
	RunState   RunState
	LeaseUntil time.Time // when the lease of the run ends
	RunLocked  bool      // another transaction has locked the run, so it cannot be woken now
}

// isInUse reports whether the permit is in use: its attempt executes, or may still execute. The argument now is the caller's time,
// with which leases are compared, and not LimitKeyState.Now: if the clock was set back, live leases may end before LimitKeyState.Now.
func (p *PermitWithRun) isInUse(now time.Time) bool {
	return p.Status == PermitHeld && p.RunState.Status == Running && p.RunState.Epoch == p.Epoch && p.LeaseUntil.After(now)
}

// mayWait reports whether the step of the permit may stand in the line. A Running run whose pause is requested keeps its places until
// it is unloaded from memory. If it lost them at once and were resumed before it is unloaded, its steps would not know that they have
// lost their places.
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

// isOfPresentExecution reports whether the execution that last requested the permit is in memory or continues when the run is woken.
// Otherwise the next execution requests the permit again, unless it never reaches the step because the run was cancelled or repaired.
func (p *PermitWithRun) isOfPresentExecution() bool {
	return p.RunState.Epoch == p.Epoch && (p.RunState.Status == Running || p.RunState.Status == Waiting)
}

// PermitPlan holds what a transaction changes in one limit key.
type PermitPlan struct {
	ToDelete      []PermitRow
	ToWrite       []PermitRow // replaces the row of the step, if it has one
	ToOffer       []PermitRow // as ToWrite, but only if the store can lock the run; the store then also wakes the run
	RateUsedUntil time.Time
	ClosedUntil   time.Time
	nextOfferAt   time.Time // when the rate allows an offer to the first step in line; zero: no time is known
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
		plan.ClosedUntil = l.Now.Add(max(b.CloseDurationAfterRewind, l.Settings.rate().timeToRefill())) // it is not known what was granted after the state to which the database went back
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
	passed := false // some steps were marked with MissedOffer, so that the next plan reads other steps in their place
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

// yieldsToEarlierStep reports whether an earlier step of the same run, which has missed its offer, requests its permit again. The
// earlier step is then served first, because of the steps of one run that are in the line, only the first requests a permit.
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

// lastReadWaitingPermit returns the last waiting permit without MissedOffer that the store has read, or nil if the store has read all
// of them.
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

// fenceStaleRequest reports whether the request comes from an execution that has ended, and in that case sets the outcome to Fenced. Such a
// request changes nothing, because the step may have a permit of a later execution.
func (l *LimitKeyState) fenceStaleRequest(a *PermitRequest, state RunState) bool {
	a.GrantedAt, a.RetryAt, a.RunState, a.LimitHasRate = time.Time{}, time.Time{}, RunState{}, l.Settings.Rate > 0
	if state.Found && state.Status == Running && state.Epoch == a.Epoch {
		return false
	}
	a.Outcome, a.RunState = Fenced, state
	return true
}

// planRequest plans one request before anything is granted. It returns the place of the request in the line and true, or false if the
// request already has its outcome.
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

// grantInOrder grants and offers the free units in the order of the line. It stops granting at the first step for which too few units
// are free, so that later steps cannot delay a step with many units forever. It reports whether there was no such step.
func (l *LimitKeyState) grantInOrder(line []PermitWithRun, now time.Time, requesting map[stepKey]*PermitRequest, free *freeUnits, plan *PermitPlan) bool {
	if !l.HasBounds {
		return !l.wakeFirstWaiter(line, now, plan)
	}
	rate := l.Settings.rate()
	before, blocked := 0, false // the units that blocked steps before this one need
	for i := range line {
		p := &line[i]
		units := l.Settings.CapUnits(p.Units)
		a := requesting[stepKey{p.Run, p.Step}]
		if a == nil && !p.isWakeable() {
			continue // the step keeps its place, and is served when its run requests the permit
		}
		if a != nil && !p.LeaseUntil.After(now) { // its permit would end at once: the process renews the lease, or another process takes the run over
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

// wakeFirstWaiter makes an offer to the first step in line that can be woken. It is called if the limit has no bounds because they were
// deleted: the woken step requests its permit again, and its request declares the bounds that apply from then on. wakeFirstWaiter grants
// nothing without a request. It reports whether a step in the line has an offer.
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

// nextOfferAt returns when the first step in line can be offered its units, if only the rate or ClosedUntil delays the offer. If too
// many units are held, nextOfferAt returns zero: the line is checked again when units are given back.
func (l *LimitKeyState) nextOfferAt(free *freeUnits, units int, plan *PermitPlan) time.Time {
	switch {
	case plan.ClosedUntil.After(l.Now):
		return plan.ClosedUntil
	case l.Settings.Rate == 0 || !free.hasNoConcurrencyBound && free.notHeld < units:
		return time.Time{}
	}
	return l.Settings.rate().timeWhenFree(laterTime(plan.RateUsedUntil, l.Now), free.offered+units)
}

// addGrantedPermit replaces the waiting place in the plan with the granted permit. If recorded is false, because the limit has no
// Concurrent and so needs no record of held units, it deletes the row of the place.
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
	notHeld               int  // units that are not held
	hasNoConcurrencyBound bool // LimitSettings.Concurrent is zero
	allowedByRate         int  // units that the rate allows now, without those that are offered
	offered               int  // units that are offered; they use up the rate when they are granted
	hasNoRate             bool // LimitSettings.Rate is zero
}

// freeUnits returns what the limit key can grant if no unit is held or offered.
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

// takeUnits counts units as held. The argument granted says that the units are granted now, so that they also count for the rate.
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
