package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// queueInMemory is a queue whose runs and keys are kept in memory, as a store keeps them in tables.
type queueInMemory struct {
	state QueueState // without what is read for a pass
	runs  map[uuid.UUID]*AdmissionRun
	keys  map[string]QueueKeyState
	next  uint64
}

func newQueueInMemory(s QueueSettings) *queueInMemory {
	return &queueInMemory{
		state: QueueState{QueueRow: QueueRow{Name: "q", Settings: s}, Now: time.Unix(1000, 0)},
		runs:  make(map[uuid.UUID]*AdmissionRun), keys: make(map[string]QueueKeyState),
	}
}

// start adds a run that is due.
func (q *queueInMemory) start(key string, priority int16, weight int32, root bool) *AdmissionRun {
	q.next++
	r := &AdmissionRun{
		QueuePlace: QueuePlace{Queue: "q", Key: key, Weight: weight, Priority: priority, State: PlaceNotArrived, Root: root},
		HasPlace:   true, Admission: AdmissionPending, Status: Pending, WakeAt: q.state.Now,
	}
	binary.BigEndian.PutUint64(r.Run[8:], q.next)
	q.runs[r.Run] = r
	return r
}

// sorted returns the runs that pass, in the order of their UUIDs.
func (q *queueInMemory) sorted(pass func(*AdmissionRun) bool) (runs []AdmissionRun) {
	for _, r := range q.runs {
		if pass(r) {
			runs = append(runs, *r)
		}
	}
	slices.SortFunc(runs, func(a, b AdmissionRun) int { return slices.Compare(a.Run[:], b.Run[:]) })
	return runs
}

// head returns the beginning of a line.
func head(runs []AdmissionRun, limit int, compare func(a, b *QueuePlace) int) FirstWaitingRuns {
	slices.SortFunc(runs, func(a, b AdmissionRun) int { return compare(&a.QueuePlace, &b.QueuePlace) })
	return FirstWaitingRuns{Runs: slices.Clone(runs[:min(len(runs), limit)]), HasMoreRuns: len(runs) > limit}
}

// pass is one admission.
func (q *queueInMemory) pass(limit int) AdmissionPlan {
	s := q.state
	due := func(r *AdmissionRun) bool { return !r.WakeAt.IsZero() && !r.WakeAt.After(s.Now) }
	read := func(r *AdmissionRun) bool {
		departed := r.Admission > AdmissionNotNeeded && r.Status.IsTerminal() || r.Admission >= AdmissionGranted && (r.Status == Waiting || r.Status == Paused)
		unclaimed := r.Admission == AdmissionGranted && r.Status == Pending
		return departed || unclaimed || due(r) && !r.Admission.IsAdmitted() || r.Admission == AdmissionNotNeeded && r.Status == Running
	}
	s.Runs = q.sorted(read)
	s.Runs = s.Runs[:min(len(s.Runs), limit)]
	s.AdmittedNotClaimed = len(q.sorted(func(r *AdmissionRun) bool { return r.Admission == AdmissionGranted && r.Status == Pending && due(r) }))
	s.UnclaimedByKey = make(map[string]int)
	for _, r := range q.runs {
		if r.Admission == AdmissionGranted && r.Status == Pending && !r.WasExecuted && !r.WakeAt.After(s.Now.Add(-UnclaimedStopsRateAfter)) {
			s.UnclaimedByKey[r.Key]++
		}
	}
	for class := range s.FirstInLine {
		s.FirstInLine[class] = head(q.sorted(func(r *AdmissionRun) bool {
			return r.State == PlaceInLine && r.admissionClass() == class && r.Status == Pending && !due(r)
		}), limit, comparePlacesInLine)
	}
	s.Keys = make(map[string]*QueueKeyState)
	for key, k := range q.keys {
		touched := slices.ContainsFunc(s.Runs, func(r AdmissionRun) bool { return r.Key == key }) || !k.CheckAt.IsZero() && !k.CheckAt.After(s.Now)
		for class := range s.FirstInLine {
			touched = touched || slices.ContainsFunc(s.FirstInLine[class].Runs, func(r AdmissionRun) bool { return r.Key == key })
		}
		if !touched {
			continue
		}
		for class := range k.FirstBehindKey {
			k.FirstBehindKey[class] = head(q.sorted(func(r *AdmissionRun) bool {
				return r.State == PlaceBehindKey && r.Key == key && r.admissionClass() == class && r.Status == Pending && !due(r)
			}), limit, comparePlacesBehindKey)
		}
		s.Keys[key] = &k
	}
	plan := s.Plan("", time.Minute)
	for i := range plan.RunsToWrite {
		r := plan.RunsToWrite[i]
		q.runs[r.Run] = &r
	}
	for _, k := range plan.KeysToWrite {
		k.FirstBehindKey, k.changed, k.admitted = [3]FirstWaitingRuns{}, false, false
		q.keys[k.Key] = k
	}
	for _, key := range plan.KeysToDelete {
		delete(q.keys, key)
	}
	s.Runs, s.FirstInLine, s.Keys, s.AdmittedNotClaimed, s.UnclaimedByKey = nil, [3]FirstWaitingRuns{}, nil, 0, nil
	q.state = s
	return plan
}

