package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed8ec063be/durable/internal/store"
)

// newInbox returns the inbox of a lone run.
func newInbox(t *testing.T) *waitingReceives {
	t.Helper()
	return &newLoneRun(t, new(slate), store.ClaimedRun{}).waitingReceives
}

// waiting adds n receives that have queried for the signal in vain.
func (in *waitingReceives) waiting(signal string, n int) (all []*waitingReceive) {
	for range n {
		l := in.addReceive(signal)
		in.markReceiveQuerying(l)
		in.markReceiveIdle(l)
		all = append(all, l)
	}
	return all
}

// called returns the indexes of the receives that were called and have not begun their query.
func called(all []*waitingReceive) (indexes []int) {
	for i, l := range all {
		if len(l.queryRequested) > 0 {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// takeCounts returns how many counts the run has requested from its worker since the last call of takeCounts.
func (in *waitingReceives) takeCounts() int {
	return len(in.r.w.signalCounts.takeAll())
}

// A wake of a run with few receives calls all of them, also one that is querying: it may have queried before
// the signal came.
func TestAWakeMakesFewReceivesQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		all := append(in.waiting("a", maxReceivesWithoutCount/2), in.waiting("b", maxReceivesWithoutCount-maxReceivesWithoutCount/2)...)
		in.markReceiveQuerying(all[1])
		in.wake()
		in.wake()
		if got := called(all); len(got) != maxReceivesWithoutCount {
			t.Errorf("called %v of %d receives", got, maxReceivesWithoutCount)
		}
		if n := in.takeCounts(); n != 0 || in.r.idleTracker.activeCalls != 0 {
			t.Errorf("%d counts were requested, %d calls are active", n, in.r.idleTracker.activeCalls)
		}
		in.markReceiveQuerying(all[0])
		if got := called(all); slices.Contains(got, 0) {
			t.Error("a receive that queries is still called")
		}
		in.markReceiveIdle(all[0])
		if got := called(all); len(got) != maxReceivesWithoutCount-1 {
			t.Errorf("called %v after one has queried in vain", got)
		}
	})
}

// A wake of a run with many receives requests one count, however many wakes follow. The run is busy until
// the count is delivered. A wake during the count requests another count.
func TestAWakeOfManyReceivesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		all := in.waiting("a", maxReceivesWithoutCount+1)
		for range 3 {
			in.wake()
		}
		if n := in.takeCounts(); n != 1 || len(called(all)) != 0 || in.r.idleTracker.activeCalls != 1 {
			t.Errorf("%d counts were requested, %v were called, %d calls are active", n, called(all), in.r.idleTracker.activeCalls)
		}
		in.beginSignalCount() // the count that is read now covers the three wakes
		in.wake()
		in.deliverSignalCounts(nil, true)
		if n := in.takeCounts(); n != 1 || in.r.idleTracker.activeCalls != 1 {
			t.Errorf("after a wake during the count, %d counts were requested, %d calls are active", n, in.r.idleTracker.activeCalls)
		}
		in.beginSignalCount()
		in.deliverSignalCounts(nil, true)
		if n := in.takeCounts(); n != 0 || len(called(all)) != 0 || in.r.idleTracker.activeCalls != 0 {
			t.Errorf("after counts without a signal, %d counts were requested, %v were called, %d calls are active", n, called(all), in.r.idleTracker.activeCalls)
		}
	})
}

// A count calls as many receives as there are signals, those that have waited longest first. Receives that
// query already, or were called already, count as called.
func TestACountWakesAsManyReceivesAsThereAreSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		a, b := in.waiting("a", 6), in.waiting("b", 6)
		in.markReceiveQuerying(a[0])
		in.wake()
		in.beginSignalCount()
		in.deliverSignalCounts(map[string]int{"a": 3, "b": 1, "other": 5}, true)
		if got := called(a); !slices.Equal(got, []int{1, 2}) {
			t.Errorf("a: three signals and one query have called %v", got)
		}
		if got := called(b); !slices.Equal(got, []int{0}) {
			t.Errorf("b: one signal has called %v", got)
		}
		in.takeCounts()
		in.markReceiveIdle(a[0])
		if n := in.takeCounts(); n != 1 {
			t.Errorf("%d counts were requested after a query that the count may have missed", n)
		}
		in.beginSignalCount()
		in.deliverSignalCounts(map[string]int{"a": 3, "b": 100}, true)
		if got := called(a); !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("a: three signals and two calls have called %v", got)
		}
		if got := called(b); len(got) != len(b) {
			t.Errorf("b: 100 signals have called %v", got)
		}
	})
}

// If the signals cannot be counted, every receive queries for itself.
func TestAFailedCountWakesAllReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		all := append(in.waiting("a", maxReceivesWithoutCount), in.waiting("b", 1)...)
		in.wake()
		in.beginSignalCount()
		in.deliverSignalCounts(nil, false)
		if got := called(all); len(got) != len(all) || in.r.idleTracker.activeCalls != 0 {
			t.Errorf("called %v, %d calls are active", got, in.r.idleTracker.activeCalls)
		}
	})
}

// A receive whose row exists waits for a count if many receives wait. Otherwise it queries at once.
func TestAnOldReceiveAwaitsACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		var all []*waitingReceive
		for i := range maxReceivesWithoutCount + 2 {
			l := in.addReceive("a")
			all = append(all, l)
			if waits := in.queueForSignalCountIfMany(l); waits != (i >= maxReceivesWithoutCount) {
				t.Errorf("receive %d of at most %d few waits: %v", i+1, maxReceivesWithoutCount, waits)
			} else if !waits {
				in.markReceiveQuerying(l)
				in.markReceiveIdle(l)
			}
		}
		if n := in.takeCounts(); n != 1 {
			t.Errorf("%d counts were requested", n)
		}
		in.beginSignalCount()
		in.deliverSignalCounts(map[string]int{"a": len(all)}, true)
		if got := called(all); len(got) != len(all) {
			t.Errorf("called %v", got)
		}
	})
}

