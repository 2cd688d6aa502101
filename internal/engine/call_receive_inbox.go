package engine

import (
	"container/list"
	"sync"
)

// queryAllUpTo is a number of waiting receives. Up to this number, a wake of the run lets each receive
// query the database for its signal. If more receives wait, only those query for which a count found
// unreceived signals. So a wake costs one read for the run and not one write for each receive.
const queryAllUpTo = 8

// signalInbox knows which receives of a run wait, and calls those that should query the database because there
// is a signal for them.
//
// A wake does not say which signal came. So the inbox requests a count: one read of how many unreceived
// signals of each name the run has. The worker reads the counts of many runs together (see countLoop). For
// each name the inbox calls as many receives as there are signals, minus the receives that are querying
// already. The count may have been read before or after those queries. So each receive that queried
// meanwhile requests another count when its query ends. A receive that was called and leaves without a
// query requests a count as well, and so does a receive that ends without a signal, because the signal is
// for the next receive. So whenever a waiting receive could take a signal, a query or a count is due.
type signalInbox struct {
	r  *run
	mu sync.Mutex

	members  map[*waitingReceive]struct{}
	queues   map[string]*receiveQueue // by the name of the signal
	counting bool                     // a count is requested or in progress; the run is busy meanwhile
	again    bool                     // another count was requested since that one began
}

// receiveQueue holds the receives that wait for signals of one name.
type receiveQueue struct {
	members int
	idle    list.List // of *listener: receives that are neither called nor querying, the longest wait first
	counts  int       // the number of delivered counts
}

// waitingReceive is one waiting receive.
type waitingReceive struct {
	signal         string
	queue          *receiveQueue
	place          *list.Element // in queue.idle; nil: the receive is called, or queries
	queryRequested chan struct{} // has capacity one; a value means that the receive should query for a signal
	counts         int           // queue.counts when the query of this receive began
}

// addReceive adds a receive that is about to query.
func (in *signalInbox) addReceive(signal string) *waitingReceive {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.members == nil {
		in.members, in.queues = make(map[*waitingReceive]struct{}), make(map[string]*receiveQueue)
	}
	q := in.queues[signal]
	if q == nil {
		q = &receiveQueue{}
		in.queues[signal] = q
	}
	l := &waitingReceive{signal: signal, queue: q, queryRequested: make(chan struct{}, 1), counts: q.counts}
	q.members++
	in.members[l] = struct{}{}
	return l
}

// mustAwaitCount makes a receive that already has a row wait for a count instead of querying at once, if many
// receives wait. It reports whether the receive has to wait.
func (in *signalInbox) mustAwaitCount(l *waitingReceive) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.members) <= queryAllUpTo {
		return false
	}
	l.place = l.queue.idle.PushBack(l)
	in.requestCount()
	return true
}

// beginQuery notes that a receive begins its query.
func (in *signalInbox) beginQuery(l *waitingReceive) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l.place != nil {
		l.queue.idle.Remove(l.place)
		l.place = nil
	}
	select {
	case <-l.queryRequested:
	default:
	}
	l.counts = l.queue.counts
}

// endEmptyQuery notes that the query of a receive found no signal, and that the receive keeps waiting.
func (in *signalInbox) endEmptyQuery(l *waitingReceive) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.place = l.queue.idle.PushBack(l)
	if l.counts != l.queue.counts {
		in.requestCount()
	}
}

// removeReceive removes a receive. took says whether the receive has taken a signal.
func (in *signalInbox) removeReceive(l *waitingReceive, took bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	q := l.queue
	if l.place != nil {
		q.idle.Remove(l.place)
	}
	delete(in.members, l)
	if q.members--; q.members == 0 {
		delete(in.queues, l.signal)
		return
	}
	if !took || len(l.queryRequested) > 0 || l.counts != q.counts {
		in.wakeLocked()
	}
}

// wake calls the receives for which a signal may have come.
func (in *signalInbox) wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wakeLocked()
}

// wakeLocked does the work of wake. The caller holds in.mu.
func (in *signalInbox) wakeLocked() {
	if len(in.members) > queryAllUpTo {
		in.requestCount()
		return
	}
	in.wakeAllReceives()
}

// wakeAllReceives calls all receives. Those that are querying will query once more. The caller holds in.mu.
func (in *signalInbox) wakeAllReceives() {
	for l := range in.members {
		in.wakeReceive(l)
	}
}

// wakeReceive calls the receive, so that it queries for a signal. The caller holds in.mu.
func (in *signalInbox) wakeReceive(l *waitingReceive) {
	if l.place != nil {
		l.queue.idle.Remove(l.place)
		l.place = nil
	}
	select {
	case l.queryRequested <- struct{}{}:
	default:
	}
}

// requestCount requests a count of the unreceived signals. The caller holds in.mu.
func (in *signalInbox) requestCount() {
	if in.counting {
		in.again = true
		return
	}
	in.counting = true
	in.r.idle.beginBusy()
	in.r.w.countQueue.add(in.r)
}

// beginCount is called before a count is read.
func (in *signalInbox) beginCount() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.again = false
}

// deliverCounts calls as many receives of each name as there are signals of it, minus those that are querying
// already. It calls all receives if counted is false because the signals could not be counted.
func (in *signalInbox) deliverCounts(counts map[string]int, counted bool) {
	in.mu.Lock()
	if !counted {
		in.wakeAllReceives()
	}
	for name, n := range counts {
		q := in.queues[name]
		if q == nil {
			continue
		}
		q.counts++
		for n -= q.members - q.idle.Len(); n > 0 && q.idle.Len() > 0; n-- {
			in.wakeReceive(q.idle.Front().Value.(*waitingReceive))
		}
	}
	again := in.again
	in.counting = again
	in.mu.Unlock()
	if again {
		in.r.w.countQueue.add(in.r)
		return
	}
	in.r.idle.endBusy()
}
