package store

import (
	"bytes"
	"cmp"
	"time"

	"github.com/google/uuid"
)

// comparePlacesInLine orders the runs of one line: the higher priority first, then by turn, then by arrival.
func comparePlacesInLine(a, b *QueuePlace) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Turn, b.Turn), compareArrivals(a, b))
}

// comparePlacesBehindKey orders the runs behind a key: the higher priority first, then by arrival.
func comparePlacesBehindKey(a, b *QueuePlace) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), compareArrivals(a, b))
}

func compareArrivals(a, b *QueuePlace) int {
	return cmp.Or(a.ArrivedAt.Compare(b.ArrivedAt), bytes.Compare(a.Run[:], b.Run[:]))
}

// admissionPlanner is the work on one plan.
type admissionPlanner struct {
	*QueueState
	planIndexes map[uuid.UUID]int // the index in plan.Runs
	plan        AdmissionPlan

	unclaimed []AdmissionRun // those that are admitted and were never executed
}

// Plan decides which of the runs that the admission has read may begin, and sets the counts, turns and times of the queue. The argument
// timeline is the present timeline of the database. The argument lease is how long no run of the queue begins after the database went back
// to an earlier state. No run begins for longer than lease if a rate needs more time to recover a whole burst.
func (s *QueueState) Plan(timeline string, lease time.Duration) AdmissionPlan {
	s.advanceClock()
	if s.DatabaseTimeline != "" && timeline != "" && timeline != s.DatabaseTimeline {
		s.ClosedUntil = s.Clock.Add(max(lease, s.Settings.Rate.timeToRefill(), s.Settings.RatePerKey.timeToRefill())) // it is not known which runs began after the state to which the database went back
	}
	if timeline != "" {
		s.DatabaseTimeline = timeline
	}
	a := &admissionPlanner{QueueState: s, planIndexes: make(map[uuid.UUID]int)}
	a.plan.AdmittedAt = s.Clock
	for i := range s.Runs {
		a.planRun(&s.Runs[i])
	}
	if !s.Deleted { // planRun has let all runs of a deleted queue through, also those in line
		a.takeBackUnclaimedRuns()
		a.countUnclaimedTowardRates()
		for _, k := range s.Keys {
			a.moveRunsIntoLine(k)
		}
		a.admitInOrder()
	}
	a.scheduleClaimCheck()
	a.planKeyChecksAndDeletes()
	a.scheduleNextPass(s.NextDueAt)
	for i := range a.plan.RunsToWrite {
		if r := &a.plan.RunsToWrite[i]; r.Admission == AdmissionPending || r.Admission == AdmissionInLine {
			a.scheduleNextPass(r.WakeAt)
		}
	}
	a.plan.CheckAllKeys = s.settingsChanged()
	a.plan.SearchAdvanced = s.idleSearch != nil && s.idleSearch.advanced
	a.plan.HasMoreWork = a.plan.HasMoreWork || s.hasMoreWork || a.plan.CheckAllKeys || s.idleSearch.isDue(s.Clock)
	if i := s.idleSearch; i != nil && !i.ended {
		a.scheduleNextPass(i.secondAt)
	}
	s.applySettings()
	return a.plan
}

