package durable_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
)

// cutOff is a store whose process loses the database when the reply to the commit of a child's start is due.
type cutOff struct {
	durable.Store
	cut  atomic.Bool
	once atomic.Bool
	off  chan struct{}
}

func (s *cutOff) away() error {
	if s.cut.Load() {
		return store.ErrUnavailable
	}
	return nil
}

func (s *cutOff) Commit(ctx context.Context, b *store.Batch) error {
	if err := s.away(); err != nil {
		return err
	}
	err := s.Store.Commit(ctx, b)
	for _, start := range b.Starts {
		if err == nil && start.Run.Parent.Valid && !s.once.Swap(true) {
			s.cut.Store(true)
			close(s.off)
			return store.ErrUnavailable
		}
	}
	return err
}

func (s *cutOff) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	if err := s.away(); err != nil {
		return store.RenewResult{}, err
	}
	return s.Store.RenewLeases(ctx, h)
}

func (s *cutOff) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	if err := s.away(); err != nil {
		return store.ClaimResult{}, err
	}
	return s.Store.Claim(ctx, q)
}

// The slot of a child is released when another process has taken over its parent.
func TestAChildThatAnotherWorkerClaimsReleasesItsSlot(t *testing.T) {
	besideOthers(t)
	file := filepath.Join(t.TempDir(), "durable.db")
	open := func() durable.Store {
		s, err := sqlite.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	child := durable.Define("child", double)
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return c.Child("c", child, n) })
	cut := &cutOff{Store: open(), off: make(chan struct{})}
	cfg := durable.Config{Workflows: []durable.Definition{w, child}, Lease: 300 * time.Millisecond, Grace: time.Minute}
	e1 := engineWith(t, cut, cfg)
	stop := running(t, e1)
	if got, err := child.Call(within(t), e1, 1); got != 2 || err != nil { // when Call returns, the engine's worker is active
		t.Fatal(got, err)
	}
	if _, err := w.Start(within(t), e1, 21, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-cut.off
	e2 := engineWith(t, open(), cfg)
	running(t, e2)
	if !becomes(t, e2, "a", durable.StatusCompleted) {
		t.Fatal("the other process does not take over")
	}
	cut.cut.Store(false)
	for ctx := within(t); e1.Stats().RunsInMemory > 0; { // until the parent has left e1
		if ctx.Err() != nil {
			t.Fatal("the run stays")
		}
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("an engine with no run took %v to drain: a slot is not given back", took)
	}
}

// deafRenewals is a store that fails every heartbeat after the test sets off.
type deafRenewals struct {
	durable.Store
	off atomic.Bool
}

func (s *deafRenewals) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	if s.off.Load() {
		return store.RenewResult{}, store.ErrUnavailable
	}
	return s.Store.RenewLeases(ctx, h)
}

// A process loses a lease, and claims the run again before its renewal loop notices: the new execution completes the run, and the
// step of the old one ends.
func TestSameProcessTakesOver(t *testing.T) {
	s := &deafRenewals{Store: openStore(t)}
	entered, told := make(chan struct{}, 9), make(chan struct{})
	release := make(chan struct{})
	var first atomic.Bool
	first.Store(true)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("a", func(ctx context.Context) (int, error) {
			entered <- struct{}{}
			if !first.Swap(false) {
				return 2, nil
			}
			select {
			case <-ctx.Done():
				close(told)
			case <-release:
			}
			return 1, ctx.Err()
		})
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Lease: 300 * time.Millisecond, Concurrency: 4})
	running(t, e)
	t.Cleanup(func() { close(release) })
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	s.off.Store(true)
	if got, err := run.Result(within(t)); got != 2 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	s.off.Store(false)
	select {
	case <-told:
	case <-within(t).Done():
		t.Error("the run has been executed anew and has ended, and the step of the ownership before still goes on")
	}
}

// A parent that waits for its child must not get a failure when the store is closed.
func TestAClosedStoreCompensatesNothing(t *testing.T) {
	besideOthers(t)
	s := openFile(t)
	child := durable.Define("child", double)
	var undone atomic.Int32
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		if err := c.Do("book", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		if err := c.Compensate("unbook", func(context.Context) error { undone.Add(1); return nil }); err != nil {
			return 0, err
		}
		c.Go("tick", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("short", 4*time.Second) }) // keeps the run in memory
		return c.Child("c", child, n, durable.Delay(time.Hour))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, child}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	run, err := w.Start(within(t), e, 1, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(read(e.Tree(within(t), run.ID()))(t).Children) == 1 }) // the parent waits for its child
	_ = s.Close()
	realtime.Pass(500*time.Millisecond, "nothing tells that a compensation does not begin")
	cancel()
	<-done
	if n := undone.Load(); n > 0 {
		t.Errorf("%d compensations of a run that goes on were executed since the store was closed", n)
	}
}
