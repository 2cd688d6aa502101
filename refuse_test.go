package durable_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// Invalid calls return errors that name what is invalid, and record nothing.
func TestWrongCalls(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	one := func(_ context.Context, i int) (int, error) { return i, nil }
	for name, c := range map[string]struct {
		do   func(*durable.Ctx) error
		want error
		text string
	}{
		"name twice": {func(c *durable.Ctx) error {
			if err := c.Do("send", nothing); err != nil {
				return err
			}
			return c.Do("send", nothing)
		}, durable.ErrDuplicateStep, `"send" in run "run" (refuse_test.go:`},
		"nested": {func(c *durable.Ctx) error {
			return c.Do("outer", func(context.Context) error { return c.Do("inner", nothing) })
		}, durable.ErrNestedStep, `"inner"`},
		"nested with a timeout": {func(c *durable.Ctx) error {
			return c.Do("outer", func(context.Context) error { return c.Do("inner", nothing) }, durable.AttemptTimeout(time.Minute))
		}, durable.ErrNestedStep, `"inner"`},
		"nested compensation": {func(c *durable.Ctx) error {
			return c.Do("outer", func(context.Context) error { return c.Compensate("inner", nothing) })
		}, durable.ErrNestedStep, `"inner"`},
		"nested branch": {func(c *durable.Ctx) error {
			return c.Do("outer", func(context.Context) error {
				_, err := c.Go("inner", func(*durable.Ctx) (int, error) { return 0, nil }).Wait()
				return err
			})
		}, durable.ErrNestedStep, `"inner"`},
		"nested map": {func(c *durable.Ctx) error {
			return c.Do("outer", func(context.Context) error {
				_, err := c.Map("inner", []int{1}, one)
				return err
			})
		}, durable.ErrNestedStep, `"inner"`},
		"empty name":   {func(c *durable.Ctx) error { return c.Do("", nothing) }, durable.ErrInvalidName, "empty"},
		"NUL in name":  {func(c *durable.Ctx) error { return c.Do("a\x00b", nothing) }, durable.ErrInvalidName, "U+0000"},
		"bad UTF-8":    {func(c *durable.Ctx) error { return c.Do("a\xff", nothing) }, durable.ErrInvalidName, "UTF-8"},
		"long name":    {func(c *durable.Ctx) error { return c.Do(strings.Repeat("x", 64<<10), nothing) }, durable.ErrInvalidName, "65536 bytes"},
		"bad timeout":  {func(c *durable.Ctx) error { return c.Do("a", nothing, durable.AttemptTimeout(-1)) }, durable.ErrInvalidConfig, "AttemptTimeout"},
		"bad total":    {func(c *durable.Ctx) error { return c.Do("a", nothing, durable.TotalTimeout(0)) }, durable.ErrInvalidConfig, "TotalTimeout"},
		"bad attempts": {func(c *durable.Ctx) error { return c.Do("a", nothing, durable.Retry(durable.Fixed(0, -1))) }, durable.ErrInvalidConfig, "attempts"},
		"once and retry": {func(c *durable.Ctx) error {
			return c.Do("a", nothing, durable.AtMostOnce(), durable.Retry(durable.Fixed(0, 2)))
		}, durable.ErrInvalidConfig, "AtMostOnce"},
		"foreign Verify": {func(c *durable.Ctx) error {
			return c.Do("a", nothing, durable.Verify(func(context.Context) (int, bool, error) { return 0, false, nil }))
		}, durable.ErrInvalidConfig, "Verify"},
		"no Verify": {func(c *durable.Ctx) error {
			return c.Do("a", nothing, durable.Verify[struct{}](nil))
		}, durable.ErrInvalidConfig, "Verify"},
		"no step": {func(c *durable.Ctx) error {
			_, err := c.Step[int]("a", nil, durable.Retry(durable.Fixed(0, 5)))
			return err
		}, durable.ErrInvalidConfig, `step "a" has no function`},
		"nothing to do":      {func(c *durable.Ctx) error { return c.Do("a", nil) }, durable.ErrInvalidConfig, `step "a" has no function`},
		"nothing to undo by": {func(c *durable.Ctx) error { return c.Compensate("a", nil) }, durable.ErrInvalidConfig, `"a" has no function`},
		"no branch": {func(c *durable.Ctx) error {
			_, err := c.Go[int]("a", nil).Wait()
			return err
		}, durable.ErrInvalidConfig, `branch "a" has no function`},
		"no function for items": {func(c *durable.Ctx) error {
			_, err := c.Map[int, int]("a", []int{1}, nil)
			return err
		}, durable.ErrInvalidConfig, `map "a" has no function`},
		"no key": {func(c *durable.Ctx) error {
			_, err := c.Map("a", []int{1}, one, durable.Key[int](nil))
			return err
		}, durable.ErrInvalidConfig, "Key"},
		"one key twice": {func(c *durable.Ctx) error {
			_, err := c.Map("a", []int{1, 2}, func(context.Context, int) (int, error) { panic("it runs") }, durable.Key(func(int) string { return "same" }), durable.Collect())
			return err
		}, durable.ErrDuplicateStep, `items 0 and 1 of map "a"`},
		"a child of nothing": {func(c *durable.Ctx) error {
			var w *durable.Workflow[int, int]
			_, err := c.Child("a", w, 1)
			return err
		}, durable.ErrInvalidConfig, "Define"},
		"the end of time": {func(c *durable.Ctx) error {
			return c.SleepUntil("a", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
		}, durable.ErrInvalidConfig, "9999"},
		"the other store's transaction": {func(c *durable.Ctx) error {
			_, err := postgres.Tx(c, "a", func(context.Context, pgx.Tx) (int, error) { return 0, nil }, durable.Retry(durable.Fixed(time.Hour, 5)))
			return err
		}, durable.ErrInvalidConfig, "store"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, func(ctx *durable.Ctx, _ int) (int, error) { return 0, c.do(ctx) })
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
}

// The error for a name that is used twice contains both places in the user's code, for every kind of call.
func TestDuplicateNamesHavePlaces(t *testing.T) {
	child := durable.Define("child", func(_ *durable.Ctx, i int) (int, error) { return i, nil })
	branches := 0
	one := func(_ context.Context, i int) (int, error) { return i, nil }
	for name, do := range map[string]func(*durable.Ctx) error{
		"Step": func(c *durable.Ctx) error {
			_, err := c.Step("a", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"Do":         func(c *durable.Ctx) error { return c.Do("a", func(context.Context) error { return nil }) },
		"Compensate": func(c *durable.Ctx) error { return c.Compensate("a", func(context.Context) error { return nil }) },
		"Sleep":      func(c *durable.Ctx) error { return c.Sleep("a", 0) },
		"SleepUntil": func(c *durable.Ctx) error { return c.SleepUntil("a", time.Unix(0, 0)) },
		"Receive": func(c *durable.Ctx) error {
			_, err := c.Receive[int]("a", durable.Within(0), durable.Else(1))
			return err
		},
		"Callback": func(c *durable.Ctx) error {
			_, err := c.Callback[int]("a").Wait(durable.Within(0), durable.Else(1))
			return err
		},
		"Go": func(c *durable.Ctx) error {
			_, err := c.Go("a", func(*durable.Ctx) (int, error) { return 1, nil }).Wait()
			return err
		},
		"Map":   func(c *durable.Ctx) error { _, err := c.Map("a", []int{1}, one); return err },
		"Child": func(c *durable.Ctx) error { _, err := c.Child("a", child, 1); return err },
		"StartChild": func(c *durable.Ctx) error {
			h, err := c.StartChild("a", child, 1)
			if err == nil {
				_, err = h.Wait()
			}
			return err
		},
		"Any": func(c *durable.Ctx) error {
			branches++
			_, _, err := durable.Any(c, "a", durable.KeepLosers, c.Go(fmt.Sprint("branch", branches), func(*durable.Ctx) (int, error) { return 1, nil }))
			return err
		},
		"sqlite.Tx": func(c *durable.Ctx) error {
			_, err := sqlite.Tx(c, "a", func(context.Context, *sql.Tx) (int, error) { return 1, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
				if err := do(c); err != nil {
					return 0, fmt.Errorf("the first call: %w", err)
				}
				return 0, do(c)
			})
			_, err := w.Call(within(t), engineOn(t, openStore(t), w, child), 0)
			if !errors.Is(err, durable.ErrDuplicateStep) || strings.Count(err.Error(), "refuse_test.go:") != 2 || strings.Contains(err.Error(), "the first call") {
				t.Errorf("got %v, want ErrDuplicateStep with two places in refuse_test.go", err)
			}
		})
	}
}

// A workflow that Define has not created returns an error wherever it is passed.
func TestUndefinedWorkflows(t *testing.T) {
	s := openStore(t)
	for name, w := range map[string]*durable.Workflow[int, int]{"nil": nil, "empty": new(durable.Workflow[int, int])} {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
		if !errors.Is(err, durable.ErrInvalidConfig) || e != nil {
			t.Errorf("New with one that is %s: %v", name, err)
		}
		if e, err = durable.New(s, durable.Config{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(within(t), e, 1); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("start of one that is %s: %v", name, err)
		}
		if _, err := w.Call(within(t), e, 1); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("call of one that is %s: %v", name, err)
		}
		if _, err := w.StartMany(within(t), e, []durable.StartItem[int]{{Input: 1}}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("many starts of one that is %s: %v", name, err)
		}
	}
}

// writeOnly has an encoding of its own, and no decoding.
type writeOnly int

func (writeOnly) MarshalJSON() ([]byte, error) { return []byte(`"one"`), nil }

// A value that encodes and does not decode again is refused before it is written.
func TestValuesThatNeverDecode(t *testing.T) {
	type holder struct{ S fmt.Stringer }
	in := durable.Define("in", func(*durable.Ctx, holder) (int, error) { return 0, nil })
	out := durable.Define("out", func(*durable.Ctx, int) (holder, error) { return holder{time.Second}, nil })
	e := engineOn(t, openStore(t), in, out)
	if _, err := in.Start(within(t), e, holder{time.Second}, durable.ID("in")); !errors.Is(err, durable.ErrNotEncodable) {
		t.Errorf("an input: %v", err)
	}
	if _, err := e.Get(within(t), "in"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("the run that cannot begin: %v", err)
	}
	var failed *durable.RunError
	if _, err := out.Call(within(t), e, 0); !errors.Is(err, durable.ErrNotEncodable) || !errors.As(err, &failed) || failed.Status != durable.StatusFailed {
		t.Errorf("an output: %v", err)
	}
	odd := durable.Define("odd", func(*durable.Ctx, []map[string]writeOnly) (int, error) { return 0, nil })
	if _, err := odd.Start(within(t), e, []map[string]writeOnly{{"a": 1}}); !errors.Is(err, durable.ErrNotEncodable) {
		t.Errorf("an input that writes itself, and does not read: %v", err)
	}
	if got, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (any, error) {
		return c.Receive[any]("nothing", durable.Within(0), durable.Else[any](nil))
	}); got != nil || err != nil {
		t.Errorf("nil in place of a signal: %v, %v", got, err)
	}
}

// Both stores return the same errors for texts that databases cannot store.
func TestTextsThatNoDatabaseKeeps(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s, w)
		for _, id := range []string{"a\x00b", "a\xff", strings.Repeat("x", 1<<20)} {
			for verb, do := range map[string]func() error{
				"get":     func() error { _, err := e.Get(within(t), id); return err },
				"handle":  func() error { _, err := w.Handle(within(t), e, id); return err },
				"pause":   func() error { _, err := e.Pause(within(t), id); return err },
				"resume":  func() error { _, err := e.Resume(within(t), id); return err },
				"cancel":  func() error { _, err := e.Cancel(within(t), id); return err },
				"signal":  func() error { return e.Signal(within(t), id, "s", 1) },
				"history": func() error { _, err := e.History(within(t), id); return err },
				"tree":    func() error { _, err := e.Tree(within(t), id); return err },
				"counts":  func() error { _, err := e.TreeCounts(within(t), id); return err },
				"tags":    func() error { return e.SetTags(within(t), id, map[string]string{"a.b": "c"}) },
				"export":  func() error { _, err := e.Export(within(t), id); return err },
			} {
				if err := do(); !errors.Is(err, durable.ErrNotFound) {
					t.Errorf("%s of %.8q: %.200v", verb, id, err)
				}
			}
		}
		for _, cfg := range []durable.Config{{Name: "a\x00b"}, {Version: "\xff"}} {
			if _, err := durable.New(s, cfg); !errors.Is(err, durable.ErrInvalidName) {
				t.Errorf("New with %q: %v", cfg.Name+cfg.Version, err)
			}
		}
	})
}

