package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// says checks that an error wraps the given error, and that its text contains all of the given parts.
func says(t *testing.T, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q does not say %q", what, err, part)
		}
	}
}

// The text of a conflict says whether a start, a signal or a completed wait is in conflict, and at which byte inputs differ.
func TestConflictsSayOfWhat(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		tokens := make(chan string, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ map[string]string) (int, error) {
			a := c.Callback[int]("approval")
			select { // a replay sends no second one
			case tokens <- a.Token():
			default:
			}
			if _, err := a.Wait(); err != nil {
				return 0, err
			}
			return c.Receive[int]("never")
		})
		e := engineOn(t, s, w)
		running(t, e)
		secret := map[string]string{"card": "4111", "holder": "ann"}
		if _, err := w.Start(within(t), e, secret, durable.ID("x")); err != nil {
			t.Fatal(err)
		}
		_, err := w.Start(within(t), e, map[string]string{"card": "4222", "holder": "ann"}, durable.ID("x"))
		says(t, "a start", err, durable.ErrIDConflict, "belongs to another start", "from byte 10 on")
		if strings.Contains(err.Error(), "4222") || strings.Contains(err.Error(), "4111") {
			t.Errorf("%v tells a payload", err)
		}
		if err := e.Signal(within(t), "x", "s", 1, durable.SignalKey("k")); err != nil {
			t.Fatal(err)
		}
		token := <-tokens
		if err := e.Complete(within(t), token, 1); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			`signal "s" with key "k"`: e.Signal(within(t), "x", "s", 2, durable.SignalKey("k")),
			`wait "approval"`:         e.Complete(within(t), token, 2),
		} {
			says(t, what, err, durable.ErrIDConflict, what)
			if strings.Contains(err.Error(), "another start") {
				t.Errorf("%v speaks of a start", err)
			}
		}
	})
}

// Both stores refuse a wait with an invalid name, in Wait and in Complete.
func TestWaitsHaveNames(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		tokens := make(chan string, 3)
		names := []string{"\x00", "\xff", strings.Repeat("n", durable.MaxNameBytes+1)}
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for _, name := range names {
				a := c.Callback[int](name)
				tokens <- a.Token()
				if _, err := a.Wait(durable.Within(0)); !errors.Is(err, durable.ErrInvalidName) {
					return 0, fmt.Errorf("a wait called %.20q: %w", name, err)
				}
			}
			return c.Receive[int]("never")
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		for range names {
			if err := e.Complete(within(t), <-tokens, 1); !errors.Is(err, durable.ErrInvalidName) {
				t.Errorf("a token of a wait without a proper name: %v", err)
			}
		}
		if err := e.Signal(within(t), "x", "never", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestTextsNameTheFix(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
	e := engineOn(t, s, w)
	_, err := e.List(within(t), durable.Filter{Status: []durable.Status{"done"}}, durable.Page{})
	says(t, "a status", err, durable.ErrInvalidConfig, `"done"`, "pending, running, waiting, paused, completed, failed, cancelled, expired")
	_, err = w.Start(within(t), e, 0, durable.Tag("a.b", ""))
	says(t, "a tag's value", err, durable.ErrInvalidName, `the value of the tag "a.b" is empty`)
	for _, url := range []string{"postgres://ann:secret@db/app", "postgresql://ann:secret@db/app"} {
		_, err = sqlite.Open(url)
		var refused *sqlite.OpenError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "postgres.Open") || strings.Contains(fmt.Sprintf("%v %+v", err, refused), "secret") {
			t.Errorf("sqlite.Open of a URL: %v", err)
		}
	}
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		_, _, err := durable.Any[int](c, "a", durable.KeepLosers)
		return 0, err
	})
	says(t, "a choice", err, durable.ErrInvalidConfig, "1 of 0 branches", "pass as many")
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		return c.Go("a", func(*durable.Ctx) (int, error) { panic("no") }).Wait()
	})
	says(t, "a branch", err, durable.ErrPanic, `branch "a" failed: panic`)
}

// The error of a Map with Collect contains the first failures and the number of the others. errors.Is finds all of them.
func TestManyErrorsAreCounted(t *testing.T) {
	last := errors.New("the last one")
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		_, err := c.Map("m", make([]int, 50), func(ctx context.Context, _ int) (int, error) { return 0, errDeclined }, durable.Collect())
		if lines := strings.Count(err.Error(), "\n") + 1; lines != 4 || !strings.Contains(err.Error(), "and 47 more") || !errors.Is(err, errDeclined) {
			return 0, fmt.Errorf("%d lines: %w", lines, err)
		}
		branches := make([]*durable.Future[int], 9)
		for i := range branches {
			branches[i] = c.Go(fmt.Sprint(i), func(*durable.Ctx) (int, error) {
				if i == 8 {
					return 0, last
				}
				return 0, errDeclined
			})
		}
		if _, err := durable.All(branches...); strings.Count(err.Error(), "\n") != 3 || !errors.Is(err, last) {
			return 0, fmt.Errorf("of branches: %w", err)
		}
		two := func(i int) (int, error) {
			_, err := c.Map(fmt.Sprint("two", i), make([]int, i), func(context.Context, int) (int, error) { return 0, errDeclined }, durable.Collect())
			return strings.Count(err.Error(), "\n"), err
		}
		if n, err := two(3); n != 2 || strings.Contains(err.Error(), "more") {
			return 0, fmt.Errorf("three errors: %w", err)
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
}
