package durabletest

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

const (
	minPollInterval = 50 * time.Microsecond // between two looks at whether all rests
	maxPollInterval = 2 * time.Millisecond
	barrierTimeout  = time.Second     // the longest wait for the engines to have looked
	explainAfter    = 3 * time.Second // before the test is told why nothing happens
	farFuture       = 25 * 365 * 24 * time.Hour
	leaseDuration   = 2 * farFuture // nothing that is due is as far as the end of a lease
)

// clockDriver moves a clock when all that its engines have left to do is to wait.
//
// All rests when no engine is in a call of its database, every run in memory waits, and no
// goroutine of the process could run. Then runs that wait for long leave memory, each engine
// claims once more, and what is due is what that claim answered, or the first timer. If nothing was
// written meanwhile, the clock jumps there.
type clockDriver struct {
	t     testing.TB
	clock *clock

	mu               sync.Mutex
	probes           []*probe
	waiters          []*clockWaiter
	frozen           bool
	activeDeliveries int // deliveries under way

	deliveries sync.WaitGroup

	quietVersion uint64 // the version at which all rested
	quietSince   time.Time
	explained    bool
	stalledSince time.Time

	stuckVersion uint64 // the version at which nothing more could happen
	stuckSince   time.Time

	stop chan struct{}
	done chan struct{}
}

// clockWaiter is a test that waits for time to pass.
type clockWaiter struct {
	until time.Time   // move so far; zero: as far as it takes
	cond  func() bool // until this holds; may be nil
	done  chan error
}

func newClockDriver(t testing.TB, c *clock) *clockDriver {
	p := &clockDriver{t: t, clock: c, stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// close ends the pace: the clock stands still for good.
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

// waitForTime asks for time to pass, and waits for that.
func (p *clockDriver) waitForTime(until time.Time, cond func() bool) error {
	a := &clockWaiter{until: until, cond: cond, done: make(chan error, 1)}
	p.mu.Lock()
	p.waiters = append(p.waiters, a)
	p.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case <-p.done:
		return fmt.Errorf("durabletest: the engine of this test has ended: wait before the test's end")
	}
}

// run is the pace's goroutine.
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

// firstWaiter reports whether somebody waits for time to pass: an ask, or, with a nil one, those
// who wait for results.
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

// stateVersion changes with everything that may make something due.
func (p *clockDriver) stateVersion(nodes []*probe) uint64 {
	_, _, v := p.clock.state()
	for _, n := range nodes {
		v += n.writes.Load()
	}
	return v
}

// seemsQuiet reports whether all rests, as far as can be seen at one look.
// settle is how long it must stay so until that is certain.
func (p *clockDriver) seemsQuiet(nodes []*probe) (quiet bool, settle time.Duration) {
	p.mu.Lock()
	busy := p.activeDeliveries > 0
	p.mu.Unlock()
	if busy {
		return false, 0
	}
	for _, n := range nodes {
		rest := n.quiescence()
		if rest.Busy != "" {
			return false, 0
		}
		settle = max(settle, rest.Settle)
	}
	return true, settle
}

// quiescent reports whether all rests, and no engine has anything to do.
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

// claimAgain has every engine look for work, and waits until it has.
func (p *clockDriver) claimAgain(nodes []*probe) bool {
	type mark struct{ claim, look uint64 }
	marks := make([]mark, len(nodes))
	for i, n := range nodes {
		if e := n.engine.Load(); e != nil {
			marks[i].claim, _, _ = n.claimState()
			marks[i].look, _ = e.Looks()
			e.Stir()
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

// advanceClock lets time pass until something is due, now that all rests.
func (p *clockDriver) advanceClock(nodes []*probe, a *clockWaiter) {
	now, next, _ := p.clock.state()
	for _, n := range nodes {
		_, _, due := n.claimState()
		if !due.IsZero() && due.Before(now.Add(farFuture)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case !next.IsZero() && !next.After(now): // due timers, such as signals to be sent at once
		p.clock.moveTo(now)
	case a != nil && a.cond != nil && a.cond():
		p.endWaiter(a, nil)
	case a != nil && !a.until.IsZero() && (next.IsZero() || next.After(a.until)):
		p.clock.moveTo(a.until)
		p.endWaiter(a, nil)
	case next.IsZero() && a != nil:
		p.endWaiter(a, fmt.Errorf("durabletest: nothing more will happen by itself (it is %s), and the condition does not hold", now.Format(time.RFC3339)))
	case next.IsZero():
		p.endStuckWaits(nodes)
		return // for ever, unless the test does something
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

// startDelivery calls f, which may block, in a goroutine of its own. No time passes meanwhile.
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

// waitForDeliveries waits for what deliver has called.
func (p *clockDriver) waitForDeliveries() { p.deliveries.Wait() }

// explainStall tells the test, once, why nothing happens for long.
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
		if rest := n.quiescence(); rest.Busy != "" {
			p.t.Logf("durabletest: time stands still at %s while this is executed: %s", at, rest.Busy)
			return
		}
		if _, _, due := n.claimState(); !due.IsZero() && due.Before(now.Add(farFuture)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case next.IsZero() && wanted:
		p.t.Logf("durabletest: it is %s, a result is waited for, and nothing more will happen by itself: is a signal missing, or a run paused?", at)
	case !next.IsZero() && !wanted && !frozen:
		p.t.Logf("durabletest: it is %s, and something is due at %s: time passes in Result, Call, Advance and AdvanceUntil", at, next.Format(time.RFC3339))
	}
}

// schedulerIdle reports whether no goroutine but this one could run, as the scheduler sees it.
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
