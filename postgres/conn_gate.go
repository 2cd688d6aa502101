package postgres

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// connGrowWait is how long a call waits for a connection before the pool opens a further one, which takes longer than most calls.
	connGrowWait = 20 * time.Millisecond
	// After connBusyCalls calls within connBusyTime, a call that finds no free connection makes the pool open a further one at once,
	// because the short waits of many calls add up.
	connBusyCalls = 20
	connBusyTime  = 200 * time.Millisecond
	// connOpenWait is how long a call waits for the connections that are being opened before the pool opens a further one. Many workers that
	// begin at the same time slow the server down. If each of them opened further connections because of that, they would use up
	// max_connections.
	connOpenWait = time.Second
	// connIdleTime is how long an unused connection is kept, and a connection more than the bound allows.
	connIdleTime = 15 * time.Second
	// connShrinkInterval is the time between two decisions about how many connections are needed.
	connShrinkInterval = 10 * time.Second
	// connFreezeTime is how long no further connection is opened after the server has refused one.
	connFreezeTime = time.Minute
)

// connGate bounds how many calls use a pool at the same time, and so how many connections it opens. The bound grows while calls wait long or
// follow one another closely. Otherwise it shrinks, and then the surplus connections are closed: pgxpool hands out its free connections in
// turns, so a few calls per second keep each of them in use. So a worker without work keeps one connection, although its loops sometimes
// make their calls at the same moment.
type connGate struct {
	max       int
	openConns func() int // how many connections the pool has, without those that are being opened

	mu                  sync.Mutex
	currentMax          int
	inUse               int
	changedAt           time.Time     // when inUse changed
	aboveBoundSince     time.Time     // since when the pool has more connections than currentMax; zero: it has not
	usedTime            time.Duration // the sum of the times for which connections were in use since currentMaxCheckedAt
	currentMaxCheckedAt time.Time
	frozenUntil         time.Time
	intervalBegan       time.Time       // when the present interval of connBusyTime began
	callsInInterval     int             // calls that began in the present interval
	lastIntervalBusy    bool            // the previous interval had connBusyCalls calls, and ended when the present one began
	waiting             []chan struct{} // closed when the call may use the pool; in the order of arrival

	surplusConns atomic.Int32 // how many connections are still to be closed; changed with mu held
}

func newConnGate(most int, openConns func() int) *connGate {
	now := time.Now()
	return &connGate{max: most, openConns: openConns, currentMax: 1, changedAt: now, currentMaxCheckedAt: now}
}

// acquireSlot waits until the caller may use the pool. If it returns nil, the caller must call releaseSlot. A nil gate
// bounds nothing.
func (g *connGate) acquireSlot(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	if g.recordCall() && g.inUse >= g.currentMax && g.openConns() >= g.currentMax {
		g.raiseBound()
	}
	if g.inUse < g.currentMax && len(g.waiting) == 0 {
		g.updateInUseCount(1)
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	patience := time.NewTimer(connGrowWait)
	defer patience.Stop()
	waitedSince := time.Now()
	for {
		select {
		case <-turn:
			return nil
		case <-patience.C:
			g.mu.Lock()
			if g.openConns() >= g.currentMax || time.Since(waitedSince) >= connOpenWait {
				g.raiseBound()
				waitedSince = time.Now()
			}
			g.mu.Unlock()
			patience.Reset(connGrowWait)
		case <-ctx.Done():
			g.mu.Lock()
			i := slices.Index(g.waiting, turn)
			if i >= 0 {
				g.waiting = slices.Delete(g.waiting, i, i+1)
			}
			g.mu.Unlock()
			if i < 0 {
				g.releaseSlot()
			}
			return ctx.Err()
		}
	}
}

// releaseSlot frees the slot that acquireSlot has taken.
func (g *connGate) releaseSlot() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.updateInUseCount(-1)
	g.admitWaiting()
}

// admitWaiting lets waiting calls use the pool, up to the bound. g.mu is held.
func (g *connGate) admitWaiting() {
	for len(g.waiting) > 0 && g.inUse < g.currentMax {
		close(g.waiting[0])
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.updateInUseCount(1)
	}
}

// recordCall counts a call, and reports whether calls follow one another closely. g.mu is held.
func (g *connGate) recordCall() bool {
	now := time.Now()
	if elapsed := now.Sub(g.intervalBegan); elapsed >= connBusyTime {
		g.lastIntervalBusy = g.callsInInterval >= connBusyCalls && elapsed < 2*connBusyTime
		g.intervalBegan, g.callsInInterval = now, 0
	}
	g.callsInInterval++
	return g.lastIntervalBusy || g.callsInInterval >= connBusyCalls
}

// raiseBound raises the bound by one. g.mu is held.
func (g *connGate) raiseBound() {
	if g.currentMax < g.max && time.Now().After(g.frozenUntil) {
		g.currentMax++
		g.aboveBoundSince = time.Time{}
		g.surplusConns.Store(0)
		g.admitWaiting()
	}
}

// updateInUseCount changes how many calls use the pool. Once in connShrinkInterval it lowers the bound to twice the mean number of calls since the
// last time. g.mu is held.
func (g *connGate) updateInUseCount(change int) {
	now := time.Now()
	g.usedTime += time.Duration(g.inUse) * now.Sub(g.changedAt)
	g.changedAt = now
	g.inUse += change
	if window := now.Sub(g.currentMaxCheckedAt); window >= connShrinkInterval {
		needed := int(math.Ceil(2*float64(g.usedTime)/float64(window) + 0.5))
		g.currentMax = max(1, min(g.currentMax, needed))
		g.usedTime, g.currentMaxCheckedAt = 0, now
		g.updateSurplus(now)
	}
}

// updateSurplus records how many connections to close. g.mu is held.
func (g *connGate) updateSurplus(now time.Time) {
	surplus := g.openConns() - g.currentMax
	switch {
	case surplus <= 0:
		g.aboveBoundSince, surplus = time.Time{}, 0
	case g.aboveBoundSince.IsZero():
		g.aboveBoundSince, surplus = now, 0
	case now.Sub(g.aboveBoundSince) < connIdleTime:
		surplus = 0
	}
	g.surplusConns.Store(int32(surplus))
}

// takeSurplusConn reports whether the caller must close its connection instead of returning it to the pool.
func (g *connGate) takeSurplusConn() bool {
	if g == nil || g.surplusConns.Load() == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.surplusConns.Load() == 0 {
		return false
	}
	if g.openConns() <= g.currentMax { // the pool has closed the surplus ones: they were idle, or led to another host
		g.surplusConns.Store(0)
		return false
	}
	g.surplusConns.Add(-1)
	return true
}

// capBoundAtOpenConns lowers the bound to the number of open connections, because the server has refused a further one.
func (g *connGate) capBoundAtOpenConns(conns int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.currentMax, g.frozenUntil = max(1, min(g.currentMax, conns)), time.Now().Add(connFreezeTime)
}
