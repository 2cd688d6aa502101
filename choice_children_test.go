package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// lateOrders is a store that rejects orders until the test permits them, as if the process had died after a choice.
type lateOrders struct {
	durable.Store
	refused atomic.Int32
	open    atomic.Bool
}

func (s *lateOrders) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	if !s.open.Load() {
		s.refused.Add(1)
		return store.ErrUnavailable
	}
	return s.Store.ControlRuns(ctx, o)
}

// If the process ends between the choice and the cancel of the losers' children, the next execution cancels them, even if it
// never reaches the branch.
func TestReloadCancelsLosersChildren(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		s := &lateOrders{Store: inner}
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			begun := make(chan struct{})
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				h, err := c.StartChild("kid", leaf, 0)
				close(begun)
				if err != nil {
					return "", err
				}
				_, err = h.Wait()
				return "", err
			})
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				select {
				case <-begun:
				case <-c.Done():
				}
				return soon(c)
			})
			_, got, err := durable.Any(c, "first", durable.CancelLosers, slow, quick)
			if err != nil {
				return "", err
			}
			_, err = c.Receive[int]("end")
			return got, err
		})
		e := engineOn(t, s, w, leaf)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("p")); err != nil {
			t.Fatal(err)
		}
		awaitCheckpoint(t, e, "p", "first", "completed")
		for ctx := within(t); s.refused.Load() < 3 && ctx.Err() == nil; {
			if _, err := e.Get(ctx, "p"); err != nil {
				t.Fatal(err)
			}
		}
		s.open.Store(true)
		awaitStatus(t, e, kids(t, e, "p")["kid"], durable.StatusCancelled)
		awaitStatus(t, e, "p", durable.StatusWaiting)
	})
}

// heldChild is a store that withholds the commit of a child's start.
type heldChild struct {
	durable.Store
	entered, open chan struct{}
	mu            sync.Mutex
	order         []string
}

func (s *heldChild) Commit(ctx context.Context, b *store.Batch) error {
	for _, x := range b.Starts {
		if x.Run.Parent.Valid {
			s.entered <- struct{}{}
			<-s.open
		}
	}
	err := s.Store.Commit(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range b.Steps {
		if w.Step.Kind == store.KindChild || w.Step.Kind == store.KindChoice {
			s.order = append(s.order, w.Step.Kind.String())
		}
	}
	return err
}

// A choice waits for a child that a loser is just starting, and cancels the child.
func TestChoiceAgainstStartOfAChild(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		s := &heldChild{Store: inner, entered: make(chan struct{}, 10), open: make(chan struct{})}
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		chosen := make(chan struct{}, 10)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				_, err := c.Child("kid", leaf, 0)
				return "", err
			})
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				select {
				case <-s.entered:
				case <-c.Done():
				}
				chosen <- struct{}{}
				return "quick", nil
			})
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
				return "", err
			}
			return c.Receive[string]("end")
		})
		e := engineOn(t, s, w, leaf)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("p")); err != nil {
			t.Fatal(err)
		}
		<-chosen
		close(s.open)
		awaitCheckpoint(t, e, "p", "first", "completed")
		awaitStatus(t, e, kids(t, e, "p")["kid"], durable.StatusCancelled)
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := fmt.Sprint(s.order); got != "[child choice]" {
			t.Errorf("committed in the order %s, want the child before the choice", got)
		}
	})
}

// heldChoice is a store that withholds the commit of a choice.
type heldChoice struct {
	durable.Store
	entered, open chan struct{}
}

func (s *heldChoice) Commit(ctx context.Context, b *store.Batch) error {
	for _, w := range b.Steps {
		if w.Step.Kind == store.KindChoice {
			close(s.entered)
			<-s.open
		}
	}
	return s.Store.Commit(ctx, b)
}

// A loser that is about to start a child while the choice is being committed waits for the commit, and starts no child.
func TestNoChildStartsBesideAChoice(t *testing.T) {
	s := &heldChoice{Store: openStore(t), entered: make(chan struct{}), open: make(chan struct{})}
	leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
	about := make(chan struct{})
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
			<-s.entered
			close(about)
			_, err := c.StartChild("kid", leaf, 0)
			return "", err
		})
		_, got, err := durable.Any(c, "first", durable.CancelLosers, slow, c.Go("quick", soon))
		if err != nil {
			return "", err
		}
		_, err = slow.Wait()
		return fmt.Sprint(got, " ", errors.Is(err, durable.ErrCancelled)), nil
	})
	e := engineOn(t, s, w, leaf)
	go func() {
		<-about
		realtime.Pass(100*time.Millisecond, "the child's start would be on its way then")
		close(s.open)
	}()
	if got, err := w.Call(within(t), e, 0, durable.ID("run")); got != "quick true" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if all := kids(t, e, "run"); len(all) != 0 {
		t.Errorf("the loser has started %v", all)
	}
}
