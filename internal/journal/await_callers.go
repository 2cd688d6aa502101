package journal

import (
	"math"
	"runtime"
	"time"
)

// Limits of the wait for callers, measured on two cores; see docs/decisions.md.
const (
	maxArrivalYields          = 3                      // scheduler turns for callers that are about to append
	maxCallerWait             = 200 * time.Microsecond // the longest wait for the callers of the last flush
	maxCallerWaitYields       = 4096                   // scheduler turns in that wait, because a test's clock may stand still
	flushesPerCallerWaitTrial = 16                     // every 16th flush waits for the callers of the last flush even if few returned in time before
	minCallersToSleep         = 2                      // one caller leaves the other processor free
	minCallerReturnRate       = 0.5                    // below this rate, the other flushes do not wait for them
)

// awaitMoreEntries gives callers time to append before a batch is taken. It yields to the scheduler a
// few times, which costs nothing if no other goroutine is runnable. It waits longer for the callers
// of the last flush, because most of them append their next step at once. They may run on another processor, so a few scheduler turns
// on this one may be too short for them. If few callers returned in time recently, because their steps take longer, awaitMoreEntries
// does not wait for them. In every 16th flush it waits nevertheless, to measure again.
//
// While the callers that are most likely to return are absent, the writer sleeps. If it yielded all the time, it would keep one processor
// busy: the scheduler gives a free processor the goroutine that has yielded before it moves a caller there from another processor. For
// the last callers the writer yields, because a timer may be late by a millisecond.
func (j *Journal) awaitMoreEntries(returning int) {
	first := j.PendingEntries()
	if first >= max(secondWriterThreshold, returning/4) {
		return // the batch is large enough to be written at once, and the callers prepare the next one meanwhile
	}
	began, seen := time.Now(), first
	limit := min(maxCallerWait, time.Duration(j.counters.averageTime.Load())/2)
	want, certain := j.callersToAwait(returning)
	late := certain >= minCallersToSleep && limit > 0 && !j.sleepUntilPending(first+certain, limit)
	for turn := 1; ; turn++ {
		runtime.Gosched()
		now := j.PendingEntries()
		still := turn < maxArrivalYields && now != seen
		if !still && (now-first >= want || turn >= maxCallerWaitYields || time.Since(began) >= limit) {
			break
		}
		seen = now
	}
	returned := j.PendingEntries() - first
	if late { // the timer may have been late too, so some of them have not returned in time
		returned = min(returned, certain-1)
	}
	j.updateCallerReturnRate(returned, returning)
}

// callersToAwait returns how many callers of the last flush the next flush waits for, and how many of them are so likely to return in time
// that the writer sleeps meanwhile.
func (j *Journal) callersToAwait(returning int) (want, certain int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if returning == 0 || j.callerReturnRate < minCallerReturnRate && j.counters.flushes.Load()%flushesPerCallerWaitTrial != 0 {
		return 0, 0
	}
	return returning, max(0, int(math.Round(float64(returning)*(2*j.callerReturnRate-1))))
}

// updateCallerReturnRate records how many of the callers of the last flush appended in time.
func (j *Journal) updateCallerReturnRate(returned, callers int) {
	if callers == 0 {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.callerReturnRate += (min(1, float64(returned)/float64(callers)) - j.callerReturnRate) / 4
}

// writerSleep is the sleep of a writer until enough entries are pending. At most one writer sleeps at a time. The mutex of the journal
// guards it.
type writerSleep struct {
	taken  bool          // a writer sleeps, or is about to wake up
	wakeAt int           // the number of pending entries that wakes the writer; zero: nothing wakes it but its timer
	woken  chan struct{} // receives a value when so many are pending; has a buffer of one, so that no caller waits
	timer  *time.Timer
}

func newWriterSleep() writerSleep {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return writerSleep{woken: make(chan struct{}, 1), timer: timer}
}

// wakeIfReached wakes the writer that sleeps, if so many pending entries are enough.
func (s *writerSleep) wakeIfReached(pending int) {
	if s.wakeAt > 0 && pending >= s.wakeAt {
		s.wakeAt = 0
		s.woken <- struct{}{}
	}
}

// sleepUntilPending waits until so many entries are pending. It returns false if the limit was over before. It returns at once if another
// writer sleeps.
func (j *Journal) sleepUntilPending(entries int, limit time.Duration) (inTime bool) {
	s := &j.sleep
	j.mu.Lock()
	if s.taken || len(j.pendingEntries) >= entries {
		j.mu.Unlock()
		return true
	}
	s.taken, s.wakeAt = true, entries
	j.mu.Unlock()
	s.timer.Reset(limit)
	select {
	case <-s.woken:
		inTime = true
	case <-s.timer.C:
	}
	s.timer.Stop()
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-s.woken: // the last entry came when the time was over
	default:
	}
	s.taken, s.wakeAt = false, 0
	return inTime
}
