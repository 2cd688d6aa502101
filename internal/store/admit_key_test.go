package store

import "testing"

// An urgent run does not wait until the less urgent runs of its key, which are in line already, have had their turn.
func TestAnUrgentRunPassesThoseOfItsKeyInLine(t *testing.T) {
	for _, s := range []QueueSettings{{Executing: 1, KeyOpen: 1}, {Executing: 1, KeyExecuting: 1}} {
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
