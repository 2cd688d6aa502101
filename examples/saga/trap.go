package main

import (
	"context"
	"sync"
)

// trap holds one request, so that its sender can be killed in the meantime. It reports when another
// worker sends the request that shows that it has continued the order.
type trap struct {
	order string
	at    string // path of the held request; empty: none is held
	lost  bool   // the request is held after it has taken effect
	then  string // path of the awaited request

	caught chan visit // buffered: the held request
	back   chan visit // buffered: the awaited request, after the kill
	held   *visit
	first  sync.Once
	told   bool
}

// visit names the worker that sent a request, and the request's key.
type visit struct{ worker, key string }

func newTrap(s plannedKill) *trap {
	return &trap{order: s.order, at: s.at, lost: s.lost, then: s.then, caught: make(chan visit, 1), back: make(chan visit, 1)}
}

// holdsRequest reports whether the trap holds the request. Each request calls it, one goroutine at a time.
// The trap holds the first request of path at or, if then is another path, all requests of path at.
func (t *trap) holdsRequest(path, order string, v visit) bool {
	switch {
	case order != t.order:
	case path == t.at && (t.held == nil || t.at != t.then):
		if t.held == nil {
			t.held = &v
		}
		return true
	case path == t.then && !t.told && (t.at == "" || t.held != nil && t.held.worker != v.worker):
		t.told = true
		t.back <- v
	}
	return false
}

// hold blocks until the sender of the request is gone.
func (t *trap) hold(ctx context.Context) {
	t.first.Do(func() { t.caught <- *t.held })
	<-ctx.Done()
}
