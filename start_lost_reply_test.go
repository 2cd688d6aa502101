package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// mute is a store that commits a chosen start and loses the reply: it returns an error, or blocks until the test releases it.
// Further commits of the same start fail and write nothing.
type mute struct {
	durable.Store
	chosen func(*store.StartWrite) bool
	hangs  chan struct{} // if not nil, Commit returns when it is closed

	mu    sync.Mutex
	lost  bool
	owned bool // the start assigned the run to this process's worker
	done  chan struct{}
}

func (s *mute) Commit(ctx context.Context, b *store.Batch) error {
	for _, start := range b.Starts {
		if !s.chosen(start) {
			continue
		}
		s.mu.Lock()
		before := s.lost
		s.lost, s.owned = true, s.owned || start.Run.Owner.Valid
		s.mu.Unlock()
		if before {
			return store.ErrUnavailable
		}
		if err := s.Store.Commit(ctx, b); err != nil {
			return err
		}
		close(s.done)
		if s.hangs == nil {
			return store.ErrUnavailable
		}
		<-s.hangs
		return nil
	}
	return s.Store.Commit(ctx, b)
}

// wantNoCrash waits for the run's end, and checks that the database counts no crash of it.
func (s *mute) wantNoCrash(t *testing.T, e *durable.Engine, w *durable.Workflow[int, int], id string, want int) {
	t.Helper()
	run := read(w.Handle(within(t), e, id))(t)
	if v, err := run.Result(within(t)); err != nil || v != want {
		t.Errorf("got %d, %v", v, err)
	}
	info := read(e.Get(within(t), id))(t)
	if info.Crashes != 0 || info.LastLeaseLoss != nil || info.Epoch != 2 {
		t.Errorf("%d crashes, loss %+v, epoch %d; want that it was given back and claimed once", info.Crashes, info.LastLeaseLoss, info.Epoch)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owned {
		t.Error("the start did not make the run its worker's: the fault did not occur")
	}
}

// If the start of a run that its own process was to execute is committed and the reply is lost, the run is released: it is
// executed long before its lease ends, and no crash is counted.
func TestStartsWithoutAReplyAreReleased(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
		for name, hangs := range map[string]chan struct{}{"the reply is lost": nil, "its caller leaves": make(chan struct{})} {
			t.Run(name, func(t *testing.T) {
				id := "r " + name
				s := &mute{Store: inner, hangs: hangs, done: make(chan struct{}), chosen: func(r *store.StartWrite) bool { return r.Run.Name == id }}
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{double}, Lease: time.Hour, Patience: 50 * time.Millisecond})
				running(t, e)
				read(double.Call(within(t), e, 1))(t) // when Call returns, the worker has been active
				ctx, leave := context.WithCancel(within(t))
				if hangs != nil {
					go func() {
						<-s.done
						leave()
					}()
				}
				_, err := double.Start(ctx, e, 21, durable.ID(id))
				leave()
				if failed, ok := errors.AsType[*durable.WriteError](err); !ok || !failed.MayHaveCommitted {
					t.Fatalf("got %v, want that it may have been committed", err)
				}
				if hangs != nil {
					close(hangs)
				}
				s.wantNoCrash(t, e, double, id, 42)
			})
		}
	})
}

// The same holds for a child that its parent's process was to execute.
func TestChildStartsWithoutAReplyAreReleased(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
		ids := make(chan string, 10)
		parent := durable.Define("parent", func(c *durable.Ctx, n int) (int, error) {
			kid, err := c.StartChild("kid", child, n)
			if err != nil {
				return 0, err
			}
			ids <- kid.ID()
			return kid.Wait()
		})
		s := &mute{Store: inner, done: make(chan struct{}), chosen: func(r *store.StartWrite) bool { return r.Run.Parent.Valid }}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{parent, child}, Lease: 3 * time.Second, Patience: 50 * time.Millisecond})
		running(t, e)
		read(child.Call(within(t), e, 1))(t) // when Call returns, the worker has been active
		read(parent.Start(within(t), e, 21, durable.ID("p")))(t)
		s.wantNoCrash(t, e, child, <-ids, 42) // the parent is claimed again when its lease ends
	})
}
