package slots

import "time"

// turnoverWindow is the period over which returned slots are counted.
const turnoverWindow = 30 * time.Millisecond

// turnover counts the slots that runs returned, over two periods. A worker prefetches at most as many runs
// as slots came free recently, so that other workers take the runs that would wait long here.
type turnover struct {
	since     time.Time // when the current period began
	now, last int       // slots returned in the current period and in the period before
}

func (t *turnover) add(at time.Time) {
	t.advance(at)
	t.now++
}

// count returns how many slots came free in a recent period.
func (t *turnover) count(at time.Time) int {
	t.advance(at)
	return max(t.now, t.last)
}

// advance begins a new period if the current period is over.
func (t *turnover) advance(at time.Time) {
	switch passed := at.Sub(t.since); {
	case passed >= 2*turnoverWindow:
		t.since, t.now, t.last = at, 0, 0
	case passed >= turnoverWindow:
		t.since, t.now, t.last = t.since.Add(turnoverWindow), 0, t.now
	}
}
