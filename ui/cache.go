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

type entry struct {
	mu    sync.Mutex // held while the value is read
	value any
	at    time.Time
}

func newCache() *cache { return &cache{entries: make(map[string]*entry)} }

// mostCached bounds the entries: with Visible, each person may have keys of their own.
const mostCached = 256

// turnHeader is the header by which a page that loads itself again names the turn of its stream.
const turnHeader = "Durable-Turn"

// turnPeriod is for how long the reads of a turn are shared.
const turnPeriod = 5 * time.Second

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

// cached returns the value of a key, which is read at most once in a period. Concurrent calls wait for one read.
func cached[T any](ctx context.Context, c *cache, key string, period time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		if len(c.entries) >= mostCached {
			clear(c.entries)
		}
		e = new(entry)
		c.entries[key] = e
	}
	c.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if value, ok := e.value.(T); ok && time.Since(e.at) < period {
		return value, e.at, nil
	}
	value, err := read(ctx)
	if err != nil {
		return value, time.Time{}, err
	}
	e.value, e.at = value, time.Now()
	return value, e.at, nil
}
