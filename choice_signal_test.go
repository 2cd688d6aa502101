package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// If a loser received a signal before the choice, its Wait returns the signal, also after a crash.
func TestSignalOfALoserIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var taken, decided atomic.Int32
		received, chosen := make(chan struct{}, 1), make(chan struct{})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			loser := c.Go("loser", func(c *durable.Ctx) (int, error) {
				v, err := c.Receive[int]("order")
				if taken.Add(1) == 1 { // the goroutine is scheduled only after the choice is recorded
					received <- struct{}{}
					<-chosen
				}
				return v, err
			})
			winner := c.Go("winner", func(c *durable.Ctx) (int, error) {
				return c.Step("step", func(context.Context) (int, error) { <-received; return 1, nil })
			})
			k, _, err := durable.Any(c, "first", durable.CancelLosers, loser, winner)
			if err != nil {
				return "", err
			}
			if decided.Add(1) == 1 {
				close(chosen)
			}
			v, err := loser.Wait()
			if err != nil {
				return "", err
			}
			return fmt.Sprint(k, v), c.Do("hold", g.pass)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		signal(t, e, "run", "order", 7)
		<-g.entered
		stop()
		close(g.open)
		running(t, engineOn(t, s, w))
		if got, err := run.Result(within(t)); got != "1 7" || err != nil {
			t.Errorf("got %q, %v; want the winner's place and the signal", got, err)
		}
		if taken.Load() != 2 {
			t.Errorf("the loser came to its signal %d times, want twice", taken.Load())
		}
	})
}

// A loser that a choice ends while it waits receives no signal, whenever the signal arrives. The next receive gets the signal.
func TestSignalAfterAChoiceIsLeftToOthers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		chosen := make(chan struct{})
		choose := sync.OnceFunc(func() { close(chosen) })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			loser := c.Go("loser", func(c *durable.Ctx) (int, error) { return c.Receive[int]("order") })
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, loser, c.Go("winner", two)); err != nil {
				return "", err
			}
			choose()
			_, lost := loser.Wait()
			v, err := c.Receive[int]("again", durable.OnSignal("order"))
			return fmt.Sprint(v, errors.Is(lost, durable.ErrCancelled)), err
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-chosen // a run that is slow to begin its step may wait, and leave memory, before the choice
		awaitStatus(t, e, "run", durable.StatusWaiting)
		signal(t, e, "run", "order", 7)
		if got, err := run.Result(within(t)); got != "7 true" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func two(c *durable.Ctx) (int, error) {
	return c.Step("done", func(context.Context) (int, error) { return 2, nil })
}

// The Wait of a loser that makes a further call after the choice returns ErrCancelled, even if the branch ignores the call's
// error.
func TestLoserThatGoesOnIsCancelled(t *testing.T) {
	s := openStore(t)
	chosen := make(chan struct{})
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		loser := c.Go("loser", func(c *durable.Ctx) (int, error) {
			<-chosen
			_ = c.Do("more", func(context.Context) error { return nil })
			return 5, nil
		})
		if _, _, err := durable.Any(c, "first", durable.CancelLosers, loser, c.Go("winner", two)); err != nil {
			return 0, err
		}
		close(chosen)
		v, err := loser.Wait()
		if !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the loser: %d, %v", v, err)
		}
		return v, nil
	})
	if got, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("run")); got != 0 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// A loop that chooses between signals and a timer, and checks the result of every branch in each round, receives every signal.
func TestSelectorLoopLosesNoSignal(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, n int) (got []int, err error) {
			for i := 0; len(got) < n; i++ {
				var all []*durable.Future[int]
				for _, name := range []string{"a", "b"} {
					all = append(all, c.Go(fmt.Sprint(name, i), func(c *durable.Ctx) (int, error) { return c.Receive[int](name) }))
				}
				all = append(all, c.Go(fmt.Sprint("timer", i), func(c *durable.Ctx) (int, error) { return -1, c.Sleep("nap", time.Hour) }))
				if _, _, err := durable.Any(c, fmt.Sprint("next", i), durable.CancelLosers, all...); err != nil {
					return nil, err
				}
				for _, f := range all {
					switch v, err := f.Wait(); {
					case errors.Is(err, durable.ErrCancelled) && c.Err() == nil:
					case err != nil:
						return nil, err
					default:
						got = append(got, v)
					}
				}
			}
			return got, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		const n = 40
		run, err := w.Start(within(t), e, 2*n, durable.ID("run"), durable.Delay(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for i := range n {
			signal(t, e, "run", "a", i)
			signal(t, e, "run", "b", n+i)
			want = append(want, i, n+i)
		}
		got, err := run.Result(within(t))
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("received %d of %d signals: %v, %v; unreceived %v", len(got), len(want), got, err, read(e.Get(within(t), "run"))(t).Unreceived)
		}
	})
}
