package store

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	// MaxAdmitted is how many runs of a queue may be admitted and not claimed yet. It is small, so that an
	// urgent run passes those that wait.
	MaxAdmitted = 256

	// MaxRunsRead is how many runs that have departed, and how many that are due, a store reads for one pass.
	MaxRunsRead = 500

	// MaxBehindRead is how many runs behind one key, in each of its lines, a store reads for one pass.
	MaxBehindRead = 20

	// turnLength is what a turn adds for a run of weight 1.
	turnLength = 1_000_000
)

// Turns has a position in the line for each priority, from the lowest.
type Turns [5]int64

// of returns the position for a priority.
func (t *Turns) of(priority int16) *int64 { return &t[min(max(int(priority)+2, 0), len(t)-1)] }

// QueueState is what an admission has read of a queue, whose row its transaction has locked.
type QueueState struct {
	QueueRow
	Now   time.Time // never before that of an earlier admission
	Paid  time.Time // up to this time the rate is used up
	Shut  time.Time // nothing begins before this time
	Begun string    // the point of the database's history at the last admission; empty: unknown
	Turns Turns     // of the runs that were admitted last
	Use   QueueUse

	Admitted int         // runs that are admitted and not claimed yet
	Runs     []SeenRun   // at most MaxRunsRead that have departed, and as many that are due and not admitted, or are executed without a place
	Line     [3]LineHead // the runs in line of each class
	Keys     map[string]*KeyState
}

// SeenRun is a run of the queue, locked by the admission.
type SeenRun struct {
	Place
	Known    bool // the run has a row; otherwise it was started by a process that did not know the queue's row
	Gate     Gate
	Status   Status
	Control  ControlBits
	WakeAt   time.Time
	Deadline time.Time
}

// class tells what a run needs besides room to execute. Each class has a line of its own, so that no run waits behind one that
// needs more than it does: a run that has begun waits for nothing else, a child for the rate, and a root for the rate and room
// to be open.
func (p *Place) class() int {
	switch {
	case p.Begun:
		return 0
	case !p.Root:
		return 1
	}
	return 2
}

// LineHead is the beginning of a line: those of its runs that no other transaction has locked.
type LineHead struct {
	Runs []SeenRun
	More bool // the line is longer
}

// KeyState is the row of a group key.
type KeyState struct {
	Key    string
	Paid   time.Time
	LookAt time.Time // when an admission looks at those behind, although nothing else happens to the key; zero: never
	Turns  Turns
	Use    QueueUse    // Waiting does not count
	Lined  [3]int      // runs in the line of the queue, by class
	Behind int         // runs behind them
	First  [3]LineHead // of those behind, by class

	changed bool
}

// QueuePlan is what an admission changes.
type QueuePlan struct {
	Runs       []SeenRun // whose place, gate, status and WakeAt are written
	Keys       []KeyState
	DeleteKeys []string
	Again      time.Time // when more can be admitted although nothing else happens; zero: no time is known
	More       bool      // there is more to do now
}

// comparePlaces orders the runs of one line: the higher priority first, then by turn, then by arrival.
func comparePlaces(a, b *Place) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Turn, b.Turn), compareArrivals(a, b))
}

// compareBehind orders the runs behind a key: the higher priority first, then by arrival.
func compareBehind(a, b *Place) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), compareArrivals(a, b))
}

func compareArrivals(a, b *Place) int {
	return cmp.Or(a.ArrivedAt.Compare(b.ArrivedAt), bytes.Compare(a.Run[:], b.Run[:]))
}

// admission is the work on one plan.
type admission struct {
	*QueueState
	written map[uuid.UUID]int // the index in plan.Runs
	plan    QueuePlan
}

// Plan decides about the runs that the admission has read, and sets the counts, turns and times of the
// queue. begun is the point of the database's history now. lease is how long nothing begins after the
// database went back to an earlier state, or longer, if the period of a rate is.
func (s *QueueState) Plan(begun string, lease time.Duration) QueuePlan {
	if s.Begun != "" && begun != "" && begun != s.Begun {
		s.Shut = s.Now.Add(max(lease, s.Settings.Rate.Period, s.Settings.KeyRate.Period)) // what began after that point is not known
	}
	s.Begun = begun
	a := &admission{QueueState: s, written: make(map[uuid.UUID]int)}
	for i := range s.Runs {
		a.judge(&s.Runs[i])
	}
	for _, k := range s.Keys {
		a.promote(k)
	}
	a.admit()
	a.finishKeys()
	return a.plan
}

