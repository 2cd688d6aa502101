package main

import "sync"

// group calls functions in goroutines, a limited number at the same time, and keeps the first
// error.
type group struct {
	slots   chan struct{}
	running sync.WaitGroup
	first   sync.Once
	err     error
}

func newGroup(atOnce int) *group { return &group{slots: make(chan struct{}, atOnce)} }

// run waits for a free slot, and then calls fn in a goroutine.
func (g *group) run(fn func() error) {
	g.slots <- struct{}{}
	g.running.Go(func() {
		defer func() { <-g.slots }()
		if err := fn(); err != nil {
			g.first.Do(func() { g.err = err })
		}
	})
}

func (g *group) wait() error {
	g.running.Wait()
	return g.err
}