// settle makes passes until there is nothing more to do now.
func (q *queueInMemory) settle(t *testing.T, limit int) AdmissionPlan {
	t.Helper()
	for range 100_000 {
		if plan := q.pass(limit); len(plan.RunsToWrite) == 0 && !plan.HasMoreWork {
			return plan
		}
	}
	t.Fatal("the admission never ends")
	return AdmissionPlan{}
}

// check compares the counts with the runs, and what executes with the bounds.
func (q *queueInMemory) check() error {
	var all QueueUse
	keys := make(map[string]*QueueKeyState)
	for _, r := range q.runs {
		k := keys[r.Key]
		if k == nil {
			k = &QueueKeyState{Key: r.Key}
			keys[r.Key] = k
		}
		switch r.State {
		case PlaceExecuting:
			all.Executing, k.Use.Executing = all.Executing+1, k.Use.Executing+1
		case PlaceInLine:
			all.Waiting++
			k.addToLineCount(r, 1)
		case PlaceBehindKey:
			all.Waiting, k.WaitingForKeyCount = all.Waiting+1, k.WaitingForKeyCount+1
		}
		if r.State != PlaceGone && r.Root && r.HasBegun {
			all.InProgress, k.Use.InProgress = all.InProgress+1, k.Use.InProgress+1
		}
	}
	if all != q.state.Use {
		return fmt.Errorf("counted %+v, recorded %+v", all, q.state.Use)
	}
	for key, k := range keys {
		if r := q.keys[key]; k.Use != r.Use || k.InLine != r.InLine || k.InLineByPriority != r.InLineByPriority || k.WaitingForKeyCount != r.WaitingForKeyCount {
			return fmt.Errorf("key %q: counted %+v %v %d, recorded %+v %v %d", key, k.Use, k.InLine, k.WaitingForKeyCount, r.Use, r.InLine, r.WaitingForKeyCount)
		}
	}
	s := q.state.Settings
	if s.MaxExecuting > 0 && all.Executing > s.MaxExecuting || s.MaxInProgress > 0 && all.InProgress > s.MaxInProgress {
		return fmt.Errorf("bounds %+v are exceeded by %+v", s, all)
	}
	for key, k := range keys {
		if key != "" && (s.MaxExecutingPerKey > 0 && k.Use.Executing > s.MaxExecutingPerKey || s.MaxInProgressPerKey > 0 && k.Use.InProgress > s.MaxInProgressPerKey) {
			return fmt.Errorf("bounds %+v of key %q are exceeded by %+v", s, key, k.Use)
		}
	}
	return nil
}

// idle returns an error if a run waits although there is room for it.
func (q *queueInMemory) idle() error {
	s := q.state.Settings
	if q.state.Settings.MaxExecuting > 0 && q.state.Use.Executing >= s.MaxExecuting || !q.state.PausedAt.IsZero() {
		return nil
	}
	if len(q.sorted(func(r *AdmissionRun) bool { return r.Admission == AdmissionGranted && r.Status == Pending })) >= MaxAdmittedNotClaimed {
		return nil
	}
	for _, r := range q.runs {
		if r.State != PlaceInLine && r.State != PlaceBehindKey {
			continue
		}
		k := q.keys[r.Key]
		class := r.admissionClass()
		switch {
		case class == 2 && s.MaxInProgress > 0 && q.state.Use.InProgress >= s.MaxInProgress,
			class > 0 && s.Rate.Count > 0 && s.Rate.freeUnitsAt(q.state.RateUsedUntil, q.state.Now) == 0,
			r.Key != "" && s.MaxExecutingPerKey > 0 && k.Use.Executing >= s.MaxExecutingPerKey,
			r.Key != "" && class == 2 && s.MaxInProgressPerKey > 0 && k.Use.InProgress >= s.MaxInProgressPerKey,
			r.Key != "" && class > 0 && s.RatePerKey.Count > 0 && s.RatePerKey.freeUnitsAt(k.RateUsedUntil, q.state.Now) == 0:
			continue
		}
		return fmt.Errorf("run %v of key %q, class %d, waits although there is room: %+v, key %+v", r.Run, r.Key, class, q.state.Use, k)
	}
	return nil
}