// planRun decides about a run that has ended or waits although it has a place, is due, entered the queue before the queue had a row,
// or is in a queue that is being deleted.
func (a *admissionPlanner) planRun(r *AdmissionRun) {
	due := !r.WakeAt.IsZero() && !r.WakeAt.After(a.Now)
	over := !r.Deadline.IsZero() && !r.Deadline.After(a.Now) || !r.HasBegun && !r.StartBy.IsZero() && !r.StartBy.After(a.Now)
	switch {
	case r.Status.IsTerminal():
		a.uncountRun(r)
		a.removePlace(r)
	case r.Admission >= AdmissionGranted && r.Status != Pending && r.Status != Running:
		a.uncountRun(r)
		a.markWaitingUntilDue(r)
		if due && r.Admission == AdmissionPending {
			a.planRun(r)
			return
		}
	case r.Admission.IsAdmitted():
		a.planAdmittedRun(r)
		return
	case a.Deleted:
		if r.Admission == AdmissionInLine {
			r.WakeAt = a.Now
		}
		a.uncountRun(r)
		a.removePlace(r)
	case r.Status == Running: // the run began before its queue had a row
		a.countAsInProgress(r)
		a.countAsExecuting(r)
	case r.Admission == AdmissionNotNeeded && r.WasExecuted && !r.HasBegun: // so did this run
		a.countAsInProgress(r)
		a.planRun(r)
		return
	case !due && r.Admission != AdmissionInLine:
		a.markWaitingUntilDue(r)
	case over || r.IsEnding || r.Control&CancelRequested != 0:
		a.uncountRun(r)
		r.State, r.Admission, r.Status, r.WakeAt = PlaceBypassed, AdmissionBypassed, Pending, a.Now
		a.plan.AdmittedCount++
	case r.Admission == AdmissionInLine:
		r.WakeAt = r.expiryTime() // something other than an admission has woken the run
		if r.State == PlaceInLine {
			a.FirstInLine[r.admissionClass()].addRun(*r, comparePlacesInLine)
		} else {
			a.getKeyForUpdate(r.Key).FirstBehindKey[r.admissionClass()].addRun(*r, comparePlacesBehindKey)
		}
	default:
		a.putBehindKey(r)
	}
	a.addToPlan(r)
}

// removePlace removes the place of a run.
func (a *admissionPlanner) removePlace(r *AdmissionRun) {
	if r.Root && r.HasBegun && r.State != PlaceGone {
		a.Use.InProgress--
		a.getKeyForUpdate(r.Key).Use.InProgress--
	}
	keepsTime := !r.HasBegun && !r.StartBy.IsZero() && !r.Status.IsTerminal()
	r.State, r.Admission, r.HasBegun = PlaceGone, AdmissionNotNeeded, false // if the queue gets settings again, live runs are counted anew
	if keepsTime {
		r.State = PlaceNotArrived // its place keeps StartBy
	}
}

// markWaitingUntilDue lets a run wait until it is due.
func (a *admissionPlanner) markWaitingUntilDue(r *AdmissionRun) {
	if a.Deleted {
		a.removePlace(r)
		return
	}
	r.State, r.Admission = PlaceNotArrived, AdmissionPending
}

// uncountRun takes a run out of the counts of its state.
func (a *admissionPlanner) uncountRun(r *AdmissionRun) {
	k := a.getKeyForUpdate(r.Key)
	switch r.State {
	case PlaceExecuting:
		a.Use.Executing--
		k.Use.Executing--
	case PlaceInLine:
		a.Use.Waiting--
		k.addToLineCount(r, -1)
	case PlaceBehindKey:
		a.Use.Waiting--
		k.WaitingForKeyCount--
	}
}

// countAsInProgress marks a run as begun, and counts it as in progress if it is a root.
func (a *admissionPlanner) countAsInProgress(r *AdmissionRun) {
	if !r.HasBegun && r.Root {
		a.Use.InProgress++
		a.getKeyForUpdate(r.Key).Use.InProgress++
	}
	r.HasBegun = true
}

// countAsExecuting counts a run as executing.
func (a *admissionPlanner) countAsExecuting(r *AdmissionRun) {
	a.Use.Executing++
	a.getKeyForUpdate(r.Key).Use.Executing++
	r.State, r.Admission = PlaceExecuting, AdmissionGranted
}

// expiryTime returns when a run in line expires, or zero.
func (r *AdmissionRun) expiryTime() time.Time {
	if r.HasBegun || r.StartBy.IsZero() || !r.Deadline.IsZero() && r.Deadline.Before(r.StartBy) {
		return r.Deadline
	}
	return r.StartBy
}

