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
