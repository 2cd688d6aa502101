package durabletest

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

const (
	minPollInterval = 50 * time.Microsecond // the shortest time between two checks whether all engines wait
	maxPollInterval = 2 * time.Millisecond
	barrierTimeout  = time.Second     // how long claimAgain waits
	explainAfter    = 3 * time.Second // how long the clock stands still before the test's log says why
	farFuture       = 25 * 365 * 24 * time.Hour
	leaseDuration   = 2 * farFuture // so long that no lease ends before anything that is due
)

// clockDriver moves a clock when all its engines wait.
//
// All engines wait when no engine calls its database, every run in memory waits, and no goroutine of the process is
// runnable. Then runs that wait for long are unloaded from memory, and each engine claims once more. The next due time
// is the one that this claim returned, or that of the first timer. If nothing was written meanwhile, the clock jumps to
// it.
type clockDriver struct {
	t     testing.TB
	clock *clock

	mu               sync.Mutex
	probes           []*probe
	waiters          []*clockWaiter
	frozen           bool
	activeDeliveries int // deliveries whose function has not returned

	deliveries sync.WaitGroup

	quietVersion uint64 // the stateVersion at which all engines waited
	quietSince   time.Time
	explained    bool
	stalledSince time.Time

	stuckVersion uint64 // the stateVersion at which nothing more could happen
	stuckSince   time.Time

	stop chan struct{}
	done chan struct{}
}

// clockWaiter is a goroutine of the test that waits in Advance or AdvanceUntil.
type clockWaiter struct {
	until time.Time   // how far to move the clock; zero: no limit
	cond  func() bool // ends the wait when it returns true; may be nil
	done  chan error
}

