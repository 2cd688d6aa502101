package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// soon returns the function of a branch that returns at once.
func soon(c *durable.Ctx) (string, error) {
	return c.Step("done", func(context.Context) (string, error) { return "quick", nil })
}

// approvals counts the effects of losers, over all executions of a run.
type approvals struct{ begun, after atomic.Int32 }

// approve waits for a quick branch, and then for a signal. Its result is what it knew of the other branch before and after that
// wait.
func (a *approvals) approve(name string, slow func(*durable.Ctx) (string, error)) *durable.Workflow[int, string] {
	return durable.Define(name, func(c *durable.Ctx, _ int) (string, error) {
		loser, winner := c.Go("slow", slow), c.Go("quick", func(c *durable.Ctx) (string, error) {
			if err := c.Sleep("let the other begin", 30*time.Millisecond); err != nil {
				return "", err
			}
			return soon(c)
		})
		if _, _, err := durable.Any(c, "first", durable.CancelLosers, loser, winner); err != nil {
			return "", err
		}
		_, before := loser.Wait()
		got, err := c.Receive[string]("approval")
		if err != nil {
			return "", err
		}
		_, after := loser.Wait()
		return fmt.Sprint(got, " ", errors.Is(before, durable.ErrCancelled), errors.Is(after, durable.ErrCancelled)), nil
	})
}

// If a choice ended a loser's sleep, the sleep stays ended in a replay after its time is over, and nothing after it is ever
// executed.
func TestEndedBranchStaysEnded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var a approvals
		var wentOn sync.Map // IDs of runs
		w := a.approve("w", func(c *durable.Ctx) (string, error) {
			if err := c.Sleep("nap", time.Second); err != nil {
				return "", err
			}
			wentOn.Store(c.ID(), true)
			return "slow", nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		const n = 10
		var runs []*durable.Run[string]
		for i := range n {
			run, err := w.Start(within(t), e, 0, durable.ID(fmt.Sprint("run-", i)))
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		ended := 0
		for i, run := range runs {
			id := fmt.Sprint("run-", i)
			awaitCheckpoint(t, e, id, "first", "completed")
			awaitStatus(t, e, id, durable.StatusWaiting)
			history := historyOf(t, e, id)
			nap := slices.IndexFunc(history, func(c durable.Checkpoint) bool { return strings.HasSuffix(c.Name, "nap") })
			first := slices.IndexFunc(history, func(c durable.Checkpoint) bool { return c.Name == "first" })
			want := "yes true true"
			isEnded := true
			switch {
			case nap < 0:
			case history[nap].NextAt.After(history[first].EndedAt):
				waitUntil(t, s, history[nap].NextAt.Add(20*time.Millisecond))
			default:
				isEnded, want = false, "yes false false" // on a slow machine the sleep was over before the choice
			}
			signal(t, e, id, "approval", "yes")
			if got, err := run.Result(within(t)); got != want || err != nil {
				t.Errorf("got %q, %v; want %q: the loser to be cancelled before and after", got, err, want)
			}
			if isEnded {
				ended++
				if _, is := wentOn.Load(id); is {
					t.Errorf("the loser of %s went on when its sleep was over", id)
				}
			}
		}
		if ended == 0 {
			t.Errorf("none of %d losers was ended", n)
		}
	})
}

// A branch that a choice has ended does not receive a signal that is sent after the choice, and no step of the branch is executed
// again.
func TestEndedBranchDoesNothingInAReplay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var a approvals
		w := a.approve("w", func(c *durable.Ctx) (string, error) {
			step := c.Go("step", func(c *durable.Ctx) (int, error) {
				return 0, c.Do("hang", func(ctx context.Context) error {
					a.begun.Add(1)
					<-ctx.Done()
					return context.Cause(ctx)
				})
			})
			got, err := c.Receive[string]("approval")
			if err == nil {
				a.after.Add(1)
			}
			_, _ = step.Wait()
			return got, err
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		const n = 30
		for i := range n {
			if _, err := w.Start(within(t), e, 0, durable.ID(fmt.Sprint("run-", i))); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			id := fmt.Sprint("run-", i)
			awaitCheckpoint(t, e, id, "first", "completed")
			awaitStatus(t, e, id, durable.StatusWaiting)
			signal(t, e, id, "approval", "yes")
		}
		for i := range n {
			run, err := w.Handle(within(t), e, fmt.Sprint("run-", i))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := run.Result(within(t)); got != "yes true true" || err != nil {
				t.Errorf("got %q, %v; want the approval", got, err)
			}
		}
		if begun := a.begun.Load(); begun == 0 || begun > n || a.after.Load() != 0 { // a choice may end a branch before its step begins
			t.Errorf("the losers' steps were executed %d times in %d runs, and took %d signals", a.begun.Load(), n, a.after.Load())
		}
	})
}

