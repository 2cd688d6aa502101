package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// FailureGroups implements store.Store.
func (s *database) FailureGroups(ctx context.Context, f store.Filter, examine, limit int) (groups []store.FailureGroup, err error) {
	err = s.withReadConn(ctx, "failures", func(x executor) error {
		args := filterArgs(&f)
		after := store.FailureKey{Workflow: f.Workflow}
		for len(groups) < limit {
			if err := ctx.Err(); err != nil {
				return err
			}
			found := false
			err := x.query(qFailureGroupNext, func(v []driver.Value) error {
				c := columnReader{values: v}
				found, after = true, store.FailureKey{Workflow: c.text(), Step: c.text(), Type: c.text()}
				return c.err
			}, after.Workflow, after.Step, after.Type)
			if err != nil || !found || f.Workflow != "" && after.Workflow != f.Workflow {
				return err
			}
			if f.Failure.Workflow != "" && after != f.Failure {
				continue
			}
			args[2], args[15], args[16], args[17] = int64(examine), after.Workflow, after.Step, after.Type
			err = x.query(qFailureGroup, func(v []driver.Value) error {
				c := columnReader{values: v}
				g := store.FailureGroup{Key: after, RunCount: int(c.int()), HasMoreRuns: c.int() >= int64(examine), First: c.time(), Last: c.time()}
				if g.RunCount > 0 {
					g.Newest = store.Run{UUID: c.uuid(), Parent: c.nullUUID(), Name: c.text(), Workflow: after.Workflow, Status: store.Status(c.int()), Error: slices.Clone(c.bytes())}
					groups = append(groups, g)
				}
				return c.err
			}, args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return groups, err
}

// StatusCounts implements store.Store.
func (s *database) StatusCounts(ctx context.Context, now time.Time, most int) ([]store.StatusCount, error) {
	var sums [store.Superseded + 1]store.StatusCount
	err := s.withReadConn(ctx, "count", func(x executor) error {
		count := func(q queryID, args ...driver.Value) error {
			var part [len(sums)]int
			total := 0
			err := x.query(q, func(v []driver.Value) error {
				c := columnReader{values: v}
				status, n := c.int(), int(c.int())
				if c.err == nil && status > 0 && status < int64(len(part)) {
					part[status], total = n, total+n
				}
				return c.err
			}, append(args, int64(most))...)
			for status, n := range part {
				sums[status].RunCount += n
				sums[status].HasMoreRuns = sums[status].HasMoreRuns || n > 0 && total >= most
			}
			return err
		}
		for lane := store.FirstLane; ; {
			if err := ctx.Err(); err != nil {
				return err
			}
			l, ok, err := nextLane(x, lane)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			lane = l.lane
			for _, bounds := range [][2]int64{{math.MinInt64, now.UnixMicro()}, {now.UnixMicro(), math.MaxInt64}} {
				if err := count(qStatusCountsOfLane, int64(lane), bounds[0], bounds[1]); err != nil {
					return err
				}
			}
		}
		for _, status := range []store.Status{store.Waiting, store.Paused, store.Failed, store.Expired} {
			if err := count(qStatusCountWithoutWakeTime, int64(status)); err != nil {
				return err
			}
		}
		return nil
	})
	var counts []store.StatusCount
	for status, c := range sums {
		if c.RunCount > 0 {
			c.Status = store.Status(status)
			counts = append(counts, c)
		}
	}
	return counts, err
}

// LastEventCursor implements store.Store.
func (s *database) LastEventCursor(ctx context.Context) (cursor string, err error) {
	err = s.withReadConn(ctx, "newest event", func(x executor) error {
		return x.query(qEventNewest, func(v []driver.Value) error {
			c := columnReader{values: v}
			cursor = formatEventCursor(c.int(), c.int())
			return c.err
		})
	})
	return cursor, err
}