// admitInOrder gives places to runs in line, in the order of their priorities and turns, as long as the bounds of the queue allow it.
func (a *admissionPlanner) admitInOrder() {
	s := &a.Settings
	for a.canAdmitMore() {
		best := -1
		for class := range a.FirstInLine {
			w := &a.FirstInLine[class]
			if len(w.Runs) > 0 && a.canAdmitClass(class) && (best < 0 || comparePlacesInLine(&w.Runs[0].QueuePlace, &a.FirstInLine[best].Runs[0].QueuePlace) < 0) {
				best = class
			}
		}
		if best < 0 {
			break
		}
		r := a.FirstInLine[best].Runs[0]
		a.FirstInLine[best].Runs = a.FirstInLine[best].Runs[1:]
		k := a.getKeyForUpdate(r.Key)
		k.addToLineCount(&r, -1)
		if !a.keyHasRoom(k, best, 0) {
			k.WaitingForKeyCount++
			r.State = PlaceBehindKey
			k.FirstBehindKey[best].addRun(r, comparePlacesBehindKey)
			a.addToPlan(&r)
			continue
		}
		if !r.HasBegun && s.Rate.Count > 0 {
			a.RateUsedUntil = s.Rate.usedUntilAfterGrant(a.RateUsedUntil, a.Clock, 1)
		}
		if !r.HasBegun && s.RatePerKey.Count > 0 {
			k.RateUsedUntil = s.RatePerKey.usedUntilAfterGrant(k.RateUsedUntil, a.Clock, 1)
			k.admitted = true
		}
		a.countAsInProgress(&r)
		a.countAsExecuting(&r)
		a.Use.Waiting--
		a.AdmittedNotClaimed++
		a.plan.AdmittedCount++
		r.WakeAt = a.Now
		turn := a.LatestTurns.numberForPriority(r.Priority)
		*turn = max(*turn, r.Turn)
		a.addToPlan(&r)
		if k.WaitingForKeyCount > 0 {
			a.moveRunsIntoLine(k)
		}
	}
	for class := range a.FirstInLine {
		if w := &a.FirstInLine[class]; len(w.Runs) == 0 && w.HasMoreRuns && a.canAdmitMore() && a.canAdmitClass(class) {
			a.plan.HasMoreWork = true
		}
	}
}

// canAdmitMore reports whether a further run may be admitted.
func (a *admissionPlanner) canAdmitMore() bool {
	return a.AdmittedNotClaimed < MaxAdmittedNotClaimed && (a.Settings.MaxExecuting == 0 || a.Use.Executing < a.Settings.MaxExecuting)
}

// canAdmitClass reports whether runs of the class can be admitted.
func (a *admissionPlanner) canAdmitClass(class int) bool {
	s := &a.Settings
	switch {
	case class == begunClass:
		return true
	case !a.PausedAt.IsZero():
		return false
	case a.ClosedUntil.After(a.Clock):
		a.scheduleNextPass(a.ClosedUntil)
		return false
	case class == newRootClass && (a.holdsRootsForIdleSearch() || s.MaxInProgress > 0 && a.Use.InProgress >= s.MaxInProgress):
		return false
	case s.Rate.Count > 0 && s.Rate.freeUnitsAt(a.RateUsedUntil, a.Clock) == 0:
		a.scheduleNextPass(s.Rate.timeWhenFree(a.RateUsedUntil, 1))
		return false
	}
	return true
}

// scheduleNextPass records when there is more to do.
func (a *admissionPlanner) scheduleNextPass(at time.Time) {
	if !at.IsZero() && (a.plan.NextPassAt.IsZero() || at.Before(a.plan.NextPassAt)) {
		a.plan.NextPassAt = at
	}
}

// addToPlan adds a run to the plan, or replaces the run in the plan.
func (a *admissionPlanner) addToPlan(r *AdmissionRun) {
	if i, ok := a.planIndexes[r.Run]; ok {
		a.plan.RunsToWrite[i] = *r
		return
	}
	a.planIndexes[r.Run] = len(a.plan.RunsToWrite)
	a.plan.RunsToWrite = append(a.plan.RunsToWrite, *r)
}
