package store

import (
	"cmp"
	"slices"
	"time"
)

// putBehindKey adds a due run to the runs that wait behind their key. moveRunsIntoLine moves these runs into the line of the queue
// while the bounds of the key allow it.
func (a *admissionPlanner) putBehindKey(r *AdmissionRun) {
	if r.ArrivedAt.IsZero() {
		r.ArrivedAt = r.WakeAt
	}
	k := a.getKeyForUpdate(r.Key)
	k.WaitingForKeyCount++
	a.Use.Waiting++
	r.State, r.Admission, r.Status, r.WakeAt = PlaceBehindKey, AdmissionInLine, Pending, r.expiryTime()
	k.FirstBehindKey[r.admissionClass()].addRun(*r, comparePlacesBehindKey)
}

// addRun adds a run in its place in the order, unless runs that were not read may come before it.
func (w *FirstWaitingRuns) addRun(r AdmissionRun, compare func(a, b *QueuePlace) int) {
	i, _ := slices.BinarySearchFunc(w.Runs, r, func(x, y AdmissionRun) int { return compare(&x.QueuePlace, &y.QueuePlace) })
	if i < len(w.Runs) || !w.HasMoreRuns {
		w.Runs = slices.Insert(w.Runs, i, r)
	}
}

// moveRunsIntoLine moves runs that wait behind a key into the line of the queue, as long as the bounds of the key allow it.
func (a *admissionPlanner) moveRunsIntoLine(k *QueueKeyState) {
	for k.WaitingForKeyCount > 0 {
		best := -1
		for class := range k.FirstBehindKey {
			w := &k.FirstBehindKey[class]
			if len(w.Runs) > 0 && a.keyHasRoom(k, class, k.countRunsPromisedRoom(class, w.Runs[0].Priority)) && (best < 0 || comparePlacesBehindKey(&w.Runs[0].QueuePlace, &k.FirstBehindKey[best].Runs[0].QueuePlace) < 0) {
				best = class
			}
		}
		if best < 0 {
			return
		}
		r := k.FirstBehindKey[best].Runs[0]
		k.FirstBehindKey[best].Runs = k.FirstBehindKey[best].Runs[1:]
		r.State, r.Turn = PlaceInLine, a.assignTurn(k, best, &r)
		k.WaitingForKeyCount--
		k.addToLineCount(&r, 1)
		k.changed = true
		a.FirstInLine[best].addRun(r, comparePlacesInLine)
		a.addToPlan(&r)
	}
}

// assignTurn returns the turn of a run of the given class that enters the line. A root that has not begun gets the turn after the
// last turn of its key, which assignTurn records. Runs that have begun, and children, get the first turns of their key after the
// present turn of the queue. Otherwise they would wait until all roots of their key that are in line have begun.
func (a *admissionPlanner) assignTurn(k *QueueKeyState, class int, r *AdmissionRun) int64 {
	length := turnOfWeightOne / int64(max(1, r.Weight))
	now, latest := *a.LatestTurns.numberForPriority(r.Priority), k.LatestTurns.numberForPriority(r.Priority)
	next := max(now, *latest) + length
	if class == newRootClass {
		*latest = next
		return next
	}
	before := int64(0) // of this key, in line
	for _, lined := range k.InLine[:newRootClass] {
		before += int64(lined)
	}
	return min(next, now+(before+1)*length)
}

// addToLineCount counts a run that enters the line or leaves it.
func (k *QueueKeyState) addToLineCount(r *AdmissionRun, n int) {
	k.InLine[r.admissionClass()] += n
	*k.InLineByPriority.numberForPriority(r.Priority) += int64(n)
}

// countRunsPromisedRoom returns how many runs of the key in line the bounds of the key must still admit before a run of the given class
// and priority, or a few more. Runs of higher classes and of lower priorities do not count: they may wait for something other than the
// bounds of the key, and must not delay a run that could begin. If a run in line no longer fits the bounds of its key when its turn
// comes, it goes back behind its key.
func (k *QueueKeyState) countRunsPromisedRoom(class int, priority int16) int {
	classes, priorities := 0, 0
	for _, lined := range k.InLine[:class+1] {
		classes += lined
	}
	for p := priority; p <= HighestPriority; p++ {
		priorities += int(*k.InLineByPriority.numberForPriority(p))
	}
	return min(classes, priorities)
}

