package faults

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

const (
	eachChildren = 6
	eachPoints   = 48 // more than the points of one run of the graph
)

// deadly is a store whose process dies at a point: before or after a call that a run makes, counted from the first one.
type deadly struct {
	durable.Store
	point int64
	trips atomic.Int64
}

func (s *deadly) trip() {
	if s.trips.Add(1) == s.point {
		die()
	}
}

func (s *deadly) within(call func() error) error {
	s.trip()
	err := call()
	s.trip()
	return err
}

func (s *deadly) Commit(ctx context.Context, b *store.Batch) error {
	return s.within(func() error { return s.Store.Commit(ctx, b) })
}

func (s *deadly) SetAwaitedChildEnds(ctx context.Context, w *store.SetAwaitedChildEndsRequest) error {
	return s.within(func() error { return s.Store.SetAwaitedChildEnds(ctx, w) })
}

func (s *deadly) Statuses(ctx context.Context, runs []store.UUID) (statuses []store.Status, err error) {
	err = s.within(func() (err error) {
		statuses, err = s.Store.Statuses(ctx, runs)
		return err
	})
	return statuses, err
}

func (s *deadly) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	claims, err := s.Store.Claim(ctx, q)
	if len(claims.Runs) > 0 {
		s.trip()
	}
	return claims, err
}

// family returns a graph with an EachChild, and the workflow of its children. They sleep, so that their parent leaves memory.
func family(l ledger) (parent, kid *durable.Workflow[int, int]) {
	kid = durable.Define("kid", func(c *durable.Ctx, n int) (int, error) {
		if err := c.Sleep("pause", time.Duration(100+20*n)*time.Millisecond); err != nil {
			return 0, err
		}
		return c.Step("step", func(ctx context.Context) (int, error) {
			l.did(ctx, c.ID(), "step")
			return n, nil
		})
	})
	return durable.DefineGraph("parent", func(g *durable.Graph[int]) *durable.Node[int] {
		list := g.Step("list", func(_ context.Context, in *durable.NodeInput) ([]int, error) {
			items := make([]int, g.Input(in))
			for i := range items {
				items[i] = i
			}
			return items, nil
		})
		kids := g.EachChild("kids", list, kid)
		return g.Step("sum", func(_ context.Context, in *durable.NodeInput) (sum int, err error) {
			for _, n := range kids.Of(in) {
				sum += n
			}
			return sum, nil
		}, durable.Needs(kids))
	}), kid
}

func init() {
	// each starts a run of the graph, executes it and the children, and dies at point N. If it has no such point, it says so.
	scenarios["each"] = func(ctx context.Context, j *job, s durable.Store) error {
		d := &deadly{Store: s, point: j.N}
		w, kid := family(j.Ledger)
		e, err := durable.New(d, durable.Config{Workflows: []durable.Definition{w, kid}, Lease: time.Second, Poll: 20 * time.Millisecond, ParkAfter: time.Millisecond})
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _ = e.Run(ctx) }()
		run, err := w.Start(ctx, e, eachChildren, durable.ID(j.ID))
		if err != nil {
			return err
		}
		_, err = run.Result(ctx)
		say("ended", err)
		die()
		return nil
	}
}

// Row 58: a process that executes a parent of many children, and some of the children, is killed before and after each call of the
// store. No end is lost: the parent ends soon after its last child, and not only because it looks at its children each minute.
func TestRow58_DeathBetweenTheEndsOfChildren(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s, l := db.openIn(t), newLedger(t)
		w, kid := family(l)
		e := engineOn(t, s, durable.Config{Lease: time.Second, Poll: 20 * time.Millisecond, ParkAfter: time.Millisecond}, w, kid)
		defer runEngine(t, e)()
		deaths, whole, longest := 0, 0, time.Duration(0)
		for point := int64(1); point < eachPoints; point += int64(testsize.Of(1, 4)) {
			id := fmt.Sprint("parent-", point)
			p := spawn(t, job{Scenario: "each", DB: db, ID: id, Ledger: l, N: point})
			_, told := p.next("ended")
			p.mustBeKilled(syscall.SIGKILL)
			if _, err := w.Start(bounded(t), e, eachChildren, durable.ID(id)); err != nil { // unless it died before its start
				t.Fatal(err)
			}
			sum, err := result(t, e, w, id)
			if err != nil || sum != eachChildren*(eachChildren-1)/2 {
				t.Errorf("point %d: the sum is %d, error %v", point, sum, err)
			}
			tree, err := e.Tree(bounded(t), id)
			must(t, "tree", err)
			last := time.Time{}
			for _, child := range tree.Children {
				if child.Status != durable.StatusCompleted {
					t.Errorf("point %d: a child is %s", point, child.Status)
				}
				if child.EndedAt.After(last) {
					last = child.EndedAt
				}
				if n := len(l.of(t, child.ID, "step")); n == 0 || n > 2 {
					t.Errorf("point %d: the step of a child was executed %d times", point, n)
				}
			}
			if after := tree.EndedAt.Sub(last); after > store.MaxParentWakeDelay/2 || len(tree.Children) != eachChildren {
				t.Errorf("point %d: the parent of %d children ended %v after the last one", point, len(tree.Children), after)
			} else {
				longest = max(longest, after)
			}
			if told {
				whole++
			} else {
				deaths++
			}
		}
		if deaths < 5 {
			t.Errorf("only %d processes died", deaths)
		}
		t.Logf("deaths=%d whole=%d longest_after_the_last_child=%v", deaths, whole, longest)
	})
}
