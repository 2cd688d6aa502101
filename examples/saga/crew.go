package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// workerPool holds the live worker processes. Only one goroutine uses it.
type workerPool struct {
	where   fleet.Place
	shop    string // its URL
	size    int
	fail    func(error) // called when a worker ends by itself
	workers map[string]*fleet.Process
	hired   int
	kills   int
}

func newCrew(where fleet.Place, shop string, size int, fail func(error)) *workerPool {
	return &workerPool{where: where, shop: shop, size: size, fail: fail, workers: make(map[string]*fleet.Process)}
}

// fill starts workers until there are enough.
func (c *workerPool) fill() error {
	for len(c.workers) < c.size {
		c.hired++
		name := fmt.Sprintf("worker-%d", c.hired)
		p, err := c.where.Start(name, nil, c.fail, "-worker="+name, "-shop="+c.shop)
		if err != nil {
			return err
		}
		c.workers[name] = p
	}
	return nil
}

// kill sends SIGKILL to the named workers.
func (c *workerPool) kill(names ...string) error {
	for _, name := range names {
		p := c.workers[name]
		if p == nil {
			return fmt.Errorf("there is no %s to kill", name)
		}
		delete(c.workers, name)
		if !p.Kill() {
			return fmt.Errorf("%s ended before it was killed", name)
		}
		c.kills++
	}
	return nil
}

// names returns the names of the live workers, sorted.
func (c *workerPool) names() []string { return slices.Sorted(maps.Keys(c.workers)) }

// stop drains all workers. It returns the errors of workers that did not drain, or that had failed
// by themselves.
func (c *workerPool) stop() error {
	var errs []error
	for name, p := range c.workers {
		if err := p.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	clear(c.workers)
	return errors.Join(errs...)
}
