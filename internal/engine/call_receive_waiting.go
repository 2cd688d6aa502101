package engine

import (
	"container/list"
	"sync"
)

// maxReceivesWithoutCount is a number of waiting receives. Up to this number, a wake of the run lets each receive
// query the database for its signal. If more receives wait, only those query for which a count found
// unreceived signals. So a wake costs one read for the run and not one write for each receive.
const maxReceivesWithoutCount = 8

// waitingReceives holds the receives of a run that wait, and calls those that should query the database because there is a signal for
// them.
//
// A wake does not say which signal came. So waitingReceives requests a count: one read of how many unreceived signals of each name
// the run has. The worker reads the counts of many runs together (see signalCountLoop). For each name, waitingReceives calls as many
// receives as there are signals, minus the receives that are querying already. The count may have been read before or after those
// queries, so each receive that queried meanwhile requests another count when its query ends. A receive that was called and ends
// without a query requests a count as well, and so does a receive that ends without a signal, because the signal is for the next
// receive. So whenever a waiting receive could take a signal, a query or a count is due.
type waitingReceives struct {
	r  *run
	mu sync.Mutex

	receives     map[*waitingReceive]struct{}
	queuesByName map[string]*receiveQueue // by the name of the signal
	counting     bool                     // a count is requested or in progress; the run is busy meanwhile
	countAgain   bool                     // another count was requested after the count in progress had begun
}

// receiveQueue holds the receives that wait for signals of one name.
type receiveQueue struct {
	receiveCount    int
	idleReceives    list.List // of *waitingReceive: receives that are neither called nor querying, the longest wait first
	countsDelivered int       // the number of delivered counts
}

// waitingReceive is one waiting receive.
type waitingReceive struct {
	signal         string
	queue          *receiveQueue
	queueElement   *list.Element // in queue.idleReceives; nil: the receive is called, or queries
	queryRequested chan struct{} // has capacity one; a value means that the receive should query for a signal
	countsAtQuery  int           // queue.countsDelivered when the query of this receive began
}

// addReceive adds a receive that is about to query.
func (in *waitingReceives) addReceive(signal string) *waitingReceive {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.receives == nil {
		in.receives, in.queuesByName = make(map[*waitingReceive]struct{}), make(map[string]*receiveQueue)
	}
	q := in.queuesByName[signal]
	if q == nil {
		q = &receiveQueue{}
		in.queuesByName[signal] = q
	}
	l := &waitingReceive{signal: signal, queue: q, queryRequested: make(chan struct{}, 1), countsAtQuery: q.countsDelivered}
	q.receiveCount++
	in.receives[l] = struct{}{}
	return l
}

// queueForSignalCountIfMany makes a receive that already has a row wait for a count instead of querying at once, if many
// receives wait. It reports whether the receive has to wait.
func (in *waitingReceives) queueForSignalCountIfMany(l *waitingReceive) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.receives) <= maxReceivesWithoutCount {
		return false
	}
	l.queueElement = l.queue.idleReceives.PushBack(l)
	in.requestSignalCount()
	return true
}

// markReceiveQuerying notes that a receive begins its query.
func (in *waitingReceives) markReceiveQuerying(l *waitingReceive) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l.queueElement != nil {
		l.queue.idleReceives.Remove(l.queueElement)
		l.queueElement = nil
	}
	select {
	case <-l.queryRequested:
	default:
	}
	l.countsAtQuery = l.queue.countsDelivered
}

// markReceiveIdle notes that the query of a receive found no signal, and that the receive keeps waiting.
func (in *waitingReceives) markReceiveIdle(l *waitingReceive) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.queueElement = l.queue.idleReceives.PushBack(l)
	if l.countsAtQuery != l.queue.countsDelivered {
		in.requestSignalCount()
	}
}

// removeReceive removes a receive. The argument took says whether the receive has taken a signal.
func (in *waitingReceives) removeReceive(l *waitingReceive, took bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := l.queue
	if l.queueElement != nil {
		q.idleReceives.Remove(l.queueElement)
	}
	delete(in.receives, l)
	if q.receiveCount--; q.receiveCount == 0 {
		delete(in.queuesByName, l.signal)
		return
	}
	if !took || len(l.queryRequested) > 0 || l.countsAtQuery != q.countsDelivered {
		in.wakeLocked()
	}
}

// wake calls the receives for which a signal may have come.
func (in *waitingReceives) wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wakeLocked()
}

// wakeLocked does the work of wake. The caller holds in.mu.
func (in *waitingReceives) wakeLocked() {
	if len(in.receives) > maxReceivesWithoutCount {
		in.requestSignalCount()
		return
	}
	in.wakeAllReceives()
}

// wakeAllReceives calls all receives. Those that are querying will query once more. The caller holds in.mu.
func (in *waitingReceives) wakeAllReceives() {
	for l := range in.receives {
		in.wakeReceive(l)
	}
}

// wakeReceive calls the receive, so that it queries for a signal. The caller holds in.mu.
func (in *waitingReceives) wakeReceive(l *waitingReceive) {
	if l.queueElement != nil {
		l.queue.idleReceives.Remove(l.queueElement)
		l.queueElement = nil
	}
	select {
	case l.queryRequested <- struct{}{}:
	default:
	}
}

// requestSignalCount requests a count of the unreceived signals. The caller holds in.mu.
func (in *waitingReceives) requestSignalCount() {
	if in.counting {
		in.countAgain = true
		return
	}
	in.counting = true
	in.r.idleTracker.beginBusy()
	in.r.w.signalCounts.add(in.r)
}

// beginSignalCount is called before a count is read.
func (in *waitingReceives) beginSignalCount() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.countAgain = false
}

// deliverSignalCounts calls as many receives of each name as there are signals of it, minus those that are querying
// already. It calls all receives if counted is false because the signals could not be counted.
func (in *waitingReceives) deliverSignalCounts(counts map[string]int, counted bool) {
	in.mu.Lock()
	if !counted {
		in.wakeAllReceives()
	}
	for name, n := range counts {
		q := in.queuesByName[name]
		if q == nil {
			continue
		}
		q.countsDelivered++
		for n -= q.receiveCount - q.idleReceives.Len(); n > 0 && q.idleReceives.Len() > 0; n-- {
			in.wakeReceive(q.idleReceives.Front().Value.(*waitingReceive))
		}
	}
	again := in.countAgain
	in.counting = again
	in.mu.Unlock()
	if again {
		in.r.w.signalCounts.add(in.r)
		return
	}
	in.r.idleTracker.endBusy()
}
