package store

import (
	"bytes"
	"cmp"
	"time"

	"github.com/google/uuid"
)

// comparePlaces orders the runs of one line: the higher priority first, then by turn, then by arrival.
func comparePlaces(a, b *QueuePlace) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Turn, b.Turn), compareArrivals(a, b))
}

// compareBehind orders the runs behind a key: the higher priority first, then by arrival.
func compareBehind(a, b *QueuePlace) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), compareArrivals(a, b))
}

func compareArrivals(a, b *QueuePlace) int {
	return cmp.Or(a.ArrivedAt.Compare(b.ArrivedAt), bytes.Compare(a.Run[:], b.Run[:]))
}

// admissionPlanner is the work on one plan.
type admissionPlanner struct {
	*QueueState
	written map[uuid.UUID]int // the index in plan.Runs
	plan    AdmissionPlan

	unclaimed []AdmissionRun // those that are admitted and were never executed
}

// Plan decides about the runs that the admission has read, and sets the counts, turns and times of the queue. The argument begun
// is the present timeline of the database. lease is how long nothing begins after the database went back to an earlier state, or
// longer, if the period of a rate is.
func (s *QueueState) Plan(begun string, lease time.Duration) AdmissionPlan {
	s.advance()
	if s.Begun != "" && begun != "" && begun != s.Begun {
		s.Shut = s.Clock.Add(max(lease, s.Settings.Rate.Period, s.Settings.KeyRate.Period)) // what began after that point is not known
	}
	if begun != "" {
		s.Begun = begun
	}
	a := &admissionPlanner{QueueState: s, written: make(map[uuid.UUID]int)}
	a.plan.At = s.Clock
	for i := range s.Runs {
		a.decideRun(&s.Runs[i])
	}
	if !s.Deleted { // otherwise judge has let through those in line, too
		a.takeBack()
		for _, k := range s.Keys {
			a.moveIntoLine(k)
		}
		a.admitInOrder()
	}
	a.finishKeys()
	a.passAgainAt(s.Next)
	for i := range a.plan.Runs {
		if r := &a.plan.Runs[i]; r.Gate == GateArrived || r.Gate == GateInLine {
			a.passAgainAt(r.WakeAt)
		}
	}
	a.plan.LookAll = s.Applied != s.Recorded
	a.plan.More = a.plan.More || s.more || a.plan.LookAll
	s.Applied = s.Recorded
	return a.plan
}

// decideRun decides about a run that has departed, is due, is a stray, or is in a queue that is being deleted.
func (a *admissionPlanner) decideRun(r *AdmissionRun) {
	due := !r.WakeAt.IsZero() && !r.WakeAt.After(a.Now)
	over := !r.Deadline.IsZero() && !r.Deadline.After(a.Now) || !r.Begun && !r.StartBy.IsZero() && !r.StartBy.After(a.Now)
	switch {
	case r.Status.IsTerminal():
		a.uncountRun(r)
		a.removePlace(r)
	case r.Gate >= GateAdmitted && r.Status != Pending && r.Status != Running:
		a.uncountRun(r)
		a.waitUntilDue(r)
		if due && r.Gate == GateArrived {
			a.decideRun(r)
			return
		}
	case r.Gate.HasPlace():
		a.decideAdmitted(r)
		return
	case a.Deleted:
		if r.Gate == GateInLine {
			r.WakeAt = a.Now
		}
		a.uncountRun(r)
		a.removePlace(r)
	case r.Status == Running: // the run began before its queue had a row
		a.countOpen(r)
		a.countExecuting(r)
	case r.Gate == GateFree && r.Started && !r.Begun: // likewise
		a.countOpen(r)
		a.decideRun(r)
		return
	case !due && r.Gate != GateInLine:
		a.waitUntilDue(r)
	case over || r.Ends || r.Control&CancelRequested != 0:
		a.uncountRun(r)
		r.State, r.Gate, r.Status, r.WakeAt = PlacePassing, GatePassing, Pending, a.Now
		a.plan.Admitted++
	case r.Gate == GateInLine:
		r.WakeAt = r.expiryTime() // something else woke it
		if r.State == PlaceInLine {
			a.Line[r.lineClass()].addRun(*r, comparePlaces)
		} else {
			a.changedKey(r.Key).First[r.lineClass()].addRun(*r, compareBehind)
		}
	default:
		a.putBehindKey(r)
	}
	a.addToPlan(r)
}

// removePlace removes the place of a run.
func (a *admissionPlanner) removePlace(r *AdmissionRun) {
	if r.Root && r.Begun && r.State != PlaceGone {
		a.Use.Open--
		a.changedKey(r.Key).Use.Open--
	}
	keepsTime := !r.Begun && !r.StartBy.IsZero() && !r.Status.IsTerminal()
	r.State, r.Gate, r.Begun = PlaceGone, GateFree, false // if the queue is set again, what lives counts anew
	if keepsTime {
		r.State = PlaceOutside // its place has the time by which it begins
	}
}

