package schedule

import "time"

// A wall time is what the clocks of a zone show, written as a time.Time in UTC. A moment is a time as such. When summer time
// begins, some wall times do not exist. When it ends, some exist twice.

// maxOffset is more than the largest difference between a zone and UTC, which is 14 hours.
const maxOffset = 15 * time.Hour

// wallTimeAt returns the wall time at the moment t.
func wallTimeAt(t time.Time, zone *time.Location) time.Time {
	_, offset := t.In(zone).Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// bounds returns the offset of the zone at the moment t, and the moment of the next change. An end of zero means that no change
// follows.
func bounds(t time.Time, zone *time.Location) (offset time.Duration, end time.Time) {
	at := t.In(zone)
	_, seconds := at.Zone()
	_, end = at.ZoneBounds()
	return time.Duration(seconds) * time.Second, end
}

// momentOfWallTime returns the first moment at which the clocks of the zone show the wall time. If they skip it, momentOfWallTime returns the
// moment of the change.
func momentOfWallTime(wall time.Time, zone *time.Location) time.Time {
	for at := wall.Add(-maxOffset); ; {
		offset, end := bounds(at, zone)
		u := wall.Add(-offset)
		if end.IsZero() || u.Before(end) {
			if u.Before(at) { // skipped by the change at the moment at
				return at.UTC()
			}
			return u
		}
		at = end
	}
}

// afterElapsed returns the first moment after t whose wall time matches: a wall time that exists twice counts twice, and one that
// does not exist never.
func (e *cronExpression) afterElapsed(t time.Time, zone *time.Location) time.Time {
	at, start := t, t
	for {
		offset, end := bounds(at, zone)
		wall := e.after(start.UTC().Add(offset))
		if wall.IsZero() {
			return time.Time{}
		}
		if u := wall.Add(-offset); end.IsZero() || u.Before(end) {
			return u
		}
		at, start = end, end.Add(-time.Nanosecond) // the moment of the change itself counts
	}
}

// afterWall returns the first moment after t of a matching wall time. Each wall time counts once: the first time, if it exists
// twice, and at the moment of the change, if it does not exist.
func (e *cronExpression) afterWall(t time.Time, zone *time.Location) time.Time {
	// In the second pass of a repeated hour, some of the wall times that follow were reached in the first pass. Their moments are
	// before t.
	for wall := wallTimeAt(t, zone).Add(-time.Nanosecond); ; {
		if wall = e.after(wall); wall.IsZero() {
			return time.Time{}
		}
		if u := momentOfWallTime(wall, zone); u.After(t) {
			return u
		}
	}
}