// "For ever" can be written in several ways, and none of them ends at once.
func TestWaitsForEver(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, how string) (int, error) {
			switch how {
			case "sleep":
				return 0, c.Sleep("wait", math.MaxInt64)
			case "2320":
				return 0, c.SleepUntil("wait", time.Date(2320, 1, 1, 0, 0, 0, 0, time.UTC))
			case "9999":
				return 0, c.SleepUntil("wait", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC))
			default:
				return c.Receive[int]("wait", durable.Within(math.MaxInt64))
			}
		})
		e := engineOn(t, s, w)
		running(t, e)
		for _, how := range []string{"sleep", "2320", "9999", "receive"} {
			if _, err := w.Start(within(t), e, how, durable.ID(how), durable.Timeout(math.MaxInt64)); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, how, durable.StatusWaiting)
			if _, err := e.Export(within(t), how); err != nil {
				t.Errorf("export of %s: %v", how, err)
			}
		}
	})
}

// Calls on a closed store do not wait.
func TestResultOfAClosedStore(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s)
		run, err := w.Start(within(t), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrClosed) {
			t.Errorf("the result: %v", err)
		}
		if _, err := w.Start(within(t), e, 1); !errors.Is(err, durable.ErrClosed) {
			t.Errorf("a start: %v", err)
		}
	})
}

