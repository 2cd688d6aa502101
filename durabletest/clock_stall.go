package durabletest

import "time"

const explainStallAfter = 3 * time.Second // how long the clock stands still before the test's log says why

// clockStall is a time in which the clock has not moved.
type clockStall struct {
	since    time.Time
	isLogged bool // in the test's log
}

// explainStall logs, once, why the clock has stood still for explainStallAfter.
func (p *clockDriver) explainStall(nodes []*engineHooks, wanted bool) {
	if p.stall.since.IsZero() {
		p.stall.since = time.Now()
	}
	if p.stall.isLogged || time.Since(p.stall.since) < explainStallAfter {
		return
	}
	p.stall.isLogged = true
	now, next := p.nextDueTime(nodes)
	at := now.Format(time.RFC3339)
	p.mu.Lock()
	frozen := p.isFrozen
	p.mu.Unlock()
	for _, n := range nodes {
		if q := n.describeRunsInMemory(); q.BusyRun != "" {
			p.t.Logf("durabletest: the clock stands still at %s while this is executed: %s", at, q.BusyRun)
			return
		}
	}
	switch {
	case next.IsZero() && wanted:
		for _, n := range nodes {
			if e := n.engine.Load(); e != nil {
				for _, a := range e.ListAwaitCallers() {
					p.logStuckWait(now, p.describeWaits(nodes, a.Run))
					return
				}
			}
		}
	case !next.IsZero() && !wanted && !frozen:
		p.t.Logf("durabletest: the clock shows %s, and something is due at %s: time passes only in Result, Call, Advance and AdvanceUntil", at, next.Format(time.RFC3339))
	}
}