func newClockDriver(t testing.TB, c *clock) *clockDriver {
	p := &clockDriver{t: t, clock: c, stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// close stops the driver's goroutine. The clock stands still afterwards.
func (p *clockDriver) close() {
	close(p.stop)
	<-p.done
}

func (p *clockDriver) add(n *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes = append(p.probes, n)
}

func (p *clockDriver) remove(n *probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, own := range p.probes {
		if own == n {
			p.probes = append(p.probes[:i:i], p.probes[i+1:]...)
			return
		}
	}
}

func (p *clockDriver) setFrozen(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

// waitForTime makes time pass until the clock reaches the time, or until cond returns true.
func (p *clockDriver) waitForTime(until time.Time, cond func() bool) error {
	a := &clockWaiter{until: until, cond: cond, done: make(chan error, 1)}
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

// run is the driver's goroutine.
func (p *clockDriver) run() {
	defer close(p.done)
	look := maxPollInterval
	for p.sleep(look) {
		nodes, a, wanted := p.firstWaiter()
		switch {
		case !wanted:
			look = maxPollInterval
		case p.quiescent(nodes):
			look = minPollInterval
			p.advanceClock(nodes, a)
		default:
			look = min(2*look, maxPollInterval)
			if p.stateVersion(nodes) != p.quietVersion {
				look = minPollInterval
			}
		}
		p.explainStall(nodes, wanted)
	}
}

// sleep waits for d of real time. It returns false if the driver was closed.
func (p *clockDriver) sleep(d time.Duration) bool {
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
func (p *clockDriver) firstWaiter() (nodes []*probe, a *clockWaiter, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes = append(nodes, p.probes...)
	if len(p.waiters) > 0 {
		return nodes, p.waiters[0], true
	}
	for _, n := range nodes {
		e := n.engine.Load()
		wanted = wanted || !p.frozen && e != nil && e.Awaited() > 0
	}
	return nodes, nil, wanted
}

// stateVersion returns a number that changes whenever something happens that can make something due.
func (p *clockDriver) stateVersion(nodes []*probe) uint64 {
	_, _, v := p.clock.state()
	for _, n := range nodes {
		v += n.writes.Load()
	}
	return v
}

// seemsQuiet reports whether all engines wait at this moment. The result settle is the real time for which they must
// keep waiting until that is certain.
func (p *clockDriver) seemsQuiet(nodes []*probe) (quiet bool, settle time.Duration) {
	p.mu.Lock()
	busy := p.activeDeliveries > 0
	p.mu.Unlock()
	if busy {
		return false, 0
	}
	for _, n := range nodes {
		rest := n.quiescence()
		if rest.BusyRun != "" {
			return false, 0
		}
		settle = max(settle, rest.Settle)
	}
	return true, settle
}

// quiescent reports whether all engines wait and have nothing left to do until time passes.
func (p *clockDriver) quiescent(nodes []*probe) bool {
	now := time.Now()
	v := p.stateVersion(nodes)
	quiet, settle := p.seemsQuiet(nodes)
	if !quiet || v != p.quietVersion {
		p.quietVersion, p.quietSince = v, now
	}
	if !quiet || !schedulerIdle() && now.Sub(p.quietSince) < settle {
		return false
	}
	for _, n := range nodes {
		if e := n.engine.Load(); e != nil && e.Park() {
			return false
		}
	}
	if !p.claimAgain(nodes) {
		return false
	}
	quiet, _ = p.seemsQuiet(nodes)
	return quiet && p.stateVersion(nodes) == v
}

// claimAgain makes every engine query the database for work, and waits until the queries have returned. It returns
// false after barrierTimeout.
func (p *clockDriver) claimAgain(nodes []*probe) bool {
	type mark struct{ claim, look uint64 }
	marks := make([]mark, len(nodes))
	for i, n := range nodes {
		if e := n.engine.Load(); e != nil {
			marks[i].claim, _, _ = n.claimState()
			marks[i].look, _ = e.Looks()
			e.WakeAll()
		}
	}
	behind := func() bool {
		for i, n := range nodes {
			e := n.engine.Load()
			if e == nil {
				continue
			}
			if _, ended, _ := n.claimState(); ended <= marks[i].claim && e.Looking() {
				return true
			}
			if look, waiting := e.Looks(); waiting && look <= marks[i].look {
				return true
			}
		}
		return false
	}
	for began := time.Now(); behind(); {
		if time.Since(began) > barrierTimeout || !p.sleep(minPollInterval) {
			return false
		}
	}
	return true
}

// advanceClock moves the clock to the next due time. The caller has checked that all engines wait.
func (p *clockDriver) advanceClock(nodes []*probe, a *clockWaiter) {
	now, next, _ := p.clock.state()
	for _, n := range nodes {
		_, _, due := n.claimState()
		if !due.IsZero() && due.Before(now.Add(farFuture)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case !next.IsZero() && !next.After(now): // due timers, such as signals without a delay
		p.clock.moveTo(now)
	case a != nil && a.cond != nil && a.cond():
		p.endWaiter(a, nil)
	case a != nil && !a.until.IsZero() && (next.IsZero() || next.After(a.until)):
		p.clock.moveTo(a.until)
		p.endWaiter(a, nil)
	case next.IsZero() && a != nil:
		p.endWaiter(a, fmt.Errorf("durabletest: nothing more will happen by itself (the clock shows %s), and the condition does not hold", now.Format(time.RFC3339)))
	case next.IsZero():
		p.endStuckWaits(nodes)
		return // nothing changes until the test does something
	default:
		p.clock.moveTo(next)
	}
	p.explained, p.stalledSince = false, time.Time{}
}

func (p *clockDriver) endWaiter(a *clockWaiter, err error) {
	p.mu.Lock()
	p.waiters = p.waiters[1:]
	p.mu.Unlock()
	a.done <- err
}

// startDelivery calls f, which may block, in a goroutine of its own. The clock stands still until f has returned.
func (p *clockDriver) startDelivery(f func()) {
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

// waitForDeliveries waits until the functions passed to startDelivery have returned.
func (p *clockDriver) waitForDeliveries() { p.deliveries.Wait() }

// explainStall logs, once, why the clock has stood still for explainAfter.
func (p *clockDriver) explainStall(nodes []*probe, wanted bool) {
	now, next, _ := p.clock.state()
	if p.stalledSince.IsZero() {
		p.stalledSince = time.Now()
	}
	if p.explained || time.Since(p.stalledSince) < explainAfter {
		return
	}
	p.explained = true
	at := now.Format(time.RFC3339)
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	for _, n := range nodes {
		if rest := n.quiescence(); rest.BusyRun != "" {
			p.t.Logf("durabletest: the clock stands still at %s while this is executed: %s", at, rest.BusyRun)
			return
		}
		if _, _, due := n.claimState(); !due.IsZero() && due.Before(now.Add(farFuture)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case next.IsZero() && wanted:
		p.t.Logf("durabletest: the test waits for a result, and nothing more will happen by itself (the clock shows %s): send the missing signal, or resume the paused run", at)
	case !next.IsZero() && !wanted && !frozen:
		p.t.Logf("durabletest: the clock shows %s, and something is due at %s: time passes only in Result, Call, Advance and AdvanceUntil", at, next.Format(time.RFC3339))
	}
}

// schedulerIdle reports whether the Go scheduler has no runnable goroutine except the calling one.
func schedulerIdle() bool {
	s := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 || s[i].Value.Uint64() > uint64(i) {
			return false
		}
	}
	return true
}
