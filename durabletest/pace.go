package durabletest

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

const (
	shortLook = 50 * time.Microsecond // between two looks at whether all rests
	longLook  = 2 * time.Millisecond
	barrier   = time.Second     // the longest wait for the engines to have looked
	silence   = 3 * time.Second // before the test is told why nothing happens
	ages      = 25 * 365 * 24 * time.Hour
	lease     = 2 * ages // nothing that is due is as far as the end of a lease
)

// pace moves a clock when all that its engines have left to do is to wait.
//
// All rests when no engine is in a call of its database, every run in memory waits, and no
// goroutine of the process could run. Then runs that wait for long leave memory, each engine
// claims once more, and what is due is what that claim answered, or the first timer. If nothing was
// written meanwhile, the clock jumps there.
type pace struct {
	t     testing.TB
	clock *clock

	mu     sync.Mutex
	nodes  []*node
	asks   []*ask
	frozen bool
	busy   int // deliveries under way

	deliveries sync.WaitGroup

	still   uint64 // the version at which all rested
	since   time.Time
	talked  bool
	stalled time.Time

	stuckAt    uint64 // the version at which nothing more could happen
	stuckSince time.Time

	stop chan struct{}
	done chan struct{}
}

// ask is a test that waits for time to pass.
type ask struct {
	until time.Time   // move so far; zero: as far as it takes
	cond  func() bool // until this holds; may be nil
	done  chan error
}

func newPace(t testing.TB, c *clock) *pace {
	p := &pace{t: t, clock: c, stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// close ends the pace: the clock stands still for good.
func (p *pace) close() {
	close(p.stop)
	<-p.done
}

func (p *pace) add(n *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = append(p.nodes, n)
}

func (p *pace) remove(n *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, own := range p.nodes {
		if own == n {
			p.nodes = append(p.nodes[:i:i], p.nodes[i+1:]...)
			return
		}
	}
}

func (p *pace) freeze(frozen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = frozen
}

// wait asks for time to pass, and waits for that.
func (p *pace) wait(until time.Time, cond func() bool) error {
	a := &ask{until: until, cond: cond, done: make(chan error, 1)}
	p.mu.Lock()
	p.asks = append(p.asks, a)
	p.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case <-p.done:
		return fmt.Errorf("durabletest: the engine of this test has ended: wait before the test's end")
	}
}

// run is the pace's goroutine.
func (p *pace) run() {
	defer close(p.done)
	look := longLook
	for p.pause(look) {
		nodes, a, wanted := p.wanted()
		switch {
		case !wanted:
			look = longLook
		case p.rest(nodes):
			look = shortLook
			p.step(nodes, a)
		default:
			look = min(2*look, longLook)
			if p.version(nodes) != p.still {
				look = shortLook
			}
		}
		p.explain(nodes, wanted)
	}
}

func (p *pace) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.stop:
		return false
	}
}

// wanted reports whether somebody waits for time to pass: an ask, or, with a nil one, those
// who wait for results.
func (p *pace) wanted() (nodes []*node, a *ask, wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes = append(nodes, p.nodes...)
	if len(p.asks) > 0 {
		return nodes, p.asks[0], true
	}
	for _, n := range nodes {
		e := n.inner.Load()
		wanted = wanted || !p.frozen && e != nil && e.Awaited() > 0
	}
	return nodes, nil, wanted
}

// version changes with everything that may make something due.
func (p *pace) version(nodes []*node) uint64 {
	_, _, v := p.clock.state()
	for _, n := range nodes {
		v += n.writes.Load()
	}
	return v
}

// quiet reports whether all rests, as far as can be seen at one look.
// settle is how long it must stay so until that is certain.
func (p *pace) quiet(nodes []*node) (quiet bool, settle time.Duration) {
	p.mu.Lock()
	busy := p.busy > 0
	p.mu.Unlock()
	if busy {
		return false, 0
	}
	for _, n := range nodes {
		rest := n.rest()
		if rest.Busy != "" {
			return false, 0
		}
		settle = max(settle, rest.Settle)
	}
	return true, settle
}

