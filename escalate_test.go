package durable_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// bossStore is a store that rejects starts of the workflow "boss" while it is closed.
type bossStore struct {
	durable.Store
	closed   atomic.Bool
	rejected atomic.Int32
}

func (s *bossStore) Commit(ctx context.Context, b *store.Batch) error {
	if s.closed.Load() && slices.ContainsFunc(b.Starts, func(w *store.StartWrite) bool { return w.Run.Workflow == "boss" }) {
		s.rejected.Add(1)
		return fmt.Errorf("%w: permission denied for table run", store.ErrRejected)
	}
	return s.Store.Commit(ctx, b)
}

// An escalation that the database rejects for longer than Patience holds the run, and is executed when the database accepts it
// again.
func TestEscalationIsMadeWhenTheDatabaseTakesIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		told := make(chan struct{}, 9)
		boss := durable.Define("boss", func(c *durable.Ctx, _ int) (int, error) { told <- struct{}{}; return 0, nil })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Receive[int]("s", durable.Within(10*time.Millisecond), durable.ElseStart(boss, 1))
		})
		r := &bossStore{Store: s}
		r.closed.Store(true)
		e := engineWith(t, r, durable.Config{Workflows: []durable.Definition{w, boss}, Patience: 100 * time.Millisecond})
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("w"))
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return read(e.Get(within(t), "w"))(t).Reason != "" })
		r.closed.Store(false)
		select {
		case <-told:
		case <-within(t).Done():
			t.Fatalf("nobody was told after %d rejections: %+v", r.rejected.Load(), read(e.Get(within(t), "w"))(t))
		}
		signal(t, e, run.ID(), "s", 7)
		if got, err := run.Result(within(t)); got != 7 || err != nil || len(told) != 0 {
			t.Errorf("got %d, %v; told %d more times", got, err, len(told))
		}
	})
}

// heldFind is a store that withholds the query for the run "boss".
type heldFind struct {
	durable.Store
	gate
	on atomic.Bool
}

func (s *heldFind) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if len(refs) == 1 && refs[0].UUIDOrName == "boss" && s.on.Swap(false) {
		if err := s.pass(ctx); err != nil {
			return nil, err
		}
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
}

// If a choice ends a branch while an escalation of it is under way, the choice is recorded, and the escalation has no effect.
func TestEscalationOfAnEndedBranchIsNotMade(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		h := &heldFind{Store: s, gate: newGate()}
		boss := durable.Define("boss", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("late") })
		win, chosen := make(chan struct{}), make(chan struct{})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			a := c.Go("a", func(c *durable.Ctx) (int, error) {
				return c.Receive[int]("s", durable.Within(time.Millisecond), durable.ElseSignal("boss", "late", 1))
			})
			b := c.Go("b", func(c *durable.Ctx) (int, error) { <-win; return 2, nil })
			_, got, err := durable.Any(c, "first", durable.CancelLosers, a, b)
			close(chosen)
			return got, err
		})
		e := engineOn(t, h, w)
		running(t, e)
		if _, err := boss.Start(within(t), e, 0, durable.ID("boss")); err != nil { // no worker executes it
			t.Fatal(err)
		}
		h.on.Store(true)
		run, err := w.Start(within(t), e, 0, durable.ID("w"))
		if err != nil {
			t.Fatal(err)
		}
		<-h.entered
		close(win)
		<-chosen
		close(h.open)
		if got, err := run.Result(within(t)); got != 2 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if told := read(e.Get(within(t), "boss"))(t).Unreceived; len(told) != 0 {
			t.Errorf("told after the choice: %v", told)
		}
	})
}

