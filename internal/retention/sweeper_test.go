package retention

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// endedRuns is a store with runs in shard 0, all of which may be deleted.
type endedRuns struct {
	store.RetentionStore
	roots       []store.EndedRoot
	deleteTrees func()
	deleted     []int // how many trees each transaction has deleted
}

func (s *endedRuns) EndedTrees(_ context.Context, q store.EndedTreesQuery) (page store.EndedTrees, err error) {
	if q.Shard == 0 {
		page.Roots = s.roots
	}
	return page, nil
}

func (s *endedRuns) DeleteTrees(_ context.Context, d *store.DeleteTreesRequest) error {
	s.deleteTrees()
	s.deleted = append(s.deleted, len(d.Trees))
	for i := range d.Trees {
		d.Trees[i].Outcome, d.Trees[i].DeletedRunCount = store.Written, 1
	}
	return nil
}

// A sweep deletes so many trees in a transaction that it takes a short time, and pauses after each transaction.
func TestTransactionsFitTheSpeedOfTheDatabase(t *testing.T) {
	for what, c := range map[string]struct {
		serial bool
		took   time.Duration // by each transaction
		trees  int
		want   []int
		sweep  time.Duration // how long the sweep takes
	}{
		"a fast database":           {false, time.Millisecond, 300, []int{8, 16, 32, 64, 128, 52}, 60 * time.Millisecond},
		"a slow database":           {false, 50 * time.Millisecond, 17, []int{8, 4, 2, 1, 1, 1}, 3 * time.Second},
		"one transaction at a time": {true, 8 * time.Millisecond, 24, []int{8, 8, 8}, 384 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ended := store.EndedRoot{UUID: uuid.New(), Workflow: "order", Status: store.Completed, EndedAt: began.Add(-2 * time.Hour)}
			db := &endedRuns{roots: slices.Repeat([]store.EndedRoot{ended}, c.trees), deleteTrees: func() { time.Sleep(c.took) }}
			s := NewSweeper(Config{
				Policy: &Policy{Keep: map[string]map[store.Status]time.Duration{"order": {store.Completed: time.Hour}}},
				Store:  db, StoreIsSerial: c.serial, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			})
			if err := s.sweep(t.Context()); err != nil || s.deletedRunCount != c.trees {
				t.Errorf("%s: the sweep has deleted %d runs, want %d: %v", what, s.deletedRunCount, c.trees, err)
			}
			if !slices.Equal(db.deleted, c.want) {
				t.Errorf("%s: transactions delete %v trees, want %v", what, db.deleted, c.want)
			}
			if took := time.Since(began); took != c.sweep {
				t.Errorf("%s: the sweep takes %v, want %v", what, took, c.sweep)
			}
		})
	}
}

// Runs are kept for the duration of their workflow and status, at least store.MinRetention, and for ever if there is none.
func TestWhatAPolicyKeeps(t *testing.T) {
	p := &Policy{Keep: map[string]map[store.Status]time.Duration{"order": {store.Completed: time.Hour, store.Failed: time.Second}}}
	now := time.Now()
	for _, c := range []struct {
		workflow string
		status   store.Status
		kept     time.Duration // zero: for ever
	}{
		{"order", store.Completed, time.Hour},
		{"order", store.Failed, store.MinRetention},
		{"order", store.Cancelled, 0},
		{"other", store.Completed, 0},
	} {
		cutoff, deletes := p.deletionCutoff(&store.EndedRoot{Workflow: c.workflow, Status: c.status}, now)
		if deletes != (c.kept > 0) || deletes && !cutoff.Equal(now.Add(-c.kept)) {
			t.Errorf("%+v: kept for %v, deleted: %v", c, now.Sub(cutoff), deletes)
		}
	}
	if (&Policy{}).isEnabled() || !p.isEnabled() || p.shortestPeriod() != time.Second {
		t.Errorf("the shortest period is %v", p.shortestPeriod())
	}
}