// Names with all their scopes have a bound. It is the same for both stores, and is checked before a function has taken effect.
func TestDeepNames(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		effects := 0
		var nest func(c *durable.Ctx, depth int) (int, error)
		nest = func(c *durable.Ctx, depth int) (int, error) {
			if depth == 0 {
				return c.Step("s", func(context.Context) (int, error) { effects++; return 7, nil })
			}
			return c.Go(rand.Text()+strings.Repeat("x", 470), func(c *durable.Ctx) (int, error) { return nest(c, depth-1) }).Wait()
		}
		w := durable.Define("w", nest)
		e := engineOn(t, s, w)
		if got, err := w.Call(within(t), e, 4); got != 7 || err != nil || effects != 1 {
			t.Errorf("four scopes: %d, %v", got, err)
		}
		if _, err := w.Call(within(t), e, 6); !errors.Is(err, durable.ErrInvalidName) || effects != 1 {
			t.Errorf("six scopes: %v, and %d effects", err, effects)
		}
	})
}

type inner struct{ A int }

type embeds struct{ *inner }

func TestOutputThatNeverDecodes(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (embeds, error) { return embeds{&inner{1}}, nil })
	e := engineOn(t, s, w)
	running(t, e)
	run, err := w.Start(within(t), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Result(within(t))
	if !errors.Is(err, durable.ErrNotEncodable) {
		t.Errorf("got %v, %v: want ErrNotEncodable of the run, or its output", out, err)
	}
	in := durable.Define("in", func(c *durable.Ctx, v embeds) (int, error) { return v.A, nil })
	_, err = in.Start(within(t), e, embeds{&inner{1}})
	if !errors.Is(err, durable.ErrNotEncodable) {
		t.Errorf("start: %v", err)
	}
}
