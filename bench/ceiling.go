package main

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The ceiling is what the database can do at most for somebody who wants a row to be
// durable before each next step: callers hand in one row each and wait until it is
// committed; one writer, or two, take whatever waits and insert it with one statement in
// one transaction. There are no runs, no leases, no fences, no history, no retries and no
// encoding. Whatever durable does beside that shows as the distance to it.
//
// As durable's journal does, a writer gives the callers a few turns of the scheduler before
// it takes a batch; that makes the ceiling higher. The limits below were chosen for the
// highest ceiling, not to be the journal's.
const (
	ceilingTurns  = 3
	ceilingBatch  = 512
	ceilingSecond = 128 // waiting rows that call a second writer
)

// bare is one row of the ceiling. It is its caller's again once done answers.
type bare struct {
	shard  int16
	run    uuid.UUID
	name   string
	output []byte
	done   chan error
}

// committer writes rows in one transaction. It is used by one writer at a time.
type committer interface {
	commit(rows []*bare) error
	close() error
}

// ceiling gathers rows.
type ceiling struct {
	free chan committer // as many as may write at once

	mu      sync.Mutex
	pending []*bare
	writers int
	most    int
}

func newCeiling(committers ...committer) *ceiling {
	c := &ceiling{free: make(chan committer, len(committers)), most: len(committers)}
	for _, k := range committers {
		c.free <- k
	}
	return c
}

// insert returns when the row is durable.
func (c *ceiling) insert(row *bare) error {
	c.mu.Lock()
	c.pending = append(c.pending, row)
	spawn := c.writers == 0 || (c.writers < c.most && len(c.pending) >= ceilingSecond)
	if spawn {
		c.writers++
	}
	c.mu.Unlock()
	if spawn {
		go c.write()
	}
	return <-row.done
}

// write commits until nothing waits.
func (c *ceiling) write() {
	k := <-c.free
	defer func() { c.free <- k }()
	rows := make([]*bare, 0, ceilingBatch)
	for {
		c.yield()
		rows = c.take(rows[:0])
		if len(rows) == 0 {
			return
		}
		err := k.commit(rows)
		for _, row := range rows {
			row.done <- err
		}
	}
}

// yield lets callers that were just answered come back with their next row.
func (c *ceiling) yield() {
	seen := c.depth()
	for range ceilingTurns {
		runtime.Gosched()
		now := c.depth()
		if now == seen {
			return
		}
		seen = now
	}
}

func (c *ceiling) depth() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

func (c *ceiling) take(rows []*bare) []*bare {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.pending), ceilingBatch)
	rows = append(rows, c.pending[:n]...)
	rest := copy(c.pending, c.pending[n:])
	c.pending = c.pending[:rest]
	if n == 0 {
		c.writers--
	}
	return rows
}

// close waits for the writers, and closes what they wrote with.
func (c *ceiling) close() error {
	var errs []error
	for range c.most {
		errs = append(errs, (<-c.free).close())
	}
	return errors.Join(errs...)
}

// ceiling measures it.
func (b *bench) ceiling(at *site, callers int) (*sample, error) {
	var committers []committer
	n := 2
	if at.pg == nil {
		n = 1 // SQLite has one writer
	}
	for range n {
		k, err := at.committer(b.ctx)
		if err != nil {
			return nil, err
		}
		committers = append(committers, k)
	}
	c := newCeiling(committers...)
	names, output := stepNames(b.steps), newReceipt(b.payload).encode()
	var number int
	o, err := b.load(callers).run(b.ctx, func() (caller, error) {
		number++
		row := &bare{shard: int16(number % store.Shards), output: output, done: make(chan error, 1)}
		return func(did func() bool) error {
			row.run = store.IDAt(row.shard, time.Now())
			for _, name := range names {
				row.name = name
				if err := c.insert(row); err != nil {
					return err
				}
				if !did() {
					return nil
				}
			}
			return nil
		}, nil
	})
	if err = errors.Join(err, c.close()); err != nil {
		return nil, err
	}
	return o.sample(b.steps), nil
}

// load is a load of so many callers.
func (b *bench) load(callers int) load {
	return load{callers: callers, warm: b.warm(), window: b.window}
}
