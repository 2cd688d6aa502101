package store

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// An urgent run does not wait until the less urgent runs of its key, which are in line already, have had their turn.
func TestAnUrgentRunPassesThoseOfItsKeyInLine(t *testing.T) {
	for _, s := range []QueueSettings{{MaxExecuting: 1, MaxInProgressPerKey: 1}, {MaxExecuting: 1, MaxExecutingPerKey: 1}} {
		q := newQueueInMemory(s)
		busy := q.start("busy", 0, 1, true)
		q.settle(t, 100)
		slow := q.start("a", -2, 1, true)
		q.settle(t, 100)
		urgent := q.start("a", 2, 1, true)
		for range 5 {
			q.start("", 0, 1, true)
		}
		q.settle(t, 100)
		q.runs[busy.Run].endIt()
		q.settle(t, 100)
		if r := q.runs[urgent.Run]; r.State != PlaceExecuting {
			t.Errorf("%+v: the urgent run is in state %d", s, r.State)
		}
		q.runs[urgent.Run].endIt()
		for range 6 {
			q.settle(t, 100)
			if err := q.check(); err != nil {
				t.Fatal(err)
			}
			for _, r := range q.runs {
				if r.State == PlaceExecuting && r.Run != slow.Run {
					r.endIt()
				}
			}
		}
		if r := q.runs[slow.Run]; r.State != PlaceExecuting {
			t.Errorf("%+v: the less urgent run is in state %d when nothing else is left", s, r.State)
		}
	}
}

// A run that continues, and a child, do not wait until all roots of their key that are in line have begun. They take turns with other
// keys, so that many of them do not hold up another key's root.
func TestARunThatContinuesPassesRootsOfItsKey(t *testing.T) {
	for _, key := range []string{"", "a"} {
		q := newQueueInMemory(QueueSettings{MaxExecuting: 1})
		var sleepers []*AdmissionRun
		for range 20 { // they have begun, and wait
			r := q.start(key, 0, 1, true)
			q.settle(t, 100)
			for _, r := range q.claim() {
				r.Status, r.WakeAt = Waiting, q.state.Now.Add(time.Second)
			}
			q.settle(t, 100)
			sleepers = append(sleepers, r)
		}
		busy := q.start("busy", 0, 1, true)
		q.settle(t, 100)
		for range 100 {
			q.start(key, 0, 1, true)
		}
		other := q.start("other", 0, 1, true)
		q.settle(t, 1000)
		child := q.start(key, 0, 1, false)
		q.state.Now = q.state.Now.Add(time.Second)
		q.settle(t, 1000)
		executing := func() (executing *AdmissionRun) {
			for _, r := range q.runs {
				if r.State == PlaceExecuting {
					executing = r
				}
			}
			return executing
		}
		q.runs[busy.Run].endIt()
		order := make(map[uuid.UUID]int)
		for i := range 122 {
			q.settle(t, 1000)
			if err := q.check(); err != nil {
				t.Fatal(err)
			}
			r := executing()
			order[r.Run] = i
			r.endIt()
		}
		last := order[child.Run]
		for _, r := range sleepers {
			last = max(last, order[r.Run])
		}
		if last > 60 || order[other.Run] > 5 {
			t.Errorf("key %q: the last run that continues came as number %d, and the root of another key as number %d", key, last, order[other.Run])
		}
	}
}
