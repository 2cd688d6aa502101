package main

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The ceiling is the maximal throughput of the database for callers that wait until one row is durable
// before they write the next. Each caller inserts one row at a time. One or two writers insert all
// waiting rows with one statement in one transaction. There are no runs, leases, fences, histories,
// retries or encodings. The difference between the ceiling and durable is the cost of those.
//
// Like durable's journal, a writer yields to the scheduler a few times before it takes a batch, which
// makes the ceiling higher. The limits below give the highest ceiling. They differ from the journal's.
const (
	ceilingTurns     = 3
	ceilingBatch     = 512
	secondWriterRows = 128 // waiting rows at which a second writer starts
)

// ceilingRow is one row of the ceiling. The caller may use it again after it has received from done.
type ceilingRow struct {
	shard  int16
	run    uuid.UUID
	name   string
	output []byte
	done   chan error
}

// committer writes rows in one transaction. It is not safe for concurrent use.
type committer interface {
	commit(rows []*ceilingRow) error
	close() error
}

// ceiling collects rows and commits them in groups.
type ceiling struct {
	freeCommitters chan committer // as many as may write at once

	mu         sync.Mutex
	pending    []*ceilingRow
	writers    int
	maxWriters int
}

func newCeiling(committers ...committer) *ceiling {
	c := &ceiling{freeCommitters: make(chan committer, len(committers)), maxWriters: len(committers)}
	for _, k := range committers {
		c.freeCommitters <- k
	}
	return c
}

// insert returns when the row is durable.
func (c *ceiling) insert(row *ceilingRow) error {
	c.mu.Lock()
	c.pending = append(c.pending, row)
	spawn := c.writers == 0 || (c.writers < c.maxWriters && len(c.pending) >= secondWriterRows)
	if spawn {
		c.writers++
	}
	c.mu.Unlock()
	if spawn {
		go c.write()
	}
	return <-row.done
}

// write commits until no row waits.
func (c *ceiling) write() {
	k := <-c.freeCommitters
	defer func() { c.freeCommitters <- k }()
	rows := make([]*ceilingRow, 0, ceilingBatch)
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

// yield gives the callers of the last batch time to insert their next row.
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

func (c *ceiling) take(rows []*ceilingRow) []*ceilingRow {
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

// close waits for the writers, and closes their committers.
func (c *ceiling) close() error {
	var errs []error
	for range c.maxWriters {
		errs = append(errs, (<-c.freeCommitters).close())
	}
	return errors.Join(errs...)
}

// ceiling measures the ceiling.
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
		row := &ceilingRow{shard: int16(number % store.ShardCount), output: output, done: make(chan error, 1)}
		return func(did func() bool) error {
			row.run = store.NewUUIDAt(row.shard, time.Now())
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

// load returns a load with that number of callers.
func (b *bench) load(callers int) load {
	return load{callers: callers, warm: b.warm(), window: b.window}
}
