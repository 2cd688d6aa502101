package main

import (
	"context"
	"sync"
)

// trap holds one request, so that its sender can be killed meanwhile, and tells when
// another worker comes with the request that shows that it carries on.
type trap struct {
	order string
	at    string // the request that is held; empty: none
	lost  bool   // it is held after it took effect
	then  string // the request that is waited for

	caught chan visit // buffered: the one that is held
	back   chan visit // buffered: the one after the kill
	held   *visit
	first  sync.Once
	told   bool
}

// visit is who came, and with which key.
type visit struct{ worker, key string }

func newTrap(s strike) *trap {
	return &trap{order: s.order, at: s.at, lost: s.lost, then: s.then, caught: make(chan visit, 1), back: make(chan visit, 1)}
}

// meet is called for each request, by one goroutine at a time, and reports whether this is
// one to hold: the first, and where another request is waited for, all that follow.
func (t *trap) meet(path, order string, v visit) bool {
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

// hold keeps the request until its sender is gone.
func (t *trap) hold(ctx context.Context) {
	t.first.Do(func() { t.caught <- *t.held })
	<-ctx.Done()
}
