package durabletest

import (
	"fmt"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
)

const (
	minPollInterval      = 50 * time.Microsecond // the shortest time between two checks whether all engines wait
	maxPollInterval      = 2 * time.Millisecond
	requestClaimsTimeout = time.Second // how long pollAllEngines waits
	neverDue             = 25 * 365 * 24 * time.Hour
	leaseDuration        = 2 * neverDue // so long that no lease ends before anything that is due
)

// clockDriver moves the clock of one or several engines. Its goroutine repeats this, at intervals of minPollInterval to
// maxPollInterval of real time:
//
//  1. The clock stands still unless a goroutine of the test waits in Advance or AdvanceUntil, or, while the clock is not
//     frozen, waits for a result.
//  2. The clock stands still while an engine calls its database, a run in memory does more than wait, or a signal is being
//     delivered. All of this must have been over for the settling time, unless the process has no runnable goroutine.
//  3. Runs that wait for longer than Config.ParkAfter are unloaded from memory. If there were any, begin again at 1.
//  4. Every engine claims and admits runs to their queues once more, and checks once more for awaited results. If this has
//     written anything or started any work, or if nobody waits any more, begin again at 1.
//  5. Timers that are due at the present time are called.
//  6. Otherwise, if the condition of AdvanceUntil holds, or nothing is due up to the time of Advance, that call returns.
//  7. Otherwise the clock jumps to the first timer, or to the due time that a claim returned, if that comes first.
//  8. If there is neither a timer nor a due time, or if for a while runs were only held, AdvanceUntil returns an error, and
//     endStuckWaits ends the waits for results.
type clockDriver struct {
	t     testing.TB
	clock *manualClock

	mu               sync.Mutex
	hooks            []*engineHooks
	waiters          []*clockWaiter
	isFrozen         bool
	activeDeliveries int // deliveries whose function has not returned

	deliveries sync.WaitGroup

	quietTimer   unchangedTimer // all engines wait
	stuckTimer   unchangedTimer // nothing more can happen
	stuckFinding stuckFinding
	holds        runHoldCounter
	stall        clockStall

	stop chan struct{}
	done chan struct{}
}

// clockWaiter is a goroutine of the test that waits in Advance or AdvanceUntil.
type clockWaiter struct {
	moveUntil time.Time   // how far to move the clock; zero means no limit
	cond      func() bool // ends the wait when it returns true; may be nil
	done      chan error
}

// unchangedTimer measures for how long nothing has changed.
type unchangedTimer struct {
	lastVersion uint64 // the stateVersion at the beginning
	since       time.Time
}

// duration returns the real time from the beginning to now. It begins anew if the version has changed. now was read before
// the version.
func (s *unchangedTimer) duration(version uint64, now time.Time) time.Duration {
	if version != s.lastVersion || s.since.IsZero() {
		s.restart(version, now)
	}
	return now.Sub(s.since)
}

func (s *unchangedTimer) restart(version uint64, now time.Time) {
	s.lastVersion, s.since = version, now
}

func newClockDriver(t testing.TB, c *manualClock) *clockDriver {
	p := &clockDriver{t: t, clock: c, stop: make(chan struct{}), done: make(chan struct{})}
	go p.drive()
	return p
}

// close stops the driver's goroutine. The clock stands still afterwards.
func (p *clockDriver) close() {
	close(p.stop)
	<-p.done
}

func (p *clockDriver) addEngineHooks(n *engineHooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, n)
}

func (p *clockDriver) removeEngineHooks(n *engineHooks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, own := range p.hooks {
		if own == n {
			p.hooks = append(p.hooks[:i:i], p.hooks[i+1:]...)
			return
		}
	}
}

func (p *clockDriver) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isFrozen = frozen
}

// waitForTime makes time pass until the clock reaches the time, or until cond returns true.
func (p *clockDriver) waitForTime(until time.Time, cond func() bool) error {
	a := &clockWaiter{moveUntil: until, cond: cond, done: make(chan error, 1)}
	p.mu.Lock()
	p.waiters = append(p.waiters, a)
	p.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case <-p.done:
		return fmt.Errorf("durabletest: the engine of this test has stopped: call Advance and AdvanceUntil before the test ends")
	}
}

// drive is the driver's goroutine.
func (p *clockDriver) drive() {
	defer close(p.done)
	interval := maxPollInterval
	for p.sleepRealTime(interval) {
		nodes, a, wanted := p.firstWaiter()
		switch {
		case !wanted:
			interval = maxPollInterval
		case p.isQuiescent(nodes, a):
			interval = minPollInterval
			p.advanceClock(nodes, a)
		case p.stateVersion(nodes) != p.quietTimer.lastVersion:
			interval = minPollInterval
		default:
			interval = min(2*interval, maxPollInterval)
		}
		p.explainStall(nodes, wanted)
	}
}

