package queues

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// rowsFreshFor is how long the rows of queues are used before a caller reads them again, and
	// rowsMaxAge how long all others use the old rows during that read. A change takes effect within a
	// second: a start that does not know it yet is found by the next admission.
	rowsFreshFor = 500 * time.Millisecond
	rowsMaxAge   = 800 * time.Millisecond
	// rowsReadTimeout bounds a read of the rows. A start that has waited for so long uses what is known.
	rowsReadTimeout = 2 * time.Second
)

// RowStore is what a RowCache calls of the store.
type RowStore interface {
	QueueRows(ctx context.Context) ([]store.QueueRow, error)
}

// RowCache is what this process knows of the rows of queues. Starts and claims need it, so it is read at
// most once per rowsFreshFor, and only when somebody needs it.
type RowCache struct {
	store  RowStore
	mu     sync.Mutex // held during a read
	latest atomic.Pointer[Reading]
}

// NewRowCache returns a RowCache, which has read nothing yet.
func NewRowCache(s RowStore) *RowCache { return &RowCache{store: s} }

// Reading is the result of one read. It does not change.
type Reading struct {
	ByName     map[string]store.QueueRow
	ReadBegan  time.Time // of the read
	ReadFailed bool      // the read failed, and ByName is the result of the read before
	wasRead    bool      // ByName was read
}

// ReadRowsIfStale returns the rows by name, and whether they could be read since the process began. They may be
// rowsMaxAge old, or older if they cannot be read now. One caller reads them, and the others do not wait
// for it.
func (q *RowCache) ReadRowsIfStale(ctx context.Context) (byName map[string]store.QueueRow, known bool) {
	r := q.latest.Load()
	now := time.Now()
	switch {
	case r == nil || now.Sub(r.ReadBegan) >= rowsMaxAge:
		r = q.RowsReadSince(ctx, now.Add(-rowsFreshFor))
	case now.Sub(r.ReadBegan) >= rowsFreshFor && q.mu.TryLock():
		r = q.refresh(ctx, now.Add(-rowsFreshFor))
		q.mu.Unlock()
	}
	return r.ByName, r.wasRead
}

// RowsReadSince returns the rows as of the given time or later, or older ones if they cannot be read.
func (q *RowCache) RowsReadSince(ctx context.Context, at time.Time) *Reading {
	if r := q.latest.Load(); r != nil && r.ReadBegan.After(at) {
		return r
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refresh(ctx, at)
}

// refresh does what RowsReadSince does, for a caller that holds mu.
func (q *RowCache) refresh(ctx context.Context, at time.Time) *Reading {
	before := q.latest.Load()
	if before != nil && before.ReadBegan.After(at) {
		return before
	}
	bounded, cancel := context.WithTimeout(ctx, rowsReadTimeout)
	defer cancel()
	r := &Reading{ReadBegan: time.Now()}
	rows, err := q.store.QueueRows(bounded)
	if err != nil {
		r.ReadFailed = true
		if before != nil {
			r.ByName, r.wasRead = before.ByName, before.wasRead
		}
		if ctx.Err() != nil {
			r.ReadBegan = time.Time{} // the end of the caller's context may be the cause: others read at once
		}
		q.latest.Store(r)
		return r
	}
	r.wasRead, r.ByName = true, make(map[string]store.QueueRow, len(rows))
	for _, row := range rows {
		r.ByName[row.Name] = row
	}
	q.latest.Store(r)
	return r
}

// LatestReading returns the result of the last read, or nil if the rows were not read yet.
func (q *RowCache) LatestReading() *Reading { return q.latest.Load() }

// CachedRows returns the rows that were read last, without a read.
func (q *RowCache) CachedRows() map[string]store.QueueRow {
	if r := q.latest.Load(); r != nil {
		return r.ByName
	}
	return nil
}

// Invalidate makes the next use read the rows again, because this process has changed one.
func (q *RowCache) Invalidate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.latest.Load(); r != nil {
		old := *r
		old.ReadBegan = time.Time{}
		q.latest.Store(&old)
	}
}
