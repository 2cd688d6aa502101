package store

import "time"

// UnclaimedStopsRateAfter is how long an admitted run may stay unclaimed before the rates of its queue admit no further runs. Workers with free slots
// claim an admitted run sooner than UnclaimedStopsRateAfter.
const UnclaimedStopsRateAfter = 500 * time.Millisecond

// A rate bounds how many runs begin, but an admission can only decide when runs become claimable. While the workers have no free
// slot, admitted runs are not claimed. If the rate admitted further runs meanwhile, all admitted runs would begin together once there
// are slots.

// countUnclaimedTowardRates makes the rates count runs that were not claimed in time as if they began now. So while the workers are busy,
// not much more than a burst of runs becomes claimable, and the rate admits further runs from the time at which these runs are claimed.
// While there are such runs, passes follow each other within UnclaimedStopsRateAfter. So a run begins at most twice UnclaimedStopsRateAfter
// after the time that its rate counts.
func (a *admissionPlanner) countUnclaimedTowardRates() {
	all := 0
	for key, n := range a.UnclaimedByKey {
		all += n
		if k := a.Keys[key]; k != nil && key != "" && n > 0 && a.Settings.RatePerKey.Count > 0 {
			k.RateUsedUntil, k.changed = a.Settings.RatePerKey.usedUntilWithPending(k.RateUsedUntil, a.Clock, n), true
		}
	}
	if all > 0 && a.Settings.Rate.Count > 0 {
		a.RateUsedUntil = a.Settings.Rate.usedUntilWithPending(a.RateUsedUntil, a.Clock, all)
	}
}

// scheduleClaimCheck records when the next pass finds out whether admitted runs were claimed.
func (a *admissionPlanner) scheduleClaimCheck() {
	if a.HasRate() && (a.plan.AdmittedCount > 0 || len(a.UnclaimedByKey) > 0) {
		a.scheduleNextPass(a.Clock.Add(UnclaimedStopsRateAfter))
	}
}