// sleepRealTime waits for d of real time. It returns false if the driver was closed.
func (p *clockDriver) sleepRealTime(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.stop:
		return false
	}
}

// firstWaiter reports whether a goroutine waits for time to pass. It returns the first that waits in Advance or
// AdvanceUntil, or nil if goroutines only wait for results.
func (p *clockDriver) firstWaiter() (nodes []*engineHooks, a *clockWaiter, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes = append(nodes, p.hooks...)
	if len(p.waiters) > 0 {
		return nodes, p.waiters[0], true
	}
	for _, n := range nodes {
		e := n.engine.Load()
		if e != nil && !p.isFrozen {
			callers, _ := e.CountAwaitCallers()
			wanted = wanted || callers > 0
		}
	}
	return nodes, nil, wanted
}

// stateVersion returns a number that changes whenever anything happens that can make a timer or a run due, and whenever a goroutine begins
// to wait for a result or gets it.
func (p *clockDriver) stateVersion(nodes []*engineHooks) uint64 {
	_, _, v := p.clock.snapshot()
	for _, n := range nodes {
		v += n.writeCalls.Load()
		if e := n.engine.Load(); e != nil {
			_, changes := e.CountAwaitCallers()
			v += changes
		}
	}
	return v
}

// isIdle reports whether the engines do nothing at this moment. settle is the real time for which they must have done nothing
// until this is certain.
func (p *clockDriver) isIdle(nodes []*engineHooks) (idle bool, settle time.Duration) {
	p.mu.Lock()
	delivering := p.activeDeliveries > 0
	p.mu.Unlock()
	if delivering {
		return false, 0
	}
	for _, n := range nodes {
		q := n.describeRunsInMemory()
		if q.BusyRun != "" {
			return false, 0
		}
		settle = max(settle, q.IdleAfter)
	}
	return true, settle
}

// isQuiescent reports whether nothing can happen until time passes. It executes steps 2 to 4 of the list at clockDriver. a is the waiter
// that firstWaiter has returned.
func (p *clockDriver) isQuiescent(nodes []*engineHooks, a *clockWaiter) bool {
	now := time.Now()
	version := p.stateVersion(nodes) // read before isIdle: a call that ends in between changes the version
	idle, settle := p.isIdle(nodes)
	if !idle {
		p.quietTimer.restart(version, now)
		return false
	}
	if lasted := p.quietTimer.duration(version, now); !isGoSchedulerIdle() && lasted < settle {
		return false
	}
	if parkRuns(nodes) || !p.pollAllEngines(nodes) {
		return false
	}
	idle, _ = p.isIdle(nodes)
	_, again, wanted := p.firstWaiter() // step 4 may have delivered the last awaited result
	return idle && wanted && again == a && p.stateVersion(nodes) == version
}

// parkRuns unloads the runs that wait for longer than Config.ParkAfter. It stops at the first engine that has such runs, and
// reports whether there was one.
func parkRuns(nodes []*engineHooks) bool {
	for _, n := range nodes {
		if e := n.engine.Load(); e != nil && e.ParkWaitingRuns() {
			return true
		}
	}
	return false
}

// pollAllEngines makes every engine claim, admit runs to their queues, and check for awaited results, and waits until it is done. It returns
// false after requestClaimsTimeout.
func (p *clockDriver) pollAllEngines(nodes []*engineHooks) bool {
	var positions []engineProgress
	for _, n := range nodes {
		if e := n.engine.Load(); e != nil {
			positions = append(positions, newEngineProgress(n, e))
			e.WakeAllLoops()
		}
	}
	for began := time.Now(); slices.ContainsFunc(positions, engineProgress.isPending); {
		if time.Since(began) > requestClaimsTimeout || !p.sleepRealTime(minPollInterval) {
			return false
		}
	}
	return true
}

// engineProgress is the point that one engine has reached with its claims, its checks of the queues and its checks for results.
type engineProgress struct {
	hooks               *engineHooks
	engine              *engine.Engine
	claimNumber         uint64 // the latest claim that had begun
	scheduleQueryNumber uint64 // the latest query for due schedules that had begun
	startKeyQueryNumber uint64 // the latest query for due keys that had begun
	queueCheckNumber    uint64 // the latest check of all queues that had begun
	resultCheckNumber   uint64 // the number of checks
}