// judge decides about a run that has departed, is due, or is executed without a place.
func (a *admission) judge(r *SeenRun) {
	over := !r.Deadline.IsZero() && !r.Deadline.After(a.Now) || !r.Begun && !r.StartBy.IsZero() && !r.StartBy.After(a.Now)
	switch {
	case r.Status.Terminal():
		a.leave(r)
		a.end(r)
	case r.Gate >= GateAdmitted && r.Status != Pending && r.Status != Running:
		a.leave(r)
		a.outside(r)
	case r.Gate == GateAdmitted:
		return // claimable, or executed
	case r.Status == Running: // the run began before its queue had a row
		a.begin(r)
		a.execute(r)
	case a.Deleted:
		a.leave(r)
		a.end(r)
	case over || r.Control&CancelRequested != 0:
		a.leave(r)
		r.State, r.Gate, r.Status, r.WakeAt = PlacePassing, GateAdmitted, Pending, a.Now
	case r.Gate == GateInLine:
		r.WakeAt = r.expiry() // something else woke it
	default:
		a.arrive(r)
	}
	a.write(r)
}

// end removes the place of a run.
func (a *admission) end(r *SeenRun) {
	if r.Root && r.Begun && r.State != PlaceGone {
		a.Use.Open--
		a.count(r.Key).Use.Open--
	}
	r.State, r.Gate = PlaceGone, GateFree
}

// outside lets a run wait until it is due.
func (a *admission) outside(r *SeenRun) {
	if a.Deleted {
		a.end(r)
		return
	}
	r.State, r.Gate = PlaceOutside, GateArrived
}

// leave takes a run out of the counts of its state.
func (a *admission) leave(r *SeenRun) {
	k := a.count(r.Key)
	switch r.State {
	case PlaceExecuting:
		a.Use.Executing--
		k.Use.Executing--
	case PlaceInLine:
		a.Use.Waiting--
		k.Lined[r.class()]--
	case PlaceBehind:
		a.Use.Waiting--
		k.Behind--
	}
}

// begin counts a run as open if it is a root.
func (a *admission) begin(r *SeenRun) {
	if !r.Begun && r.Root {
		a.Use.Open++
		a.count(r.Key).Use.Open++
	}
	r.Begun = true
}

// execute counts a run as executing.
func (a *admission) execute(r *SeenRun) {
	a.Use.Executing++
	a.count(r.Key).Use.Executing++
	r.State, r.Gate = PlaceExecuting, GateAdmitted
}

// expiry returns when a run in line expires, or zero.
func (r *SeenRun) expiry() time.Time {
	if r.Begun || r.StartBy.IsZero() || !r.Deadline.IsZero() && r.Deadline.Before(r.StartBy) {
		return r.Deadline
	}
	return r.StartBy
}

// arrive puts a run that is due behind its key. promote takes those into the line for which there is room.
func (a *admission) arrive(r *SeenRun) {
	if r.ArrivedAt.IsZero() {
		r.ArrivedAt = r.WakeAt
	}
	k := a.count(r.Key)
	k.Behind++
	a.Use.Waiting++
	r.State, r.Gate, r.Status, r.WakeAt = PlaceBehind, GateInLine, Pending, r.expiry()
	k.First[r.class()].add(*r, compareBehind)
}

// add adds a run, unless others that are not known may be before it.
func (w *LineHead) add(r SeenRun, compare func(a, b *Place) int) {
	i, _ := slices.BinarySearchFunc(w.Runs, r, func(x, y SeenRun) int { return compare(&x.Place, &y.Place) })
	if i < len(w.Runs) || !w.More {
		w.Runs = slices.Insert(w.Runs, i, r)
	}
}

// promote takes runs behind a key into the line of the queue, as long as the key has room for them.
func (a *admission) promote(k *KeyState) {
	for k.Behind > 0 {
		best := -1
		for class := range k.First {
			w := &k.First[class]
			if len(w.Runs) > 0 && a.hasRoom(k, class, k.promised(class)) && (best < 0 || compareBehind(&w.Runs[0].Place, &k.First[best].Runs[0].Place) < 0) {
				best = class
			}
		}
		if best < 0 {
			return
		}
		r := k.First[best].Runs[0]
		k.First[best].Runs = k.First[best].Runs[1:]
		turn := k.Turns.of(r.Priority)
		*turn = max(*turn, *a.Turns.of(r.Priority)) + turnLength/int64(max(1, r.Weight))
		r.State, r.Turn = PlaceInLine, *turn
		k.Behind--
		k.Lined[best]++
		k.changed = true
		a.Line[best].add(r, comparePlaces)
		a.write(&r)
	}
}

// promised returns how many runs in line have been promised room that a run of the class would take. Those of
// higher classes may be kept waiting by something that they alone need, so they hold up no run that could go on.
func (k *KeyState) promised(class int) (n int) {
	for _, lined := range k.Lined[:class+1] {
		n += lined
	}
	return n
}

// hasRoom reports whether the bounds of a key allow a further run of the class, beside more that have been
// promised room.
func (a *admission) hasRoom(k *KeyState, class, promised int) bool {
	s := &a.Settings
	switch {
	case k.Key == "":
		return true
	case s.KeyExecuting > 0 && k.Use.Executing+promised >= s.KeyExecuting:
		return false
	case class == 2 && s.KeyOpen > 0 && k.Use.Open+promised >= s.KeyOpen:
		return false
	case class > 0 && s.KeyRate.Count > 0 && s.KeyRate.free(k.Paid, a.Now) <= promised:
		return false
	}
	return true
}