// waitUntilDue lets a run wait until it is due.
func (a *admissionPlanner) waitUntilDue(r *AdmissionRun) {
	if a.Deleted {
		a.removePlace(r)
		return
	}
	r.State, r.Gate = PlaceOutside, GateArrived
}

// uncountRun takes a run out of the counts of its state.
func (a *admissionPlanner) uncountRun(r *AdmissionRun) {
	k := a.changedKey(r.Key)
	switch r.State {
	case PlaceExecuting:
		a.Use.Executing--
		k.Use.Executing--
	case PlaceInLine:
		a.Use.Waiting--
		k.countLined(r, -1)
	case PlaceBehind:
		a.Use.Waiting--
		k.Behind--
	}
}

// countOpen counts a run as open if it is a root.
func (a *admissionPlanner) countOpen(r *AdmissionRun) {
	if !r.Begun && r.Root {
		a.Use.Open++
		a.changedKey(r.Key).Use.Open++
	}
	r.Begun = true
}

// countExecuting counts a run as executing.
func (a *admissionPlanner) countExecuting(r *AdmissionRun) {
	a.Use.Executing++
	a.changedKey(r.Key).Use.Executing++
	r.State, r.Gate = PlaceExecuting, GateAdmitted
}

// expiryTime returns when a run in line expires, or zero.
func (r *AdmissionRun) expiryTime() time.Time {
	if r.Begun || r.StartBy.IsZero() || !r.Deadline.IsZero() && r.Deadline.Before(r.StartBy) {
		return r.Deadline
	}
	return r.StartBy
}

// admitInOrder gives places to those in line, in the order of their priorities and turns, while there is room.
func (a *admissionPlanner) admitInOrder() {
	s := &a.Settings
	for a.canExecute() {
		best := -1
		for class := range a.Line {
			w := &a.Line[class]
			if len(w.Runs) > 0 && a.canAdmitClass(class) && (best < 0 || comparePlaces(&w.Runs[0].QueuePlace, &a.Line[best].Runs[0].QueuePlace) < 0) {
				best = class
			}
		}
		if best < 0 {
			break
		}
		r := a.Line[best].Runs[0]
		a.Line[best].Runs = a.Line[best].Runs[1:]
		k := a.changedKey(r.Key)
		k.countLined(&r, -1)
		if !a.hasRoom(k, best, 0) {
			k.Behind++
			r.State = PlaceBehind
			k.First[best].addRun(r, compareBehind)
			a.addToPlan(&r)
			continue
		}
		if !r.Begun && s.Rate.Count > 0 {
			a.Paid = s.Rate.payUnits(a.Paid, a.Clock, 1)
		}
		if !r.Begun && s.KeyRate.Count > 0 {
			k.Paid = s.KeyRate.payUnits(k.Paid, a.Clock, 1)
		}
		a.countOpen(&r)
		a.countExecuting(&r)
		a.Use.Waiting--
		a.Admitted++
		a.plan.Admitted++
		r.WakeAt = a.Now
		turn := a.Turns.ofPriority(r.Priority)
		*turn = max(*turn, r.Turn)
		a.addToPlan(&r)
		if k.Behind > 0 {
			a.moveIntoLine(k)
		}
	}
	for class := range a.Line {
		if w := &a.Line[class]; len(w.Runs) == 0 && w.More && a.canExecute() && a.canAdmitClass(class) {
			a.plan.More = true
		}
	}
}

// canExecute reports whether a further run may be admitted.
func (a *admissionPlanner) canExecute() bool {
	return a.Admitted < MaxAdmitted && (a.Settings.Executing == 0 || a.Use.Executing < a.Settings.Executing)
}

// canAdmitClass reports whether runs of the class can be admitted.
func (a *admissionPlanner) canAdmitClass(class int) bool {
	s := &a.Settings
	switch {
	case class == 0:
		return true
	case !a.PausedAt.IsZero():
		return false
	case a.Shut.After(a.Clock):
		a.passAgainAt(a.Shut)
		return false
	case class == rootClass && s.Open > 0 && a.Use.Open >= s.Open:
		return false
	case s.Rate.Count > 0 && s.Rate.freeUnitsAt(a.Paid, a.Clock) == 0:
		a.passAgainAt(s.Rate.timeWhenFree(a.Paid, 1))
		return false
	}
	return true
}

// passAgainAt records when there is more to do.
func (a *admissionPlanner) passAgainAt(at time.Time) {
	if !at.IsZero() && (a.plan.Again.IsZero() || at.Before(a.plan.Again)) {
		a.plan.Again = at
	}
}

// addToPlan adds a run to the plan, or changes what the plan writes of it.
func (a *admissionPlanner) addToPlan(r *AdmissionRun) {
	if i, ok := a.written[r.Run]; ok {
		a.plan.Runs[i] = *r
		return
	}
	a.written[r.Run] = len(a.plan.Runs)
	a.plan.Runs = append(a.plan.Runs, *r)
}