// rest reports whether all rests, and no engine has anything to do.
func (p *pace) rest(nodes []*node) bool {
	now := time.Now()
	v := p.version(nodes)
	quiet, settle := p.quiet(nodes)
	if !quiet || v != p.still {
		p.still, p.since = v, now
	}
	if !quiet || !idle() && now.Sub(p.since) < settle {
		return false
	}
	for _, n := range nodes {
		if e := n.inner.Load(); e != nil && e.Park() {
			return false
		}
	}
	if !p.looked(nodes) {
		return false
	}
	quiet, _ = p.quiet(nodes)
	return quiet && p.version(nodes) == v
}

// looked has every engine look for work, and waits until it has.
func (p *pace) looked(nodes []*node) bool {
	type mark struct{ claim, look uint64 }
	marks := make([]mark, len(nodes))
	for i, n := range nodes {
		if e := n.inner.Load(); e != nil {
			marks[i].claim, _, _ = n.claims()
			marks[i].look, _ = e.Looks()
			e.Stir()
		}
	}
	behind := func() bool {
		for i, n := range nodes {
			e := n.inner.Load()
			if e == nil {
				continue
			}
			if _, ended, _ := n.claims(); ended <= marks[i].claim && e.Looking() {
				return true
			}
			if look, waiting := e.Looks(); waiting && look <= marks[i].look {
				return true
			}
		}
		return false
	}
	for began := time.Now(); behind(); {
		if time.Since(began) > barrier || !p.pause(shortLook) {
			return false
		}
	}
	return true
}

// step lets time pass until something is due, now that all rests.
func (p *pace) step(nodes []*node, a *ask) {
	now, next, _ := p.clock.state()
	for _, n := range nodes {
		_, _, due := n.claims()
		if !due.IsZero() && due.Before(now.Add(ages)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case !next.IsZero() && !next.After(now): // due timers, such as signals to be sent at once
		p.clock.move(now)
	case a != nil && a.cond != nil && a.cond():
		p.answer(a, nil)
	case a != nil && !a.until.IsZero() && (next.IsZero() || next.After(a.until)):
		p.clock.move(a.until)
		p.answer(a, nil)
	case next.IsZero() && a != nil:
		p.answer(a, fmt.Errorf("durabletest: nothing more will happen by itself (it is %s), and the condition does not hold", now.Format(time.RFC3339)))
	case next.IsZero():
		p.stuck(nodes)
		return // for ever, unless the test does something
	default:
		p.clock.move(next)
	}
	p.talked, p.stalled = false, time.Time{}
}

func (p *pace) answer(a *ask, err error) {
	p.mu.Lock()
	p.asks = p.asks[1:]
	p.mu.Unlock()
	a.done <- err
}

// deliver calls f, which may block, in a goroutine of its own. No time passes meanwhile.
func (p *pace) deliver(f func()) {
	p.mu.Lock()
	p.busy++
	p.mu.Unlock()
	p.deliveries.Go(func() {
		defer func() {
			p.mu.Lock()
			p.busy--
			p.mu.Unlock()
		}()
		f()
	})
}

// delivered waits for what deliver has called.
func (p *pace) delivered() { p.deliveries.Wait() }

// explain tells the test, once, why nothing happens for long.
func (p *pace) explain(nodes []*node, wanted bool) {
	now, next, _ := p.clock.state()
	if p.stalled.IsZero() {
		p.stalled = time.Now()
	}
	if p.talked || time.Since(p.stalled) < silence {
		return
	}
	p.talked = true
	at := now.Format(time.RFC3339)
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	for _, n := range nodes {
		if rest := n.rest(); rest.Busy != "" {
			p.t.Logf("durabletest: time stands still at %s while this is executed: %s", at, rest.Busy)
			return
		}
		if _, _, due := n.claims(); !due.IsZero() && due.Before(now.Add(ages)) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	switch {
	case next.IsZero() && wanted:
		p.t.Logf("durabletest: it is %s, a result is waited for, and nothing more will happen by itself: is a signal missing, or a run paused?", at)
	case !next.IsZero() && !wanted && !frozen:
		p.t.Logf("durabletest: it is %s, and something is due at %s: time passes in Result, Call, Advance and Until", at, next.Format(time.RFC3339))
	}
}

// idle reports whether no goroutine but this one could run, as the scheduler sees it.
func idle() bool {
	s := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	metrics.Read(s)
	for i := range s {
		if s[i].Value.Kind() != metrics.KindUint64 || s[i].Value.Uint64() > uint64(i) {
			return false
		}
	}
	return true
}
