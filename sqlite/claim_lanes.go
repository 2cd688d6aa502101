package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"iter"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// liveLane is a lane with live runs.
type liveLane struct {
	lane            store.ClaimLane
	queue, workflow string
	version         string // of its runs; empty: the version has no place in the order of versions
	diverged        store.DivergedVersions
	priority        int16
	earliestWake    time.Time // the earliest wake time of its runs
}

// nextLane returns the lane after the given one, in their order, that has a run with a wake time.
func nextLane(x executor, after store.ClaimLane) (l liveLane, ok bool, err error) {
	err = x.query(qLaneNextWithRuns, func(v []driver.Value) error {
		c := columnReader{values: v}
		l = liveLane{lane: store.ClaimLane(c.int()), queue: c.text(), workflow: c.text(), version: c.text(), diverged: store.DivergedVersions(c.text()), priority: int16(c.int()), earliestWake: c.time()}
		ok = true
		return c.err
	}, int64(after))
	return l, ok, err
}

// lanesWithWakeTime returns the lanes that have a run with a wake time, in their order. After an error, the sequence ends.
func lanesWithWakeTime(ctx context.Context, x executor) iter.Seq2[liveLane, error] {
	return func(yield func(liveLane, error) bool) {
		for after := store.FirstLane; ; {
			l, ok, err := nextLane(x, after)
			if err == nil && !ok {
				return
			}
			if err == nil {
				err = ctx.Err()
			}
			if !yield(l, err) || err != nil {
				return
			}
			after = l.lane
		}
	}
}

// dueLanes returns the lanes with a due run from which the worker claims, in the order of a claim, and when the next run of
// its other lanes is due. It needs one index probe for each lane with live runs, however many runs the lanes have, and however many
// workflows the worker executes.
func dueLanes(ctx context.Context, x executor, q *store.ClaimQuery) (due []liveLane, next time.Time, err error) {
	for l, err := range lanesWithWakeTime(ctx, x) {
		switch {
		case err != nil:
			return nil, time.Time{}, err
		case !q.QueueRules.AllowsClaim(l.lane, l.queue) || !q.Filter.Includes(l.queue, l.workflow) || !q.Versions.AllowsClaim(l.queue, l.workflow, l.version, l.diverged):
		case l.earliestWake.After(q.Now):
			next = earlierTime(next, l.earliestWake)
		default:
			due = append(due, l)
		}
	}
	sortLanes(due)
	return due, next, nil
}

// sortLanes puts the lanes in the order of a claim: the higher priority first.
func sortLanes(lanes []liveLane) {
	slices.SortFunc(lanes, func(l, r liveLane) int {
		return cmp.Or(cmp.Compare(r.priority, l.priority), cmp.Compare(l.lane, r.lane))
	})
	store.RotateLanesRandomly(lanes, func(l *liveLane) int16 { return l.priority })
}

// earlierTime returns the earlier of two times. The zero time means never.
func earlierTime(l, r time.Time) time.Time {
	if l.IsZero() || !r.IsZero() && r.Before(l) {
		return r
	}
	return l
}