// keyHasRoom reports whether the bounds of a key allow a further run of the class, in addition to the runs counted by
// countRunsPromisedRoom.
func (a *admissionPlanner) keyHasRoom(k *QueueKeyState, class, promised int) bool {
	s := &a.Settings
	switch {
	case k.Key == "":
		return true
	case s.MaxExecutingPerKey > 0 && k.Use.Executing+promised >= s.MaxExecutingPerKey:
		return false
	case class == newRootClass && s.MaxInProgressPerKey > 0 && k.Use.InProgress+promised >= s.MaxInProgressPerKey:
		return false
	case class != begunClass && s.RatePerKey.Count > 0 && s.RatePerKey.freeUnitsAt(k.RateUsedUntil, a.Clock) <= promised:
		return false
	}
	return true
}

// getKeyForUpdate returns the row of a key, and marks it as changed.
func (a *admissionPlanner) getKeyForUpdate(key string) *QueueKeyState {
	k := a.Keys[key]
	if k == nil {
		k = &QueueKeyState{Key: key}
		if a.Keys == nil {
			a.Keys = make(map[string]*QueueKeyState)
		}
		a.Keys[key] = k
	}
	k.changed = true
	return k
}

// planKeyChecksAndDeletes sets when an admission next checks the runs behind each key, and selects the rows of keys to delete.
func (a *admissionPlanner) planKeyChecksAndDeletes() {
	for _, k := range a.Keys {
		before := k.CheckAt
		k.CheckAt = a.nextKeyCheckTime(k)
		switch {
		case !k.CheckAt.IsZero() && !k.CheckAt.After(a.Now):
			a.plan.HasMoreWork = true
		case !k.CheckAt.IsZero():
			a.scheduleNextPass(k.CheckAt)
		}
		switch {
		case k.Use.Executing == 0 && k.Use.InProgress == 0 && k.InLine == [3]int{} && k.WaitingForKeyCount == 0 && k.CheckAt.IsZero():
			a.plan.KeysToDelete = append(a.plan.KeysToDelete, k.Key)
		case k.changed || !k.CheckAt.Equal(before):
			a.plan.KeysToWrite = append(a.plan.KeysToWrite, *k)
		}
	}
	slices.Sort(a.plan.KeysToDelete)
	slices.SortFunc(a.plan.KeysToWrite, func(x, y QueueKeyState) int { return cmp.Compare(x.Key, y.Key) })
}

// nextKeyCheckTime returns when an admission must check the runs behind a key again even if nothing happens to the key's other runs.
// Zero means never.
func (a *admissionPlanner) nextKeyCheckTime(k *QueueKeyState) time.Time {
	rate := a.Settings.RatePerKey
	var allowed time.Time // by the rate
	if rate.Count > 0 {
		allowed = rate.timeWhenFree(k.RateUsedUntil, 1)
	}
	switch {
	case rate.Count > 0 && (k.admitted || a.UnclaimedByKey[k.Key] > 0): // see countUnclaimedTowardRates
		if check := a.Clock.Add(UnclaimedStopsRateAfter); k.WaitingForKeyCount == 0 || check.Before(allowed) {
			return check
		}
		return allowed
	case k.WaitingForKeyCount == 0 && k.RateUsedUntil.After(a.Clock):
		return k.RateUsedUntil // until then the row is needed, because it holds RateUsedUntil
	case k.WaitingForKeyCount == 0:
		return time.Time{}
	}
	for class := range k.FirstBehindKey {
		if w := &k.FirstBehindKey[class]; len(w.Runs) == 0 && w.HasMoreRuns && a.keyHasRoom(k, class, k.countRunsPromisedRoom(class, HighestPriority)) {
			return a.Now // the next admission reads further runs of this class
		}
	}
	if allowed.After(a.Clock) {
		return allowed
	}
	return time.Time{}
}
