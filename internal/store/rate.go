package store

import "time"

// Rate bounds how many units are granted in a period, evenly spread. In any half-open window of length w, at most Count*w/Period + Burst
// units are granted. The zero value of Rate sets no bound.
//
// For each rate, the database stores one time, up to which the rate has been used. This time is the theoretical arrival time of the generic
// cell rate algorithm (ITU-T I.371).
type Rate struct {
	Count  int           `json:"count,omitzero"`
	Period time.Duration `json:"period,omitzero"` // in whole microseconds; positive with a Count
	Burst  int           `json:"burst,omitzero"`  // units that may be granted at one moment; at least 1 with a Count
}

// timePerUnit returns the time that one unit takes, rounded up to a microsecond.
func (r Rate) timePerUnit() time.Duration {
	d := r.Period / time.Duration(r.Count)
	if r.Period%time.Duration(r.Count) > 0 {
		d++
	}
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// timeToRefill returns how long nothing is granted after the records of grants may have been lost: at least one period, and long enough
// for the rate to recover a whole burst.
func (r Rate) timeToRefill() time.Duration {
	if r.Count == 0 {
		return 0
	}
	return max(r.Period, time.Duration(r.Burst)*r.timePerUnit())
}

// freeUnitsAt returns how many units can be granted now.
func (r Rate) freeUnitsAt(paid, now time.Time) int {
	interval := r.timePerUnit()
	left := now.Add(time.Duration(r.Burst) * interval).Sub(laterTime(paid, now))
	return max(0, int(left/interval))
}

// timeWhenFree returns when a number of units can be granted.
func (r Rate) timeWhenFree(paid time.Time, units int) time.Time {
	return paid.Add(time.Duration(units-r.Burst) * r.timePerUnit())
}

// usedUntilAfterGrant returns up to when the rate is used up, after units were granted now.
func (r Rate) usedUntilAfterGrant(paid, now time.Time, units int) time.Time {
	return laterTime(paid, now).Add(time.Duration(units) * r.timePerUnit())
}

// usedUntilWithPending returns up to when the rate is used up if a number of units that were granted earlier count as granted now.
func (r Rate) usedUntilWithPending(paid, now time.Time, units int) time.Time {
	return laterTime(paid, r.usedUntilAfterGrant(now, now, min(units, r.Burst)))
}

// capUsedUntilAtBurst returns the time up to which the rate is used up, but not later than if a whole burst were granted now. The
// time paid can be later only after a change of the rate; because it is cut, a raised rate applies at once.
func (r Rate) capUsedUntilAtBurst(paid, now time.Time) time.Time {
	if r.Count == 0 {
		return paid
	}
	if most := r.usedUntilAfterGrant(now, now, r.Burst); paid.After(most) {
		return most
	}
	return paid
}
