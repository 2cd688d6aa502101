package slots

import "time"

// turnoverWindow is the period over which returned slots are counted.
const turnoverWindow = 30 * time.Millisecond

// turnover counts the slots that runs returned, over two periods. A worker prefetches at most as many runs
// as slots came free recently, so that other workers take the runs that would wait long here.
type turnover struct {
	periodBegan                 time.Time // when the current period began
	currentCount, previousCount int       // slots returned in the current period and in the period before
}

func (t *turnover) countReturn(at time.Time) {
	t.advancePeriod(at)
	t.currentCount++
}

// count returns how many slots came free in a recent period.
func (t *turnover) count(at time.Time) int {
	t.advancePeriod(at)
	return max(t.currentCount, t.previousCount)
}

// advancePeriod begins a new period if the current period is over.
func (t *turnover) advancePeriod(at time.Time) {
	switch passed := at.Sub(t.periodBegan); {
	case passed >= 2*turnoverWindow:
		t.periodBegan, t.currentCount, t.previousCount = at, 0, 0
	case passed >= turnoverWindow:
		t.periodBegan, t.currentCount, t.previousCount = t.periodBegan.Add(turnoverWindow), 0, t.currentCount
	}
}
