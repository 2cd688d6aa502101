package ui

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// cache keeps the values that the pages of many people have in common, so that all these pages together cost the database as much as one.
type cache struct {
	mu       sync.Mutex
	entries  map[string]*cacheEntry
	sweeping bool // removeOld will be called
}

// cacheEntry is the value of a key. The mutex of its cache guards it.
type cacheEntry struct {
	value     any
	readAt    time.Time     // when the value was read; zero if there is no value
	readEnded chan struct{} // closed when the read in progress ends; nil if there is none
	size      int           // of the value's payloads, in bytes
}

func newCache() *cache { return &cache{entries: make(map[string]*cacheEntry)} }

// mostCached bounds the entries: with Visible, each person may have keys of their own.
const mostCached = 256

// mostCachedBytes bounds the payloads of the entries.
const mostCachedBytes = 64 << 20

// maxStaleAge is how old a value may be that is returned while one caller reads it again. Older values are removed.
const maxStaleAge = 10 * time.Second

// clear removes all values. Reads that are in progress do not store their values afterwards.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = make(map[string]*cacheEntry)
}

// cacheKey returns the key of a read with the given arguments. Texts are quoted, so that two lists of arguments never have the same key.
func cacheKey(read string, args ...any) string { return fmt.Sprintf("%s %#v", read, args) }

// readOncePerReloadRound reads a value once for all pages that are loaded in the same reload round. For a request that belongs to no round, it always
// reads the value. Callers must not change the value.
func readOncePerReloadRound[T any](v *requestView, key string, read func(context.Context) (T, error)) (T, error) {
	round := v.reloadRound()
	if round == "" {
		return read(v.ctx())
	}
	value, _, err := cachedRead(v.ctx(), v.roundCache, round+" "+key, roundPeriod, read)
	return value, err
}

// readOncePerRoundOrPeriod reads a value once for each reload round, because a round follows a change. For requests that belong to no round, it reads
// the value at most once in a period.
func readOncePerRoundOrPeriod[T any](v *requestView, key string, period time.Duration, read func(context.Context) (T, error)) (T, time.Time, error) {
	if round := v.reloadRound(); round != "" {
		return cachedRead(v.ctx(), v.roundCache, round+" "+key, roundPeriod, read)
	}
	return cachedRead(v.ctx(), v.periodCache, key, period, read)
}

// cachedRead returns the value of a key, and when it was read. Once in each period, one caller reads the value. Meanwhile the other callers get the
// previous value if it is not older than maxStaleAge, and otherwise wait for the new value.
func cachedRead[T any](ctx context.Context, c *cache, key string, period time.Duration, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	return cachedReadIf(ctx, c, key, func(readAt time.Time, isReading bool) bool {
		age := time.Since(readAt)
		return age < period || age < maxStaleAge && isReading
	}, read)
}

// cachedReadIf returns the value of a key if isCurrent accepts it. The arguments of isCurrent are the time at which the value was read, and whether
// another caller is reading it again. If isCurrent does not accept the value, one caller reads it, and the others wait.
func cachedReadIf[T any](ctx context.Context, c *cache, key string, isCurrent func(readAt time.Time, isReading bool) bool, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	for {
		c.mu.Lock()
		e := c.entries[key]
		if e == nil {
			if len(c.entries) >= mostCached {
				clear(c.entries)
			}
			e = new(cacheEntry)
			c.entries[key] = e
			c.sweepLater()
		}
		value, _ = e.value.(T)
		at, reading := e.readAt, e.readEnded
		if !at.IsZero() && isCurrent(at, reading != nil) {
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

// refreshEntry reads the value of an entry whose field readEnded the caller has set.
func refreshEntry[T any](ctx context.Context, c *cache, e *cacheEntry, read func(context.Context) (T, error)) (value T, at time.Time, err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !at.IsZero() {
			e.value, e.readAt, e.size = value, at, payloadSize(value)
			c.makeRoom(e)
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

// sweepLater removes old values after some time, even if nobody uses the cache any more. The caller holds the mutex.
func (c *cache) sweepLater() {
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(maxStaleAge, c.removeOld)
	}
}

// removeOld removes the entries whose values are too old, or were not read.
func (c *cache) removeOld() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.entries, func(_ string, e *cacheEntry) bool { return e.readEnded == nil && time.Since(e.readAt) >= maxStaleAge })
	if c.sweeping = false; len(c.entries) > 0 {
		c.sweepLater()
	}
}

// makeRoom removes all values except kept if the payloads of all values together are too large. The caller holds the mutex.
func (c *cache) makeRoom(kept *cacheEntry) {
	total := 0
	for _, e := range c.entries {
		total += e.size
	}
	if total > mostCachedBytes {
		maps.DeleteFunc(c.entries, func(_ string, e *cacheEntry) bool { return e != kept && e.readEnded == nil })
	}
}

// payloadSize returns the size of the payloads of a value, in bytes.
func payloadSize(value any) (size int) {
	switch value := value.(type) {
	case *durable.RunInfo:
		size = len(value.Input) + len(value.Output)
	case durable.GenerationPage:
		for i := range value.Generations {
			size += len(value.Generations[i].Input) + len(value.Generations[i].Output)
		}
	case *renderedPage:
		size = len(value.html) + len(value.compressed)
	case *durable.HistoryPage:
		for i := range value.Outline {
			size += len(value.Outline[i].Output)
		}
		for i := range value.Calls {
			size += len(value.Calls[i].Output)
		}
	}
	return size
}