// claim executes the admitted runs.
func (q *queueInMemory) claim() (claimed []*AdmissionRun) {
	for _, r := range q.sorted(func(r *AdmissionRun) bool { return r.Admission.IsAdmitted() && r.Status == Pending }) {
		run := q.runs[r.Run]
		run.Status, run.WasExecuted, run.WakeAt = Running, true, q.state.Now.Add(time.Hour)
		claimed = append(claimed, run)
	}
	return claimed
}

func (r *AdmissionRun) endIt() { r.Status, r.WakeAt = Completed, time.Time{} }

func TestAdmissionKeepsCountsAndBounds(t *testing.T) {
	for seed := range uint64(60) {
		x := rand.New(rand.NewPCG(seed, 1))
		some := func(n int) int { // zero in half of the cases
			if x.IntN(2) == 0 {
				return 0
			}
			return 1 + x.IntN(n)
		}
		rate := func() Rate {
			if x.IntN(3) > 0 {
				return Rate{}
			}
			return Rate{Count: 1 + x.IntN(5), Period: time.Second, Burst: 1 + x.IntN(3)}
		}
		q := newQueueInMemory(QueueSettings{MaxExecuting: some(5), MaxInProgress: some(6), MaxExecutingPerKey: some(3), MaxInProgressPerKey: some(3), Rate: rate(), RatePerKey: rate()})
		limit := 1 + x.IntN(6)
		for step := range 150 {
			live := q.sorted(func(r *AdmissionRun) bool { return !r.Status.IsTerminal() })
			switch n := x.IntN(10); {
			case n < 4 || len(live) == 0:
				q.start([]string{"", "a", "b", "c"}[x.IntN(4)], int16(x.IntN(5)-2), int32(1+x.IntN(3)), x.IntN(4) > 0)
			case n == 4:
				q.state.Now = q.state.Now.Add(time.Duration(x.IntN(1500)) * time.Millisecond)
			default:
				r := q.runs[live[x.IntN(len(live))].Run]
				switch {
				case r.Status == Running && x.IntN(2) == 0:
					r.endIt()
				case r.Status == Running:
					r.Status, r.WakeAt = Waiting, q.state.Now.Add(time.Duration(x.IntN(2000))*time.Millisecond)
				case x.IntN(8) == 0: // terminated
					r.endIt()
				case x.IntN(8) == 0 && r.Status != Paused:
					r.Status, r.WakeAt = Paused, time.Time{}
				case r.Status == Paused:
					r.Status, r.WakeAt = Pending, q.state.Now
				case x.IntN(8) == 0:
					r.Control |= CancelRequested
					r.WakeAt = q.state.Now
				}
			}
			q.pass(limit)
			if err := q.check(); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			if x.IntN(2) == 0 {
				q.claim()
			}
		}
		q.settle(t, limit)
		for _, err := range []error{q.check(), q.idle()} {
			if err != nil {
				t.Fatalf("seed %d, at the end: %v", seed, err)
			}
		}
		live := func() []AdmissionRun { return q.sorted(func(r *AdmissionRun) bool { return !r.Status.IsTerminal() }) }
		for round := 0; len(live()) > 0; round++ { // everything ends
			if round == 10_000 {
				t.Fatalf("seed %d: %d runs never ended, such as %+v", seed, len(live()), live()[0])
			}
			for _, r := range live() {
				switch run := q.runs[r.Run]; {
				case run.Status == Running:
					run.endIt()
				case run.Status == Paused || run.Status == Waiting && run.WakeAt.IsZero():
					run.Status, run.WakeAt = Pending, q.state.Now
				}
			}
			q.pass(limit)
			q.claim()
			q.state.Now = q.state.Now.Add(100 * time.Millisecond)
		}
		q.settle(t, limit)
		if q.state.Use != (QueueUse{}) {
			t.Fatalf("seed %d: an empty queue counts %+v", seed, q.state.Use)
		}
	}
}