// A receive that leaves without a signal leaves the signal to the others.
func TestAReceiveThatEndsPassesItsWakeOn(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(in *waitingReceives, l *waitingReceive)
		calls bool
	}{
		"with a signal": {func(in *waitingReceives, l *waitingReceive) { in.markReceiveQuerying(l); in.removeReceive(l, true) }, false},
		"with a signal, and called": {func(in *waitingReceives, l *waitingReceive) {
			in.markReceiveQuerying(l)
			in.wakeReceive(l)
			in.removeReceive(l, true)
		}, true},
		"with a signal, after a count": {func(in *waitingReceives, l *waitingReceive) {
			in.markReceiveQuerying(l)
			l.queue.countsDelivered++
			in.removeReceive(l, true)
		}, true},
		"without a signal":              {func(in *waitingReceives, l *waitingReceive) { in.markReceiveQuerying(l); in.removeReceive(l, false) }, true},
		"without a query, while called": {func(in *waitingReceives, l *waitingReceive) { in.wakeReceive(l); in.removeReceive(l, false) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInbox(t)
				all := in.waiting("a", 3)
				c.leave(in, all[0])
				if got := called(all[1:]); (len(got) == 2) != c.calls || len(in.receives) != 2 {
					t.Errorf("called %v of two, want calls: %v; %d receives are left", got, c.calls, len(in.receives))
				}
				in.removeReceive(all[1], true)
				in.removeReceive(all[2], true)
				if len(in.queuesByName) != 0 || len(in.receives) != 0 {
					t.Errorf("%d queues and %d receives are left", len(in.queuesByName), len(in.receives))
				}
			})
		})
	}
}

// mail plays a run's receives and its signals in the database, one small part of a query or count at a time.
type mail struct {
	in     *waitingReceives
	rnd    *rand.Rand
	stored map[string]int // signals that nobody has taken
	all    []*mailReceive
	count  map[string]int // the count that was read and is not delivered; nil: none
}

// mailReceive is one receive. does is "waits", "queries", "took" (it has taken a signal) or "found nothing".
type mailReceive struct {
	*waitingReceive
	does string
}

// remove removes the receive, and says to the inbox that it leaves.
func (m *mail) remove(l *mailReceive) {
	m.all = slices.DeleteFunc(m.all, func(o *mailReceive) bool { return o == l })
	m.in.removeReceive(l.waitingReceive, l.does == "took")
}

// step does something at random. With quiet it only lets go on what has begun, and reports whether anything
// was left to do.
func (m *mail) step(quiet bool) bool {
	var ready []func()
	for _, l := range m.all {
		switch {
		case l.does == "waits" && len(l.queryRequested) > 0:
			ready = append(ready, func() { m.in.markReceiveQuerying(l.waitingReceive); l.does = "queries" })
		case l.does == "queries":
			ready = append(ready, func() {
				if l.does = "found nothing"; m.stored[l.signal] > 0 {
					m.stored[l.signal]--
					l.does = "took"
				}
			})
		case l.does == "found nothing":
			ready = append(ready, func() { m.in.markReceiveIdle(l.waitingReceive); l.does = "waits" })
		case l.does == "took":
			ready = append(ready, func() { m.remove(l) })
		}
		if !quiet && l.does != "took" && m.rnd.IntN(20) == 0 { // its time is over, or its branch has ended
			ready = append(ready, func() { m.remove(l) })
		}
	}
	switch w := m.in.r.w; {
	case m.count != nil:
		ready = append(ready, func() { c := m.count; m.count = nil; m.in.deliverSignalCounts(c, true) })
	case len(w.signalCounts.runs) > 0:
		ready = append(ready, func() {
			w.signalCounts.runs = w.signalCounts.runs[1:]
			m.in.beginSignalCount()
			m.count = make(map[string]int)
			for name, n := range m.stored {
				m.count[name] = n
			}
		})
	}
	name := string('a' + rune(m.rnd.IntN(3)))
	if !quiet {
		ready = append(ready, func() { m.stored[name]++; m.in.wake() }, func() {
			l := &mailReceive{m.in.addReceive(name), "waits"}
			if m.all = append(m.all, l); m.rnd.IntN(2) > 0 || !m.in.queueForSignalCountIfMany(l.waitingReceive) {
				m.in.markReceiveQuerying(l.waitingReceive)
				l.does = "queries"
			}
		})
	}
	if len(ready) == 0 {
		return false
	}
	ready[m.rnd.IntN(len(ready))]()
	return true
}

// Whatever the order in which receives query, leave and are counted, no signal is left beside a receive that
// waits for it, and the run is idle in the end.
func TestNoSignalIsLeftBesideAReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInbox(t)
		for seed := range uint64(300) {
			*in = waitingReceives{r: in.r}
			m := &mail{in: in, rnd: rand.New(rand.NewPCG(seed, 0)), stored: make(map[string]int)}
			for range 100 {
				m.step(false)
			}
			steps := 0
			for m.step(true) {
				if steps++; steps > 10_000 {
					t.Fatalf("seed %d: the receives never come to rest", seed)
				}
			}
			for _, l := range m.all {
				if n := m.stored[l.signal]; n > 0 {
					t.Errorf("seed %d: %d signals %q are stored, and a receive waits for one", seed, n, l.signal)
				}
			}
			if in.r.idleTracker.activeCalls != 0 {
				t.Fatalf("seed %d: %d calls are active", seed, in.r.idleTracker.activeCalls)
			}
		}
	})
}
