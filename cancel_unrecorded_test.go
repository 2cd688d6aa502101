package durable_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A cancel executes the compensations that a run has registered, even if the run has recorded nothing and has left memory.
func TestCancelOfARunThatRecordedNoStepCompensates(t *testing.T) {
	for _, what := range []string{"nothing", "a wait", "a sleep", "a signal and a wait", "paused", "its time is over"} {
		t.Run(what, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var undone atomic.Int32
				g, registered := newGate(), make(chan struct{})
				var once sync.Once
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
						return 0, err
					}
					once.Do(func() { close(registered) })
					switch what {
					case "nothing": // a step that took effect, and whose row was not written
						return 0, c.Do("charge", g.pass)
					case "a sleep":
						return 0, c.Sleep("nap", time.Hour)
					case "a signal and a wait":
						if _, err := c.Receive[int]("order"); err != nil {
							return 0, err
						}
					}
					return c.Receive[int]("approval")
				})
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond, Grace: -1})
				stop := running(t, e)
				run, err := w.Start(within(t), e, 0, durable.ID("run"))
				if err != nil {
					t.Fatal(err)
				}
				switch what {
				case "nothing":
					<-g.entered
				case "a signal and a wait":
					if err := e.Signal(within(t), "run", "order", 1); err != nil {
						t.Fatal(err)
					}
					waitFor(t, func() bool {
						info := read(e.Get(within(t), "run"))(t)
						return info.Status == durable.StatusWaiting && len(info.OpenCalls) == 1 && info.OpenCalls[0].Name == "approval"
					})
				case "paused":
					awaitStatus(t, e, "run", durable.StatusWaiting)
					must(t)(e.Pause(within(t), "run"))
				case "its time is over":
					<-registered // however slow the machine is: a run whose function was not called by then has nothing to undo
					if err := e.SetTimeout(within(t), "run", 300*time.Millisecond); err != nil {
						t.Fatal(err)
					}
				default:
					awaitStatus(t, e, "run", durable.StatusWaiting)
				}
				stop()
				want := durable.ErrTimeout
				if what != "its time is over" {
					want = durable.ErrCancelled
					if got := must(t)(e.Cancel(within(t), "run")); !counts(got, 1, 0, 1) {
						t.Errorf("the cancel: %+v, want it requested", got)
					}
				}
				running(t, engineOn(t, s, w))
				if _, err := run.Result(within(t)); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
				if undone.Load() != 1 {
					t.Errorf("what was registered was executed %d times", undone.Load())
				}
			})
		})
	}
}

// The same holds for children that are cancelled by the end of their parent, by a choice of their parent, or by a cancel of the
// child only.
func TestCancelOfAChildThatRecordedNoStepCompensates(t *testing.T) {
	for _, how := range []string{"the parent ends", "a choice", "the tree is cancelled", "the child is terminated"} {
		t.Run(how, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var undone atomic.Int32
				child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) {
					if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
						return 0, err
					}
					return c.Receive[int]("go")
				})
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
					stop := c.Go("stop", func(c *durable.Ctx) (int, error) { return c.Receive[int]("stop") })
					if how != "a choice" {
						if _, err := c.StartChild("kid", child, 0); err != nil {
							return 0, err
						}
						return stop.Wait()
					}
					kid := c.Go("kid", func(c *durable.Ctx) (int, error) { return c.Child("kid", child, 0) })
					if _, _, err := durable.Any(c, "first", durable.CancelLosers, kid, stop); err != nil {
						return 0, err
					}
					return c.Receive[int]("end")
				})
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, child}, ParkAfter: time.Millisecond})
				running(t, e)
				if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
					t.Fatal(err)
				}
				var kid string
				waitFor(t, func() bool {
					if kids := read(e.Tree(within(t), "run"))(t).Children; len(kids) == 1 {
						kid = kids[0].RunID
					}
					return kid != ""
				})
				awaitStatus(t, e, kid, durable.StatusWaiting)
				want := int32(1)
				switch how {
				case "the tree is cancelled":
					must(t)(e.Cancel(within(t), "run"))
				case "the child is terminated":
					must(t)(e.Terminate(within(t), kid))
					want = 0
				default:
					if err := e.Signal(within(t), "run", "stop", 1); err != nil {
						t.Fatal(err)
					}
				}
				awaitStatus(t, e, kid, durable.StatusCancelled)
				if got := undone.Load(); got != want {
					t.Errorf("what the child registered was executed %d times, want %d", got, want)
				}
			})
		})
	}
}
