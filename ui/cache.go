package ui

import (
	"context"
	"sync"
	"time"
)

// cache keeps what pages of many people have in common, so that they cost the database as much as one.
type cache struct {
	mu      sync.Mutex
	entries map[string]*cacheEntry
}

// cacheEntry is the value of a key. The mutex of its cache guards it.
type cacheEntry struct {
	value     any
	readAt    time.Time     // when it was read; zero: there is no value
	readEnded chan struct{} // closed when the read that is under way has ended; nil: there is none
}

func newCache() *cache { return &cache{entries: make(map[string]*cacheEntry)} }

// mostCached bounds the entries: with Visible, each person may have keys of their own.
const mostCached = 256

// maxStaleAge is how old a value may be that is returned while one caller reads it again.
const maxStaleAge = 10 * time.Second

// turnHeader is the header by which a page that loads itself again names the turn of its stream.
const turnHeader = "Durable-Turn"

// turnPeriod is for how long the reads of a turn are shared.
const turnPeriod = 5 * time.Second

// clear removes all values. Reads that are under way do not bring theirs back.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = make(map[string]*cacheEntry)
}

// readOncePerTurn reads a value once for all pages that are loaded in the same turn of their streams, and in no turn for each request. Callers must
// not change the value.
func readOncePerTurn[T any](v *requestView, key string, read func(context.Context) (T, error)) (T, error) {
	turn := v.request.Header.Get(turnHeader)
	if turn == "" {
		return read(v.ctx())
	}
	value, _, err := cachedRead(v.ctx(), v.turnCache, turn+" "+key, turnPeriod, read)
	return value, err
}

// readOncePerTurnOrPeriod is shared for a value that is read in no turn at most once in a period. A turn tells of a change, so the value is read in the turn.
func readOncePerTurnOrPeriod[T any](v *requestView, key string, period time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	if turn := v.request.Header.Get(turnHeader); turn != "" {
		return cachedRead(v.ctx(), v.turnCache, turn+" "+key, turnPeriod, read)
	}
	return cachedRead(v.ctx(), v.periodCache, key, period, read)
}

// cachedRead returns the value of a key, and when it was read. Once a period one caller reads it. Meanwhile the others get the value before, if it is not
// older than maxStaleAge, or wait for the new one.
func cachedRead[T any](ctx context.Context, c *cache, key string, period time.Duration, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	for {
		c.mu.Lock()
		e := c.entries[key]
		if e == nil {
			if len(c.entries) >= mostCached {
				clear(c.entries)
			}
			e = new(cacheEntry)
			c.entries[key] = e
		}
		value, _ = e.value.(T)
		at, reading := e.readAt, e.readEnded
		age := time.Since(at)
		if has := !at.IsZero(); has && (age < period || age < maxStaleAge && reading != nil) {
			c.mu.Unlock()
			return value, at, nil
		}
		if reading == nil {
			e.readEnded = make(chan struct{})
			c.mu.Unlock()
			return refreshEntry(ctx, c, e, read)
		}
		c.mu.Unlock()
		select {
		case <-reading: // if its caller has gone away, the next one reads
		case <-ctx.Done():
			return value, time.Time{}, ctx.Err()
		}
	}
}

// refreshEntry reads the value of an entry, whose reading the caller has set.
func refreshEntry[T any](ctx context.Context, c *cache, e *cacheEntry, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !at.IsZero() {
			e.value, e.readAt = value, at
		}
		close(e.readEnded)
		e.readEnded = nil
	}()
	began := time.Now()
	if value, err = read(ctx); err != nil {
		return value, time.Time{}, err
	}
	return value, began, nil
}
