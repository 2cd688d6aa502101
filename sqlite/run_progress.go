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

// scopeSeparator separates the name of a Map from the name of an item; see internal/naming.
const scopeSeparator = "\x1f"

// RunProgress implements store.Store.
func (s *database) RunProgress(ctx context.Context, run uuid.UUID, now time.Time) (store.RunProgress, error) {
	var o store.RunProgress
	err := s.withReadConn(ctx, "outline", func(x executor) error {
		var err error
		if o.OpenCalls, err = querySteps(x, qStepsOpen, bindShard(run), bindUUID(run), bindTime(now)); err != nil {
			return err
		}
		slices.SortStableFunc(o.OpenCalls, func(a, b store.Step) int { return cmp.Compare(a.Seq, b.Seq) })
		if o.Choices, err = querySteps(x, qRecordedChoices, bindShard(run), bindUUID(run)); err != nil {
			return err
		}
		err = x.query(qRunLastLeaseLoss, func(v []driver.Value) error {
			c := columnReader{values: v}
			o.LastLeaseLoss = store.LeaseLoss{At: c.time(), Worker: c.uuid()}
			o.Timeout = time.Duration(c.int()) * time.Microsecond
			return c.err
		}, bindShard(run), bindUUID(run))
		if err != nil {
			return err
		}
		maps, err := querySteps(x, qMapsOfRun, bindShard(run), bindUUID(run))
		if err != nil {
			return err
		}
		for _, m := range maps {
			if err := ctx.Err(); err != nil {
				return err
			}
			done, err := countMapItemsDone(x, run, m.Name)
			if err != nil {
				return err
			}
			o.Maps = append(o.Maps, store.MapProgress{Step: m, DoneCount: done})
		}
		o.Tags, err = readTags(x, run)
		return err
	})
	if err != nil {
		return store.RunProgress{}, err
	}
	return o, nil
}

// countMapItemsDone returns the number of items of a Map that have an outcome.
func countMapItemsDone(x executor, run uuid.UUID, name string) (done int, err error) {
	from, below := name+scopeSeparator, name+string(scopeSeparator[0]+1)
	err = x.query(qMapItemsDoneCount, func(v []driver.Value) error {
		c := columnReader{values: v}
		done = int(c.int())
		return c.err
	}, bindShard(run), bindUUID(run), from, below, int64(len(from)))
	return done, err
}
