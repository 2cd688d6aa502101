package ui

import (
	"context"
	"sync"
	"time"
)

// cache keeps what pages of many people have in common, so that they cost the database as much as one.
type cache struct {
	mu      sync.Mutex
	entries map[string]*entry
}

// entry is the value of a key. The mutex of its cache guards it.
type entry struct {
	value   any
	at      time.Time     // when it was read; zero: there is no value
	reading chan struct{} // closed when the read that is under way has ended; nil: there is none
}

func newCache() *cache { return &cache{entries: make(map[string]*entry)} }

// mostCached bounds the entries: with Visible, each person may have keys of their own.
const mostCached = 256

// staleFor is how old a value may be that is returned while one caller reads it again.
const staleFor = 10 * time.Second

// turnHeader is the header by which a page that loads itself again names the turn of its stream.
const turnHeader = "Durable-Turn"

// turnPeriod is for how long the reads of a turn are shared.
const turnPeriod = 5 * time.Second

// clear removes all values. Reads that are under way do not bring theirs back.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = make(map[string]*entry)
}

// shared reads a value once for all pages that are loaded in the same turn of their streams, and in no turn for each request. Callers must
// not change the value.
func shared[T any](v *view, key string, read func(context.Context) (T, error)) (T, error) {
	turn := v.request.Header.Get(turnHeader)
	if turn == "" {
		return read(v.ctx())
	}
	value, _, err := cached(v.ctx(), v.turns, turn+" "+key, turnPeriod, read)
	return value, err
}

// sharedFor is shared for a value that is read in no turn at most once in a period. A turn tells of a change, so the value is read in the turn.
func sharedFor[T any](v *view, key string, period time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	if turn := v.request.Header.Get(turnHeader); turn != "" {
		return cached(v.ctx(), v.turns, turn+" "+key, turnPeriod, read)
	}
	return cached(v.ctx(), v.read, key, period, read)
}

// cached returns the value of a key, and when it was read. Once a period one caller reads it. Meanwhile the others get the value before, if it is not
// older than staleFor, or wait for the new one.
func cached[T any](ctx context.Context, c *cache, key string, period time.Duration, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	for {
		c.mu.Lock()
		e := c.entries[key]
		if e == nil {
			if len(c.entries) >= mostCached {
				clear(c.entries)
			}
			e = new(entry)
			c.entries[key] = e
		}
		value, _ = e.value.(T)
		at, reading := e.at, e.reading
		age := time.Since(at)
		if has := !at.IsZero(); has && (age < period || age < staleFor && reading != nil) {
			c.mu.Unlock()
			return value, at, nil
		}
		if reading == nil {
			e.reading = make(chan struct{})
			c.mu.Unlock()
			return refresh(ctx, c, e, read)
		}
		c.mu.Unlock()
		select {
		case <-reading: // if its caller has gone away, the next one reads
		case <-ctx.Done():
			return value, time.Time{}, ctx.Err()
		}
	}
}

// refresh reads the value of an entry, whose reading the caller has set.
func refresh[T any](ctx context.Context, c *cache, e *entry, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !at.IsZero() {
			e.value, e.at = value, at
		}
		close(e.reading)
		e.reading = nil
	}()
	began := time.Now()
	if value, err = read(ctx); err != nil {
		return value, time.Time{}, err
	}
	return value, began, nil
}