// kids returns the children that a run has started and not waited for, by the last part of their names.
func kids(t testing.TB, e *durable.Engine, id string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, c := range historyOf(t, e, id) {
		if c.Kind == "child" && (c.Status == "started" || c.Status == "cancelled") {
			all[c.Name[strings.LastIndexAny(c.Name, "/\x1f")+1:]] = strings.Trim(string(c.Output), `"`)
		}
	}
	return all
}

// The children of an ended branch are cancelled: running ones, those that have not begun, those of branches in it, and their own
// children. Detached ones continue.
func TestChildrenOfAnEndedBranch(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		grand := make(chan struct{}) // closed, because another execution of the run waits for it too
		grandBegun := sync.OnceFunc(func() { close(grand) })
		middle := durable.Define("middle", func(c *durable.Ctx, _ int) (int, error) {
			h, err := c.StartChild("grandchild", leaf, 0)
			if err != nil {
				return 0, err
			}
			grandBegun()
			return h.Wait()
		})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			begun := make(chan struct{}, 2)
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				running, err := c.StartChild("runs", middle, 0)
				if err != nil {
					return "", err
				}
				select {
				case <-grand:
				case <-c.Done():
				}
				if _, err := c.StartChild("has not begun", leaf, 0, durable.Delay(time.Hour)); err != nil {
					return "", err
				}
				if _, err := c.StartChild("goes on", leaf, 0, durable.Detached()); err != nil {
					return "", err
				}
				inner := c.Go("inner", func(c *durable.Ctx) (int, error) {
					h, err := c.StartChild("within", leaf, 0)
					if err != nil {
						return 0, err
					}
					begun <- struct{}{}
					return h.Wait()
				})
				if _, err := running.Wait(); err != nil {
					return "", err
				}
				_, err = inner.Wait()
				return "", err
			})
			handed := c.Go("handed", func(c *durable.Ctx) (string, error) {
				_, err := c.StartChild("of a branch that has returned", leaf, 0)
				begun <- struct{}{}
				return "", errors.Join(err, errDeclined)
			})
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				for range 2 {
					select {
					case <-begun:
					case <-c.Done():
						return "", durable.ErrSuspended
					}
				}
				_, _ = handed.Wait()
				return soon(c)
			})
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick, handed); err != nil {
				return "", err
			}
			return c.Receive[string]("end")
		})
		e := engineOn(t, s, w, middle, leaf)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("p"))
		if err != nil {
			t.Fatal(err)
		}
		awaitCheckpoint(t, e, "p", "first", "completed")
		want := map[string]durable.Status{
			"runs": durable.StatusCancelled, "grandchild": durable.StatusCancelled, "has not begun": durable.StatusCancelled, "goes on": durable.StatusWaiting,
			"within": durable.StatusCancelled, "of a branch that has returned": durable.StatusCancelled,
		}
		ids := kids(t, e, "p")
		for name, id := range kids(t, e, ids["runs"]) {
			ids[name] = id
		}
		if len(ids) != len(want) {
			t.Fatalf("got %v", ids)
		}
		for name, status := range want {
			if !becomes(t, e, ids[name], status) {
				t.Errorf("child %q is not %s", name, status)
			}
		}
		awaitStatus(t, e, "p", durable.StatusWaiting)
		info, err := e.Get(within(t), ids["runs"])
		if err != nil || !strings.Contains(info.Err.Message, `its branch was ended by the choice "first" of its parent`) {
			t.Errorf("the child's error is %+v, %v", info.Err, err)
		}
		signal(t, e, ids["goes on"], "go", 1)
		awaitStatus(t, e, ids["goes on"], durable.StatusCompleted)
		signal(t, e, "p", "end", "end")
		if got, err := run.Result(within(t)); got != "end" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
