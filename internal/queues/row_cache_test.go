package queues

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// oneQueue is a store with one queue. It counts its reads.
type oneQueue struct {
	reads int
	err   error
}

func (s *oneQueue) QueueRows(context.Context) ([]store.QueueRow, error) {
	s.reads++
	return []store.QueueRow{{Name: "q"}}, s.err
}

// The rows are read again when they are stale or another one has changed them, and the old ones are used while they cannot be read.
func TestRowsAreReadAgainWhenStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &oneQueue{err: store.ErrUnavailable}
		rows := NewRowCache(s)
		expect := func(when string, known bool, reads int) {
			t.Helper()
			byName, is := rows.ReadRowsIfStale(t.Context())
			if _, found := byName["q"]; found != known || is != known || s.reads != reads {
				t.Errorf("%s: the rows are known: %v, after %d reads, want %v and %d", when, is, s.reads, known, reads)
			}
		}
		expect("the first read fails", false, 1)
		s.err = nil
		rows.Invalidate()
		expect("the database is available", true, 2)
		expect("the rows are fresh", true, 2)
		time.Sleep(rowsFreshFor)
		expect("the rows are stale", true, 3)
		rows.Invalidate()
		expect("this process has changed a row", true, 4)
		time.Sleep(rowsMaxAge)
		s.err = store.ErrUnavailable
		expect("the rows are old and cannot be read", true, 5)
		if r := rows.LatestReading(); !r.ReadFailed {
			t.Errorf("the latest reading has not failed: %+v", r)
		}
	})
}
