package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// A choice with losers that sleep, receive, compensate, have children, branches and Maps, with a crash at
// each write: between the choice and the cancel of the children too.
func TestCrashOfLosers(t *testing.T) {
	t.Parallel()
	grandchild := durable.Define("grandchild", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Compensate("unmake", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		if _, err := step(c, "make", 1); err != nil {
			return 0, err
		}
		return c.Child("grandchild", grandchild, 0)
	})
	for name, end := range map[string]func(c *durable.Ctx, lost string) (string, error){
		"completes": func(_ *durable.Ctx, lost string) (string, error) { return lost, nil },
		"fails":     func(*durable.Ctx, string) (string, error) { return "", errors.New("no luck") },
	} {
		w := durable.Define(name, func(c *durable.Ctx, _ int) (string, error) {
			undo := func(context.Context) error { return nil }
			slow := c.Go("slow", func(c *durable.Ctx) (int, error) {
				if err := c.Compensate("undo", undo); err != nil {
					return 0, err
				}
				if _, err := c.Map("items", []int{1, 2}, func(_ context.Context, i int) (int, error) { return i, nil }, durable.Parallel(1)); err != nil {
					return 0, err
				}
				kid, err := c.StartChild("kid", child, 0)
				if err != nil {
					return 0, err
				}
				if err := c.Compensate("undo the kid", undo); err != nil {
					return 0, err
				}
				sleeper := c.Go("sleeper", func(c *durable.Ctx) (int, error) {
					if err := c.Sleep("two days", 2*day); err != nil {
						return 0, err
					}
					return step(c, "awake", 1)
				})
				got, err := c.Receive[int]("approval", durable.Within(3*day))
				if err != nil {
					return 0, err
				}
				n, err := kid.Wait()
				if err != nil {
					return 0, err
				}
				m, err := sleeper.Wait()
				return got + n + m, err
			})
			quick := c.Go("quick", func(c *durable.Ctx) (int, error) { return 1, c.Sleep("a day", day) })
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
				return "", err
			}
			_, before := slow.Wait()
			got, err := c.Receive[int]("approval") // comes when all that the loser waited for is over
			if err != nil {
				return "", err
			}
			_, after := slow.Wait()
			return end(c, fmt.Sprint(got, errors.Is(before, durable.ErrCancelled), errors.Is(after, durable.ErrCancelled)))
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			durabletest.CrashEverywhere(t, w, 0, durabletest.Workflows(child, grandchild), durabletest.SignalAfter(10*day, "approval", 7))
		})
	}
}

// Choices in branches that another choice ends.
func TestCrashOfNestedChoices(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		race := func(name string, inner, outer time.Duration) *durable.Future[int] {
			return c.Go(name, func(c *durable.Ctx) (int, error) {
				wait := func(name string, d time.Duration) *durable.Future[int] {
					return c.Go(name, func(c *durable.Ctx) (int, error) {
						if _, err := c.StartChild("kid", child, 0); err != nil {
							return 0, err
						}
						if err := c.Sleep("wait", d); err != nil {
							return 0, err
						}
						return step(c, "one", 1)
					})
				}
				if _, _, err := durable.Any(c, "first", durable.CancelLosers, wait("long", 30*day), wait("short", inner)); err != nil {
					return 0, err
				}
				if err := c.Sleep("more", outer); err != nil {
					return 0, err
				}
				return step(c, "two", 2)
			})
		}
		which, err := durable.Quorum(c, "race", 1, durable.CancelLosers, race("chosen", day, 9*day), race("wins", day, day))
		if err != nil {
			return "", err
		}
		if err := c.Sleep("long", 100*day); err != nil {
			return "", err
		}
		return fmt.Sprint(which), nil
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.Workflows(child))
}