func newEngineProgress(n *engineHooks, e *engine.Engine) engineProgress {
	b := engineProgress{hooks: n, engine: e}
	b.claimNumber, _, _ = n.claimProgress()
	b.scheduleQueryNumber, _, _ = n.scheduleQueryProgress()
	b.startKeyQueryNumber, _, _ = n.startKeyQueryProgress()
	b.queueCheckNumber, _ = e.CountAdmissionPasses()
	b.resultCheckNumber, _ = e.CountResultChecks()
	return b
}

// isPending reports whether the engine has yet to end a claim that began after the position, or to check for results. An engine
// that is full or closed does not claim, and one for whose results nobody waits does not check.
func (b engineProgress) isPending() bool {
	_, ended, _ := b.hooks.claimProgress()
	if ended <= b.claimNumber && b.engine.IsClaiming() {
		return true
	}
	if _, ended, _ := b.hooks.scheduleQueryProgress(); ended <= b.scheduleQueryNumber && b.engine.IsFiringSchedules() {
		return true
	}
	if _, ended, _ := b.hooks.startKeyQueryProgress(); ended <= b.startKeyQueryNumber && b.engine.IsFiringSchedules() {
		return true
	}
	if _, ended := b.engine.CountAdmissionPasses(); ended <= b.queueCheckNumber && b.engine.IsFiringSchedules() {
		return true
	}
	checks, waiting := b.engine.CountResultChecks()
	return waiting && checks <= b.resultCheckNumber
}

// nextDueTime returns the next time at which something is due: the first timer, or a run or a schedule by the latest queries of its engine.
// It returns zero if there is none.
func (p *clockDriver) nextDueTime(nodes []*engineHooks) (now, next time.Time) {
	now, next, _ = p.clock.snapshot()
	for _, n := range nodes {
		for _, due := range n.dueTimes() {
			if due.Before(now.Add(neverDue)) && (next.IsZero() || due.Before(next)) {
				next = due
			}
		}
	}
	return now, next
}

// advanceClock executes steps 5 to 8 of the list at clockDriver.
func (p *clockDriver) advanceClock(nodes []*engineHooks, a *clockWaiter) {
	now, next := p.nextDueTime(nodes)
	switch {
	case !next.IsZero() && !next.After(now): // due timers, such as signals without a delay
		p.clock.moveTo(now)
	case a != nil && a.cond != nil && a.cond():
		p.endWaiter(a, nil)
	case a != nil && !a.moveUntil.IsZero() && (next.IsZero() || next.After(a.moveUntil)):
		p.clock.moveTo(a.moveUntil)
		p.endWaiter(a, nil)
	case next.IsZero() && a != nil:
		p.endWaiter(a, fmt.Errorf("durabletest: nothing more will happen by itself (the clock shows %s), and the condition does not hold", now.Format(time.RFC3339)))
	case next.IsZero():
		p.endStuckWaits(nodes)
		return // nothing changes until the test does something
	case a == nil && p.holds.hasReachedMaxHolds(nodes, nil) && p.endStuckWaits(nodes):
		return
	case a != nil && a.moveUntil.IsZero() && p.holds.hasReachedMaxHolds(nodes, a):
		p.endWaiter(a, fmt.Errorf("durabletest: runs are only held again and again (the clock shows %s), and the condition does not hold: see RunInfo.Reason", now.Format(time.RFC3339)))
	default:
		p.clock.moveTo(next)
	}
	p.stall = clockStall{}
}

func (p *clockDriver) endWaiter(a *clockWaiter, err error) {
	p.mu.Lock()
	p.waiters = p.waiters[1:]
	p.mu.Unlock()
	a.done <- err
}

// startSignalDelivery calls f, which may block, in a goroutine of its own. The clock stands still until f has returned.
func (p *clockDriver) startSignalDelivery(f func()) {
	p.mu.Lock()
	p.activeDeliveries++
	p.mu.Unlock()
	p.deliveries.Go(func() {
		defer func() {
			p.mu.Lock()
			p.activeDeliveries--
			p.mu.Unlock()
		}()
		f()
	})
}

// waitForSignalDeliveries waits until the functions passed to startSignalDelivery have returned.
func (p *clockDriver) waitForSignalDeliveries() { p.deliveries.Wait() }

// isGoSchedulerIdle reports whether the Go scheduler has no runnable goroutine except the calling one.
func isGoSchedulerIdle() bool {
	s := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 || s[i].Value.Uint64() > uint64(i) {
			return false
		}
	}
	return true
}
