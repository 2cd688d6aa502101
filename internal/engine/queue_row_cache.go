package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// queueRowsFreshFor is how long the rows of queues are used before a caller reads them again, and
	// queueRowsMaxAge how long all others use the old rows during that read. A change takes effect within a
	// second: a start that does not know it yet is found by the next admission.
	queueRowsFreshFor = 500 * time.Millisecond
	queueRowsMaxAge   = 800 * time.Millisecond
	// queueRowsReadTimeout bounds a read of the rows. A start that has waited for so long uses what is known.
	queueRowsReadTimeout = 2 * time.Second
)

// queueRowCache is what this process knows of the rows of queues. Starts and claims need it, so it is read at
// most once per queueRowsFreshFor, and only when somebody needs it.
type queueRowCache struct {
	e      *Engine
	mu     sync.Mutex // held during a read
	latest atomic.Pointer[queueRowsReading]
}

// queueRowsReading is the result of one read. It does not change.
type queueRowsReading struct {
	byName     map[string]store.QueueRow
	readBegan  time.Time // of the read
	readFailed bool      // the read failed, and byName is the result of the read before
	wasRead    bool      // byName was read
}

// readRowsIfStale returns the rows by name, and whether they could be read since the process began. They may be
// queueRowsMaxAge old, or older if they cannot be read now. One caller reads them, and the others do not wait
// for it.
func (q *queueRowCache) readRowsIfStale(ctx context.Context) (byName map[string]store.QueueRow, known bool) {
	r := q.latest.Load()
	now := time.Now()
	switch {
	case r == nil || now.Sub(r.readBegan) >= queueRowsMaxAge:
		r = q.rowsReadSince(ctx, now.Add(-queueRowsFreshFor))
	case now.Sub(r.readBegan) >= queueRowsFreshFor && q.mu.TryLock():
		r = q.refresh(ctx, now.Add(-queueRowsFreshFor))
		q.mu.Unlock()
	}
	return r.byName, r.wasRead
}

// rowsReadSince returns the rows as of the given time or later, or older ones if they cannot be read.
func (q *queueRowCache) rowsReadSince(ctx context.Context, at time.Time) *queueRowsReading {
	if r := q.latest.Load(); r != nil && r.readBegan.After(at) {
		return r
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refresh(ctx, at)
}

// refresh does what rowsReadSince does, for a caller that holds mu.
func (q *queueRowCache) refresh(ctx context.Context, at time.Time) *queueRowsReading {
	before := q.latest.Load()
	if before != nil && before.readBegan.After(at) {
		return before
	}
	bounded, cancel := context.WithTimeout(ctx, queueRowsReadTimeout)
	defer cancel()
	r := &queueRowsReading{readBegan: time.Now()}
	rows, err := q.e.store.QueueRows(bounded)
	if err != nil {
		r.readFailed = true
		if before != nil {
			r.byName, r.wasRead = before.byName, before.wasRead
		}
		if ctx.Err() != nil {
			r.readBegan = time.Time{} // the end of the caller's context may be the cause: others read at once
		}
		q.latest.Store(r)
		return r
	}
	r.wasRead, r.byName = true, make(map[string]store.QueueRow, len(rows))
	for _, row := range rows {
		r.byName[row.Name] = row
	}
	q.latest.Store(r)
	return r
}

// cachedRows returns the rows that were read last, without a read.
func (q *queueRowCache) cachedRows() map[string]store.QueueRow {
	if r := q.latest.Load(); r != nil {
		return r.byName
	}
	return nil
}

// invalidate makes the next use read the rows again, because this process has changed one.
func (q *queueRowCache) invalidate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := q.latest.Load(); r != nil {
		old := *r
		old.readBegan = time.Time{}
		q.latest.Store(&old)
	}
}