// admit gives places to those in line, in the order of their priorities and turns, while there is room.
func (a *admission) admit() {
	s := &a.Settings
	for a.Admitted < MaxAdmitted && (s.Executing == 0 || a.Use.Executing < s.Executing) {
		best := -1
		for class := range a.Line {
			w := &a.Line[class]
			if len(w.Runs) > 0 && a.open(class) && (best < 0 || comparePlaces(&w.Runs[0].Place, &a.Line[best].Runs[0].Place) < 0) {
				best = class
			}
		}
		if best < 0 {
			break
		}
		r := a.Line[best].Runs[0]
		a.Line[best].Runs = a.Line[best].Runs[1:]
		k := a.count(r.Key)
		k.Lined[best]--
		if !a.hasRoom(k, best, 0) {
			k.Behind++
			r.State = PlaceBehind
			a.write(&r)
			continue
		}
		if !r.Begun && s.Rate.Count > 0 {
			a.Paid = s.Rate.pay(a.Paid, a.Now, 1)
		}
		if !r.Begun && s.KeyRate.Count > 0 {
			k.Paid = s.KeyRate.pay(k.Paid, a.Now, 1)
		}
		a.begin(&r)
		a.execute(&r)
		a.Use.Waiting--
		a.Admitted++
		r.WakeAt = a.Now
		turn := a.Turns.of(r.Priority)
		*turn = max(*turn, r.Turn)
		a.write(&r)
		if k.Behind > 0 {
			a.promote(k)
		}
	}
	for class := range a.Line {
		if w := &a.Line[class]; len(w.Runs) == 0 && w.More && a.open(class) && a.Admitted < MaxAdmitted {
			a.plan.More = true
		}
	}
}

// open reports whether runs of the class can be admitted.
func (a *admission) open(class int) bool {
	s := &a.Settings
	switch {
	case class == 0:
		return true
	case !a.PausedAt.IsZero():
		return false
	case a.Shut.After(a.Now):
		a.again(a.Shut)
		return false
	case class == 2 && s.Open > 0 && a.Use.Open >= s.Open:
		return false
	case s.Rate.Count > 0 && s.Rate.free(a.Paid, a.Now) == 0:
		a.again(s.Rate.after(a.Paid, 1))
		return false
	}
	return true
}

// again records when there is more to do.
func (a *admission) again(at time.Time) {
	if a.plan.Again.IsZero() || at.Before(a.plan.Again) {
		a.plan.Again = at
	}
}

// write adds a run to the plan, or changes what the plan writes of it.
func (a *admission) write(r *SeenRun) {
	if i, ok := a.written[r.Run]; ok {
		a.plan.Runs[i] = *r
		return
	}
	a.written[r.Run] = len(a.plan.Runs)
	a.plan.Runs = append(a.plan.Runs, *r)
}

// count returns the row of a key, which changes.
func (a *admission) count(key string) *KeyState {
	k := a.Keys[key]
	if k == nil {
		k = &KeyState{Key: key}
		if a.Keys == nil {
			a.Keys = make(map[string]*KeyState)
		}
		a.Keys[key] = k
	}
	k.changed = true
	return k
}

// finishKeys decides when those behind each key are looked at again, and which rows are not needed any more.
func (a *admission) finishKeys() {
	for _, k := range a.Keys {
		before := k.LookAt
		k.LookAt = a.lookAt(k)
		switch {
		case !k.LookAt.IsZero() && !k.LookAt.After(a.Now):
			a.plan.More = true
		case !k.LookAt.IsZero():
			a.again(k.LookAt)
		}
		switch {
		case k.Use.Executing == 0 && k.Use.Open == 0 && k.Lined == [3]int{} && k.Behind == 0 && k.LookAt.IsZero():
			a.plan.DeleteKeys = append(a.plan.DeleteKeys, k.Key)
		case k.changed || !k.LookAt.Equal(before):
			a.plan.Keys = append(a.plan.Keys, *k)
		}
	}
	slices.Sort(a.plan.DeleteKeys)
	slices.SortFunc(a.plan.Keys, func(x, y KeyState) int { return cmp.Compare(x.Key, y.Key) })
}

// lookAt returns when those behind a key are looked at again, although nothing happens to its other runs.
func (a *admission) lookAt(k *KeyState) time.Time {
	rate := a.Settings.KeyRate
	var allowed time.Time // by the rate
	if rate.Count > 0 {
		allowed = rate.after(k.Paid, 1)
	}
	switch {
	case k.Behind == 0 && k.Paid.After(a.Now):
		return k.Paid // until then the row keeps the time
	case k.Behind == 0:
		return time.Time{}
	}
	for class := range k.First {
		if w := &k.First[class]; len(w.Runs) == 0 && w.More && a.hasRoom(k, class, k.promised(class)) {
			return a.Now // more of them are to be read
		}
	}
	if allowed.After(a.Now) {
		return allowed
	}
	return time.Time{}
}
