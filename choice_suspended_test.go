package durable_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// haveGoroutine reports whether a goroutine of this process is in all the functions.
func haveGoroutine(functions ...string) bool {
	stacks := make([]byte, 1<<20)
	n := runtime.Stack(stacks, true)
	for ; n == len(stacks); n = runtime.Stack(stacks, true) {
		stacks = make([]byte, 2*len(stacks))
	}
	for stack := range strings.SplitSeq(string(stacks[:n]), "\n\n") {
		if !slices.ContainsFunc(functions, func(f string) bool { return !strings.Contains(stack, f) }) {
			return true
		}
	}
	return false
}

// wantLoserEnded executes the workflow further, and checks that the choice has ended its loser.
func wantLoserEnded(t *testing.T, s durable.Store, w *durable.Workflow[int, string], others ...durable.Definition) {
	t.Helper()
	e := engineOn(t, s, append(others, w)...)
	running(t, e)
	if got, err := w.Call(within(t), e, 0, durable.ID("p")); got != "quick, cancelled" || err != nil {
		t.Errorf("the run returned %q, %v", got, err)
	}
}

// A loser that returned only because the run leaves the process has not come to an end of its own: the next execution ends it, although
// the choice began before the run was suspended.
func TestChoiceOfASuspendedRun(t *testing.T) {
	inner := openStore(t)
	held := &heldChild{Store: inner, entered: make(chan struct{}, 10), open: make(chan struct{})}
	leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
	returned := make(chan struct{}, 10)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		other := c.Go("other", func(c *durable.Ctx) (string, error) {
			err := c.Sleep("long", time.Hour)
			return fmt.Sprint("mine ", err != nil), nil
		})
		go func() {
			_, _ = other.Wait()
			returned <- struct{}{}
		}()
		slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
			if _, err := c.Receive[string]("go"); err != nil {
				return "", err
			}
			_, err := c.Child("kid", leaf, 0)
			return "", err
		})
		quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
			select {
			case <-held.entered:
			case <-held.open: // the next execution
			case <-c.Done():
			}
			return "quick", nil
		})
		return winnerAndLoser(c, other, slow, quick)
	})
	e := engineOn(t, held, w, leaf)
	ctx, shutDown := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	if _, err := w.Start(within(t), e, 0, durable.ID("p")); err != nil {
		t.Fatal(err)
	}
	awaitCheckpoint(t, e, "p", "other/long", "started")
	signal(t, e, "p", "go", "")
	waitFor(t, func() bool { return haveGoroutine("engine.lockLosers", "durable_test.winnerAndLoser") })
	shutDown()
	<-returned
	close(held.open)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantLoserEnded(t, inner, w, leaf)
}

// A loser that returns after the choice has withheld its result is ended, also if the run is suspended before the choice is committed.
func TestRunIsSuspendedWhileItsChoiceIsCommitted(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		held := &heldChoice{Store: inner, entered: make(chan struct{}), open: make(chan struct{})}
		left := make(chan struct{}, 10)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			other := c.Go("other", func(c *durable.Ctx) (string, error) {
				defer func() { left <- struct{}{} }()
				err := c.Sleep("long", time.Hour)
				return fmt.Sprint("mine ", err != nil), nil
			})
			return winnerAndLoser(c, other, c.Go("quick", func(c *durable.Ctx) (string, error) { return c.Receive[string]("go") }))
		})
		e := engineOn(t, held, w)
		ctx, shutDown := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		if _, err := w.Start(within(t), e, 0, durable.ID("p")); err != nil {
			t.Fatal(err)
		}
		awaitCheckpoint(t, e, "p", "other/long", "started")
		signal(t, e, "p", "go", "quick")
		<-held.entered
		shutDown()
		<-left
		close(held.open)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantLoserEnded(t, inner, w)
	})
}

// winnerAndLoser makes a choice, and returns the value of its winner and what became of the first branch.
func winnerAndLoser(c *durable.Ctx, other *durable.Future[string], rest ...*durable.Future[string]) (string, error) {
	_, got, err := durable.Any(c, "first", durable.CancelLosers, append(rest, other)...)
	if err != nil {
		return "", err
	}
	lost, err := other.Wait()
	if errors.Is(err, durable.ErrCancelled) {
		return got + ", cancelled", nil
	}
	return fmt.Sprint(got, ", ", lost, ", ", err), err
}
