package store

import (
	"slices"
	"time"
)

// CheckUnclaimedRunAfter is how long an admitted run may stay unclaimed before admissions begin to check whether the run's StartBy or deadline has
// passed. Workers with free slots claim an admitted run sooner than CheckUnclaimedRunAfter, so the check usually reads no row.
const CheckUnclaimedRunAfter = time.Second

// MayTakeRunsBack reports whether the admission may take back the places of runs that no worker has claimed. An admission may take places
// back if the queue is paused, exceeds its bounds, or has changed settings. If MayTakeRunsBack returns true, a store reads all unclaimed
// runs that were never executed. If MayTakeRunsBack returns false, a store reads only the unclaimed runs whose StartBy or deadline has
// passed.
func (s *QueueState) MayTakeRunsBack() bool {
	return s.ExceedsBounds() || !s.Deleted && s.settingsChanged()
}

// ExceedsBounds reports whether the queue is paused, or has more runs than its bounds allow.
func (s *QueueState) ExceedsBounds() bool {
	return !s.Deleted && (!s.PausedAt.IsZero() || s.Settings.MaxExecuting > 0 && s.Use.Executing > s.Settings.MaxExecuting ||
		s.Settings.MaxInProgress > 0 && s.Use.InProgress > s.Settings.MaxInProgress)
}

// planAdmittedRun decides about a run with a place. If the run's StartBy or deadline has passed before a worker has claimed it, the
// run bypasses the queue, so that it expires.
func (a *admissionPlanner) planAdmittedRun(r *AdmissionRun) {
	over := func(at time.Time) bool { return !at.IsZero() && !at.After(a.Now) }
	switch {
	case a.Deleted || r.Admission != AdmissionGranted || r.Status != Pending || r.State != PlaceExecuting: // nothing to take back: the run executes or bypasses the queue, or the queue is being deleted
	case over(r.Deadline) || !r.WasExecuted && over(r.StartBy):
		a.uncountAdmitted(r)
		r.State, r.Admission, r.WakeAt = PlaceBypassed, AdmissionBypassed, a.Now
		a.plan.AdmittedCount++
		a.addToPlan(r)
	case !r.WasExecuted:
		a.unclaimed = append(a.unclaimed, *r)
	}
}

// uncountAdmitted takes an admitted run that no worker has claimed out of the counts. A run that was never executed no longer counts
// as in progress.
func (a *admissionPlanner) uncountAdmitted(r *AdmissionRun) {
	a.uncountRun(r)
	a.AdmittedNotClaimed--
	if r.WasExecuted {
		return
	}
	if a.UnclaimedByKey[r.Key] > 0 {
		a.UnclaimedByKey[r.Key]--
	}
	if r.Root && r.HasBegun {
		a.Use.InProgress--
		a.getKeyForUpdate(r.Key).Use.InProgress--
	}
	r.HasBegun = false
}

// takeBackUnclaimedRuns moves admitted runs that no worker has claimed back into the line, with their old turns, until the queue no longer
// exceeds its bounds. It begins with the runs that come last in the order of the line. The units of a rate that these runs have used stay
// used.
func (a *admissionPlanner) takeBackUnclaimedRuns() {
	slices.SortFunc(a.unclaimed, func(x, y AdmissionRun) int { return comparePlacesInLine(&y.QueuePlace, &x.QueuePlace) })
	for i := range a.unclaimed {
		r := &a.unclaimed[i]
		if !a.mustTakeBack(r) {
			continue
		}
		a.uncountAdmitted(r)
		a.Use.Waiting++
		a.getKeyForUpdate(r.Key).addToLineCount(r, 1)
		r.State, r.Admission, r.WakeAt = PlaceInLine, AdmissionInLine, r.expiryTime()
		a.FirstInLine[r.admissionClass()].addRun(*r, comparePlacesInLine)
		a.addToPlan(r)
	}
}

// mustTakeBack reports whether the queue is paused, or has more runs than a bound that concerns the run allows.
func (a *admissionPlanner) mustTakeBack(r *AdmissionRun) bool {
	s := &a.Settings
	exceeded := func(use QueueUse, executing, open int) bool {
		return executing > 0 && use.Executing > executing || r.Root && open > 0 && use.InProgress > open
	}
	k := a.Keys[r.Key]
	return !a.PausedAt.IsZero() || exceeded(a.Use, s.MaxExecuting, s.MaxInProgress) || k != nil && r.Key != "" && exceeded(k.Use, s.MaxExecutingPerKey, s.MaxInProgressPerKey)
}