// A store may not know the point of the database's history. That alone is nothing to do.
func TestQueueIsIdleThoughItsHistoryIsUnknown(t *testing.T) {
	s := QueueState{DatabaseTimeline: "1/A0"}
	if idle, _ := s.HasNothingToDo(""); !idle {
		t.Error("each look at the queue would write")
	}
	if idle, _ := s.HasNothingToDo("2/A0"); idle {
		t.Error("a failover is not noticed")
	}
}

func TestKeysTakeTurnsByWeight(t *testing.T) {
	q := newQueueInMemory(QueueSettings{MaxExecuting: 1})
	for range 1000 {
		q.start("large", 0, 1, true)
	}
	q.settle(t, 100)
	q.start("small", 0, 1, true)
	for range 30 {
		q.start("heavy", 0, 3, true)
	}
	var order []string
	for range 12 {
		q.settle(t, 100)
		for _, r := range q.claim() {
			order = append(order, r.Key)
			r.endIt()
		}
	}
	n := make(map[string]int)
	for _, key := range order {
		n[key]++
	}
	if i := slices.Index(order, "small"); i < 0 || i > 5 || n["heavy"] < 6 || n["large"] < 3 {
		t.Errorf("1,000 runs of one key were before others: %v", order)
	}
}

func TestOneOpenRunPerKeyInOrderOfStart(t *testing.T) {
	q := newQueueInMemory(QueueSettings{MaxInProgressPerKey: 1})
	var want []uuid.UUID
	for range 20 {
		want = append(want, q.start("customer", 0, 1, true).Run)
		q.state.Now = q.state.Now.Add(time.Millisecond)
	}
	var got []uuid.UUID
	for len(got) < len(want) {
		q.settle(t, 5)
		claimed := q.claim()
		if len(claimed) != 1 {
			t.Fatalf("%d runs of the key execute at once", len(claimed))
		}
		r := claimed[0]
		got = append(got, r.Run)
		r.Status, r.WakeAt = Waiting, q.state.Now.Add(time.Second) // it stays open while it sleeps
		q.settle(t, 5)
		if others := q.claim(); len(others) > 0 {
			t.Fatal("another run of the key began while the open one slept")
		}
		q.state.Now = q.state.Now.Add(time.Second)
		q.settle(t, 5)
		q.claim()
		r = q.runs[r.Run]
		r.endIt()
	}
	if !slices.Equal(got, want) {
		t.Error("the runs of one key did not begin in the order of their starts")
	}
}

func TestUrgentRunPassesThoseInLine(t *testing.T) {
	q := newQueueInMemory(QueueSettings{MaxExecuting: 1})
	for range 100 {
		q.start("a", 0, 1, true)
	}
	q.settle(t, 50)
	urgent := q.start("a", 2, 1, true)
	q.settle(t, 50)
	for _, r := range q.claim() {
		r.endIt()
	}
	q.settle(t, 50)
	if c := q.claim(); len(c) != 1 || c[0].Run != urgent.Run {
		t.Errorf("claimed %v, not the urgent run", c)
	}
}

func TestPausedQueueLetsGoOnWhatHasBegun(t *testing.T) {
	q := newQueueInMemory(QueueSettings{MaxExecuting: 1})
	begun, fresh := q.start("", 0, 1, true), q.start("", 0, 1, true)
	q.settle(t, 5)
	q.claim()
	r := q.runs[begun.Run]
	r.Status, r.WakeAt = Waiting, q.state.Now.Add(time.Second)
	q.state.PausedAt = q.state.Now
	q.settle(t, 5)
	q.state.Now = q.state.Now.Add(time.Second)
	q.settle(t, 5)
	if c := q.claim(); len(c) != 1 || c[0].Run != begun.Run {
		t.Errorf("claimed %v", c)
	}
	q.runs[begun.Run].endIt()
	q.settle(t, 5)
	if c := q.claim(); len(c) != 0 {
		t.Error("a run began in a paused queue")
	}
	q.state.PausedAt = time.Time{}
	q.settle(t, 5)
	if c := q.claim(); len(c) != 1 || c[0].Run != fresh.Run {
		t.Errorf("claimed %v after the pause", c)
	}
}
