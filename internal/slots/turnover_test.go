package slots

import (
	"testing"
	"testing/synctest"
	"time"
)

// A pool prefetches no more than slots came free lately, and nothing where few places are empty.
func TestRoomForPrefetchedRuns(t *testing.T) {
	const limit = 256
	at := time.Now()
	for _, c := range []struct {
		freed, places, want int
		after               time.Duration // since they came free
	}{
		{freed: 0, want: 0},
		{freed: 1, want: 0},
		{freed: 2, want: 2},
		{freed: 3, want: 3},
		{freed: 3, want: 3, after: turnoverWindow},
		{freed: 3, want: 0, after: 2 * turnoverWindow},
		{freed: 100, want: 100},
		{freed: 100, places: 50, want: 50},
		{freed: 100, places: 51, want: 0},
		{freed: 100, places: 200, want: 0},
		{freed: 2 * limit, want: limit},
	} {
		p := &Pool{turnover: turnover{periodBegan: at}, prefetchPlaces: c.places}
		for range c.freed {
			p.turnover.countReturn(at)
		}
		if got := prefetchOf(p.turnover.count(at.Add(c.after)), p.prefetchPlaces, limit); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// The turnover is that of the busier of two periods, the current one and the one before.
func TestTurnoverForgets(t *testing.T) {
	var turns turnover
	at := time.Now()
	for range 4 {
		turns.countReturn(at)
	}
	for range 3 {
		turns.countReturn(at.Add(turnoverWindow))
	}
	for i, want := range []int{4, 3, 0} {
		if got := turns.count(at.Add(time.Duration(i+1) * turnoverWindow)); got != want {
			t.Errorf("%d periods later: %d, want %d", i+1, got, want)
		}
	}
}

// Only slots that came free count for the turnover: not those that prefetched runs never got, nor those
// that nobody used.
func TestTurnoverCountsRunsThatHadASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPool(t, 3)
		for range 3 {
			r := p.Reserve(3, 0, 0)
			r.Release()
		}
		all := assign(t, p, 6)
		all[3].Release()
		all[4].Release()
		if free, n := JointRoom([]*Pool{p}, 9); n != 0 || free != 0 {
			t.Errorf("%d slots are free, and %d runs are to be prefetched, after none has left", free, n)
		}
		all[0].Release()
		all[1].Release() // one goes to the last of the queue
		if free, n := JointRoom([]*Pool{p}, 9); n != 2 || free != 1 {
			t.Errorf("%d slots are free, and %d runs are to be prefetched, after two have left", free, n)
		}
		if _, n := JointRoom([]*Pool{p}, 1); n != 1 {
			t.Errorf("%d runs are to be prefetched, at most one", n)
		}
	})
}