// A wait escalates in each generation of a run that continues as new, and again if a repair makes the run wait again.
func TestAWaitThatIsMadeAgainEscalatesAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for _, how := range []string{"start", "signal"} {
			ctx := within(t)
			told := make(chan int, 10)
			alarm := durable.Define("alarm-"+how, func(c *durable.Ctx, n int) (int, error) { told <- n; return n, nil })
			boss := durable.Define("boss-"+how, func(c *durable.Ctx, _ int) (int, error) {
				for i := range 3 {
					n, err := c.Receive[int](fmt.Sprint("late ", i), durable.OnSignal("late"))
					if err == nil {
						err = c.Do(fmt.Sprint("note ", i), func(context.Context) error { told <- n; return nil })
					}
					if err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			loop := durable.Define("loop-"+how, func(c *durable.Ctx, n int) (string, error) {
				if err := c.Do("ask", func(context.Context) error { return nil }); err != nil {
					return "", err
				}
				escalation := durable.ElseStart(alarm, n)
				if how == "signal" {
					escalation = durable.ElseSignal("boss-"+how, "late", n)
				}
				got, err := c.Receive[string]("approved", durable.Within(0), escalation)
				if err != nil || n == 2 {
					return got, err
				}
				return "", c.ContinueAsNew(n + 1)
			})
			e := engineOn(t, s, loop, boss, alarm)
			stop := running(t, e)
			orFail(boss.Start(ctx, e, 0, durable.ID("boss-"+how)))(t)
			run := orFail(loop.Start(ctx, e, 1, durable.ID(how)))(t)
			want := func(n int, what string) {
				t.Helper()
				select {
				case got := <-told:
					if got != n {
						t.Errorf("%s, %s: generation %d escalated, want %d", how, what, got, n)
					}
				case <-ctx.Done():
					t.Errorf("%s: no escalation %s", how, what)
				}
				awaitStatus(t, e, how, durable.StatusWaiting)
			}
			want(1, "in the first generation")
			signal(t, e, how, "approved", "yes")
			want(2, "in the second generation")
			orFail(e.Fork(ctx, how, durable.From("ask")))(t)
			want(2, "after the fork")
			signal(t, e, how, "approved", "at last")
			if got, err := run.Result(ctx); got != "at last" || err != nil || len(told) != 0 {
				t.Errorf("%s: got %q, %v; escalated %d more times", how, got, err, len(told))
			}
			stop()
		}
	})
}

// ElseStart starts a run only if Singleton, Throttle or Debounce allow it, and the wait goes on in any case.
func TestElseStartHonoursStartKeys(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		alarm := durable.Define("alarm", func(c *durable.Ctx, _ string) (int, error) { return c.Receive[int]("off") })
		options := map[string]durable.StartOption{
			"join": durable.Singleton("join"), "refuse": durable.Singleton("refuse", durable.SingletonRefuse),
			"throttle": durable.Throttle("throttle", 1, time.Hour), "debounce": durable.Debounce("debounce", time.Hour, time.Hour),
		}
		wait := durable.Define("wait", func(c *durable.Ctx, how string) (int, error) {
			return c.Receive[int]("approved", durable.Within(0), durable.ElseStart(alarm, how, options[how], durable.Tag("alarm.how", how)))
		})
		e := engineOn(t, s, wait, alarm)
		running(t, e)
		for how := range options {
			for i := range 3 {
				orFail(wait.Start(within(t), e, how, durable.ID(fmt.Sprint(how, i))))(t)
			}
			for i := range 3 {
				id := fmt.Sprint(how, i)
				waitFor(t, func() bool {
					info := read(e.Get(within(t), id))(t)
					if info.Reason != "" {
						t.Fatalf("%s is held: %s", id, info.Reason)
					}
					return len(info.OpenCalls) == 1 && info.OpenCalls[0].Attempts == 2 // it has escalated
				})
			}
			if started := read(e.List(within(t), durable.Filter{Tag: "alarm.how", TagValue: how}, durable.Page{}))(t); len(started.Runs) != 1 {
				t.Errorf("%s: %d runs were started, want one: %+v", how, len(started.Runs), started.Runs)
			}
			signal(t, e, fmt.Sprint(how, 0), "approved", 1)
			awaitStatus(t, e, fmt.Sprint(how, 0), durable.StatusCompleted)
		}
	})
}
