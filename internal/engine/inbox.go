package engine

import (
	"container/list"
	"sync"
)

// fewReceives is how many receives of a run look for their signals themselves whenever the run is
// woken. Of more than that, only those look that the counts of unreceived signals call, so that a
// wake costs one read for the run and not a write for each receive.
const fewReceives = 8

// inbox knows which receives of a run wait, and has those look for which there is a signal.
//
// A wake does not say which signal came. So the inbox requests a count: one read of how many
// unreceived signals of each name the run has, which the worker makes for many runs together (see
// countLoop). The count calls as many receives of a name as there are signals of it, less those that
// look already. It may have been read before or after what those find, so each of them requests
// another count when its look ends. A receive that was called and leaves without having looked, and
// one that ends without a signal, requests one as well: the signal is for the next. So there is no
// signal that a waiting receive can take, and for which neither a look nor a count is due.
type inbox struct {
	r  *run
	mu sync.Mutex

	members  map[*listener]struct{}
	queues   map[string]*queue // by the signal's name
	counting bool              // a count is requested or under way; the run is busy meanwhile
	again    bool              // another one was requested since that began
}

// queue holds the receives that wait for signals of one name.
type queue struct {
	members int
	idle    list.List // of *listener: those that are not called and do not look, the longest wait first
	counts  int       // delivered
}

// listener is one receive that waits.
type listener struct {
	signal string
	queue  *queue
	place  *list.Element // among the idle ones; nil: it is called, or looks
	call   chan struct{} // of one: look for a signal
	counts int           // of the queue, when its look began
}

// join adds a receive, which is about to look.
func (in *inbox) join(signal string) *listener {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.members == nil {
		in.members, in.queues = make(map[*listener]struct{}), make(map[string]*queue)
	}
	q := in.queues[signal]
	if q == nil {
		q = &queue{}
		in.queues[signal] = q
	}
	l := &listener{signal: signal, queue: q, call: make(chan struct{}, 1), counts: q.counts}
	q.members++
	in.members[l] = struct{}{}
	return l
}

// await makes a receive that has a row wait for a count rather than look at once, if there are
// many. It reports whether it does.
func (in *inbox) await(l *listener) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.members) <= fewReceives {
		return false
	}
	l.place = l.queue.idle.PushBack(l)
	in.request()
	return true
}

// looks says that a receive begins to look.
func (in *inbox) looks(l *listener) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if l.place != nil {
		l.queue.idle.Remove(l.place)
		l.place = nil
	}
	select {
	case <-l.call:
	default:
	}
	l.counts = l.queue.counts
}

// looked says that a receive has looked, and goes on waiting.
func (in *inbox) looked(l *listener) {
	in.mu.Lock()
	defer in.mu.Unlock()
	l.place = l.queue.idle.PushBack(l)
	if l.counts != l.queue.counts {
		in.request()
	}
}

// leave removes a receive. took says that it has taken a signal.
func (in *inbox) leave(l *listener, took bool) {
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
	if !took || len(l.call) > 0 || l.counts != q.counts {
		in.stir()
	}
}

// wake has the receives look for which something may have come.
func (in *inbox) wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stir()
}

// stir is wake. in.mu is held.
func (in *inbox) stir() {
	if len(in.members) > fewReceives {
		in.request()
		return
	}
	in.callAll()
}

// callAll has all receives look, those that look already once more. in.mu is held.
func (in *inbox) callAll() {
	for l := range in.members {
		in.summon(l)
	}
}

// summon has the receive look. in.mu is held.
func (in *inbox) summon(l *listener) {
	if l.place != nil {
		l.queue.idle.Remove(l.place)
		l.place = nil
	}
	select {
	case l.call <- struct{}{}:
	default:
	}
}

// request has the unreceived signals counted. in.mu is held.
func (in *inbox) request() {
	if in.counting {
		in.again = true
		return
	}
	in.counting = true
	in.r.idle.busy()
	in.r.w.count(in.r)
}

// begin is called before a count is read.
func (in *inbox) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.again = false
}

// deliver has as many receives of each name look as there are signals of it; all of them if the
// signals could not be counted.
func (in *inbox) deliver(counts map[string]int, counted bool) {
	in.mu.Lock()
	if !counted {
		in.callAll()
	}
	for name, n := range counts {
		q := in.queues[name]
		if q == nil {
			continue
		}
		q.counts++
		for n -= q.members - q.idle.Len(); n > 0 && q.idle.Len() > 0; n-- {
			in.summon(q.idle.Front().Value.(*listener))
		}
	}
	again := in.again
	in.counting = again
	in.mu.Unlock()
	if again {
		in.r.w.count(in.r)
		return
	}
	in.r.idle.done()
}
