package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// CountUnreceivedSignals implements store.Store.
func (s *database) CountUnreceivedSignals(ctx context.Context, runs []uuid.UUID) ([]store.SignalCount, error) {
	var counts []store.SignalCount
	err := s.withReadConn(ctx, "count signals", func(x executor) error {
		waiting, err := runsWithSignals(ctx, x, runs)
		if err != nil {
			return err
		}
		for i, run := range runs {
			if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if !waiting[run] {
				continue
			}
			err := x.query(qSignalsUnreceivedCount, func(v []driver.Value) error {
				c := columnReader{values: v}
				counts = append(counts, store.SignalCount{Run: run, Name: c.text(), Count: int(c.int())})
				return c.err
			}, bindShard(run), bindUUID(run))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// runsWithSignals returns which of the runs have unreceived signals. Few of the runs that end have any, so it walks the
// index from one run with signals to the next.
func runsWithSignals(ctx context.Context, x executor, runs []uuid.UUID) (map[uuid.UUID]bool, error) {
	waiting := make(map[uuid.UUID]bool)
	rest := slices.SortedFunc(slices.Values(runs), store.CompareUUIDsByShard)
	for len(rest) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		shard := store.ShardOf(rest[0])
		var next uuid.NullUUID
		err := x.query(qNextRunWithUnreceivedSignal, func(v []driver.Value) error {
			c := columnReader{values: v}
			next = uuid.NullUUID{UUID: c.uuid(), Valid: true}
			return c.err
		}, bindShard(rest[0]), bindUUID(rest[0]))
		if err != nil {
			return nil, err
		}
		for len(rest) > 0 && store.ShardOf(rest[0]) == shard && (!next.Valid || bytes.Compare(rest[0][:], next.UUID[:]) <= 0) {
			if next.Valid && rest[0] == next.UUID {
				waiting[next.UUID] = true
			}
			rest = rest[1:]
		}
	}
	return waiting, nil
}
