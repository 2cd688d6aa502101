package durable_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// A value that New, Open or Go did not return is an error, and neither a panic nor an endless wait.
func TestZeroValuesAreErrors(t *testing.T) {
	t.Run("stores", func(t *testing.T) {
		for _, s := range []durable.Store{&sqlite.Store{}, &postgres.Store{}, (*sqlite.Store)(nil), (*postgres.Store)(nil)} {
			if err := s.Close(); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("Close of an empty %T: %v", s, err)
			}
			if _, err := durable.New(s, durable.Config{}); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("New of an empty %T: %v", s, err)
			}
		}
	})
	for _, s := range []*postgres.Store{nil, {}} {
		if _, err := s.OpenSchema(within(t), "tenant"); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("OpenSchema of an empty store: %v", err)
		}
	}
	for name, wait := range map[string]func(*durable.Ctx, *durable.Future[int]) error{
		"Wait": func(_ *durable.Ctx, f *durable.Future[int]) error { _, err := f.Wait(); return err },
		"All":  func(_ *durable.Ctx, f *durable.Future[int]) error { _, err := durable.All(f); return err },
		"Any": func(c *durable.Ctx, f *durable.Future[int]) error {
			_, _, err := durable.Any(c, "any", durable.KeepLosers, f)
			return err
		},
		"AllOrCancel": func(c *durable.Ctx, f *durable.Future[int]) error {
			_, err := durable.AllOrCancel(c, "all", f)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) { return 0, wait(c, new(durable.Future[int])) })
			if !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("an empty Future: %v", err)
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		if err := engineOn(t, openStore(t)).DecodeExport(nil); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("DecodeExport: %v", err)
		}
		if (&durable.WriteError{}).Error() == "" {
			t.Error("an empty WriteError has no text")
		}
	})
}

// The options of postgres.Open and its URL are checked before anything is opened.
func TestInvalidPostgresOptionsAreTyped(t *testing.T) {
	for url, opts := range map[string][]postgres.Option{"::::": nil, "postgres://localhost/x": {postgres.Schema("a-b")}} {
		if _, err := postgres.Open(within(t), url, opts...); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("Open of %q: %v", url, err)
		}
	}
}

// A page of a call whose name the database refuses is a call that the run does not have.
func TestPageOfACallThatNoDatabaseHolds(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s, w)
		read(w.Start(within(t), e, 1, durable.ID("run"), durable.Delay(time.Hour)))(t)
		for _, name := range []string{"a\x00b", "a\xff"} {
			if _, err := e.HistoryPage(within(t), "run", durable.HistoryPart{Call: name}); !errors.Is(err, durable.ErrNoStep) {
				t.Errorf("the page of %q: %v", name, err)
			}
		}
	})
}

// FreezeTimers does not move the start of a call behind the moment at which a choice ended it.
func TestFrozenTimersKeepTheOrderOfAnEndedCall(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				return c.Step("ask", func(ctx context.Context) (string, error) { return "", errDeclined }, durable.Retry(durable.Fixed(time.Hour, 3)))
			})
			fast := c.Go("fast", func(c *durable.Ctx) (string, error) { return c.Receive[string]("go") })
			if _, _, err := durable.Any(c, "any", durable.CancelLosers, slow, fast); err != nil {
				return "", err
			}
			return c.Receive[string]("end")
		})
		e := engineOn(t, s, w)
		running(t, e)
		read(w.Start(ctx, e, 1, durable.ID("run")))(t)
		has := func(name string) func() bool {
			return func() bool {
				return slices.ContainsFunc(historyOf(t, e, "run"), func(c durable.Checkpoint) bool { return c.Name == name })
			}
		}
		waitFor(t, has("slow/ask"))
		if err := e.Signal(ctx, "run", "go", "now"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, has("end"))
		must(t)(e.Pause(ctx, "run"))
		awaitStatus(t, e, "run", durable.StatusPaused)
		waitUntil(t, s, dbNow(t, s).Add(100*time.Millisecond))
		must(t)(e.Resume(ctx, "run", durable.FreezeTimers()))
		for _, c := range historyOf(t, e, "run") {
			if !c.EndedAt.IsZero() && c.EndedAt.Before(c.StartedAt) {
				t.Errorf("%s began at %v and ended at %v", c.Name, c.StartedAt, c.EndedAt)
			}
		}
	})
}
