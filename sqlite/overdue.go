package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json/v2"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Overdue implements store.Store.
func (s *database) Overdue(ctx context.Context, at time.Time, after store.Pair, limit int) ([]store.Overdue, error) {
	var all []store.Overdue
	err := s.read(ctx, "overdue", func(x session) error {
		for pair, ok := after, true; ok && len(all) < limit; {
			var err error
			if pair, ok, err = nextPair(x, pair); err != nil {
				return err
			}
			if !ok {
				break
			}
			err = x.each(qWakeLongest, func(v []driver.Value) error {
				c := columns{values: v}
				all = append(all, store.Overdue{Pair: pair, Run: c.uuid(), Since: c.time()})
				return c.err
			}, pair.Queue, pair.Workflow, bindTime(at))
			if err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return all, err
}

// nextPair returns the pair after the given one, in order, that has a run with a wake time.
func nextPair(x session, after store.Pair) (next store.Pair, ok bool, err error) {
	read := func(v []driver.Value) error {
		c := columns{values: v}
		next, ok = store.Pair{Queue: c.text(), Workflow: c.text()}, true
		return c.err
	}
	if err = x.each(qPairNext, read, after.Queue, after.Workflow); err == nil && !ok {
		err = x.each(qPairNextQueue, read, after.Queue)
	}
	return next, ok, err
}

// Executed implements store.Store.
func (s *database) Executed(ctx context.Context, pairs []store.Pair) ([]bool, error) {
	executed := make([]bool, len(pairs))
	if len(pairs) == 0 {
		return executed, nil
	}
	err := s.read(ctx, "executed", func(x session) error {
		return x.each(qWorkersLive, func(v []driver.Value) error {
			c := columns{values: v}
			own, known, err := decodePairs(c.text())
			if err != nil {
				return err
			}
			for i, p := range pairs {
				executed[i] = executed[i] || !known || slices.Contains(own, p)
			}
			return c.err
		}, bindTime(now()))
	})
	return executed, err
}

// encodePairs encodes the pairs that a worker executes for the database. NULL means that the worker does not record its
// pairs.
func encodePairs(pairs []store.Pair) (driver.Value, error) {
	if pairs == nil {
		return nil, nil
	}
	list := make([][2]string, len(pairs))
	for i, p := range pairs {
		list[i] = [2]string{p.Queue, p.Workflow}
	}
	b, err := json.Marshal(list)
	return string(b), err
}

func decodePairs(column string) (pairs []store.Pair, known bool, err error) {
	if column == "" {
		return nil, false, nil
	}
	var list [][2]string
	err = json.Unmarshal([]byte(column), &list)
	pairs = make([]store.Pair, len(list))
	for i, p := range list {
		pairs[i] = store.Pair{Queue: p[0], Workflow: p[1]}
	}
	return pairs, true, err
}
