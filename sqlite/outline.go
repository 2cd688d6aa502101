package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// separator stands between a Map's name and an item's; see internal/engine/scope.go.
const separator = "\x1f"

// Outline implements store.Store.
func (s *Store) Outline(ctx context.Context, run uuid.UUID, now time.Time) (store.Outline, error) {
	var o store.Outline
	err := s.read(ctx, "outline", func(x session) error {
		var err error
		if o.Open, err = steps(x, qStepsOpen, shardOf(run), key(run), micros(now)); err != nil {
			return err
		}
		slices.SortStableFunc(o.Open, func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
		if o.Choices, err = steps(x, qStepsChosen, shardOf(run), key(run)); err != nil {
			return err
		}
		err = x.each(qRunLost, func(v []driver.Value) error {
			c := columns{values: v}
			o.LastLeaseLoss = store.Loss{At: c.time(), Worker: c.id()}
			return c.err
		}, shardOf(run), key(run))
		if err != nil {
			return err
		}
		maps, err := steps(x, qStepsMap, shardOf(run), key(run))
		if err != nil {
			return err
		}
		for _, m := range maps {
			if err := ctx.Err(); err != nil {
				return err
			}
			done, err := itemsDone(x, run, m.Name)
			if err != nil {
				return err
			}
			o.Maps = append(o.Maps, store.MapProgress{Step: m, Done: done})
		}
		return x.each(qTagsOfRun, func(v []driver.Value) error {
			c := columns{values: v}
			o.Tags = append(o.Tags, store.Tag{Key: c.text(), Value: c.text()})
			return c.err
		}, shardOf(run), key(run))
	})
	if err != nil {
		return store.Outline{}, err
	}
	return o, nil
}

// itemsDone counts the items of a Map that have their outcome.
func itemsDone(x session, run uuid.UUID, name string) (done int, err error) {
	from, below := name+separator, name+string(separator[0]+1)
	err = x.each(qStepsMapDone, func(v []driver.Value) error {
		c := columns{values: v}
		done = int(c.int())
		return c.err
	}, shardOf(run), key(run), from, below, int64(len(from)))
	return done, err
}
