package durable_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/store"
)

// If a signal races the end of a wait's time, exactly one of both ends the wait.
func TestSignalAgainstTimeout(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			got, err := c.Receive[string]("go", durable.Within(30*time.Millisecond), durable.Else("late"))
			if err != nil || got != "late" {
				return got, err
			}
			// A signal that arrived too late is kept.
			again, err := c.Receive[string]("again", durable.OnSignal("go"))
			return got + ", then " + again, err
		})
		e, client := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		const n = 100
		runs := make([]*durable.Run[string], n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				run, err := w.Start(within(t), e, 0)
				if err != nil {
					t.Error(err)
					return
				}
				runs[i] = run
				realtime.Pass(time.Duration(15+i%30)*time.Millisecond, "each signal meets another moment of its wait")
				if err := client.Signal(within(t), run.ID(), "go", "in time"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		counts := map[string]int{}
		for _, run := range runs {
			got, err := run.Result(within(t))
			if err != nil {
				t.Fatal(err)
			}
			counts[got]++
		}
		t.Logf("%v", counts)
		if counts["in time"]+counts["late, then in time"] != n {
			t.Errorf("got %v", counts)
		}
	})
}

// flakyGet is a store that fails once to find the run "boss", after the test sets fail.
type flakyGet struct {
	durable.Store
	fail atomic.Bool
}

func (s *flakyGet) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if len(refs) == 1 && refs[0].UUIDOrName == "boss" && s.fail.Swap(false) {
		return nil, store.ErrUnavailable
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
}

// A signal that a receive sends when its time is over arrives, also if the store fails once meanwhile.
func TestAnEscalationSurvivesALostConnection(t *testing.T) {
	s := &flakyGet{Store: openStore(t)}
	boss := durable.Define("boss", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("late") })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Receive[int]("go", durable.Within(50*time.Millisecond), durable.ElseSignal("boss", "late", 7))
	})
	e := engineOn(t, s, w, boss)
	running(t, e)
	b, err := boss.Start(within(t), e, 0, durable.ID("boss"))
	if err != nil {
		t.Fatal(err)
	}
	s.fail.Store(true) // the connection breaks once
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Result(within(t)); got != 7 || err != nil {
		t.Errorf("got %d, %v: nobody was told", got, err)
	}
}

// heldCommit is a store that withholds the commit of a signal until its sender has returned.
type heldCommit struct {
	durable.Store
	hold  chan struct{}
	begun chan struct{}
	on    atomic.Bool
}

func (s *heldCommit) Commit(ctx context.Context, b *store.Batch) error {
	if len(b.Signals) > 0 && s.on.Swap(false) {
		close(s.begun)
		<-s.hold
		for range 1000 { // writes the outcome after the sender has returned
			b.Signals[0].Outcome = store.Written
			runtime.Gosched()
		}
	}
	return s.Store.Commit(ctx, b)
}

// If the context of a sender ends, the commit under way still has the signal. The race detector finds memory that both use.
func TestASenderMayLeaveBeforeTheCommit(t *testing.T) {
	s := &heldCommit{Store: openStore(t), hold: make(chan struct{}), begun: make(chan struct{})}
	w := durable.Define("w", double)
	e := engineOn(t, s)
	if _, err := w.Start(within(t), e, 0, durable.ID("a"), durable.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.on.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	var sent sync.WaitGroup
	sent.Go(func() { _ = e.Signal(ctx, "a", "go", 1) })
	<-s.begun
	close(s.hold)
	cancel()
	sent.Wait()
	if err := e.Signal(within(t), "a", "go", 1); err != nil {
		t.Fatal(err)
	}
}
