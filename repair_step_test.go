package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// quoteOrder has a step whose value the later ones use. The step before the charge waits at the gate.
func quoteOrder(l *keyLedger, g gate) *durable.Workflow[string, string] {
	return durable.Define("order", func(c *durable.Ctx, _ string) (string, error) {
		price, err := c.Step("quote", func(ctx context.Context) (int, error) { l.note(ctx); return 10, nil })
		if err != nil {
			return "", err
		}
		if err := c.Do("hold", func(ctx context.Context) error { return g.pass(ctx) }); err != nil {
			return "", err
		}
		return c.Step("charge", func(ctx context.Context) (string, error) { l.note(ctx); return fmt.Sprint("charged ", price), nil })
	})
}

func openGate() gate {
	g := newGate()
	close(g.open)
	return g
}

// An override of a completed run makes what began after the step again, with new keys; with FromEnd the later calls stay.
func TestOverrideReplacesTheValueOfAStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := quoteOrder(&l, openGate())
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "charged 10")
		l.want(t, "at first", "quote", "charge")
		plan := orFail(e.Override(ctx, "r", "quote", 20, durable.DryRun()))(t)
		made := orFail(e.Override(ctx, "r", "quote", 20, durable.Actor("ada"), durable.Reason("a wrong price")))(t)
		if fmt.Sprint(made) != fmt.Sprint(plan) || made.Generation != 2 || !slices.Equal(made.Dropped, []string{"hold", "charge"}) ||
			!slices.Equal(made.Renewed, made.Dropped) && !slices.Equal(made.Renewed, []string{"charge", "hold"}) || !slices.Equal(made.Corrected, []string{"quote"}) {
			t.Errorf("the override did %+v, and the dry run said %+v", made, plan)
		}
		wantResult(t, w, e, "r", "charged 20")
		l.want(t, "after the override", "charge#2")
		orFail(e.Override(ctx, "r", "quote", 30, durable.FromEnd()))(t)
		wantResult(t, w, e, "r", "charged 20")
		l.want(t, "after an override that keeps the rest")
		all := orFail(e.Generations(ctx, "r"))(t)
		if len(all) != 3 || all[1].Verb != durable.VerbOverride || all[1].Actor != "ada" || all[1].Reason != "a wrong price" || !slices.Equal(all[2].Corrected, []string{"quote"}) {
			t.Errorf("the generations are %+v", all)
		}
		h := historyOf(t, e, "r")
		if i := slices.IndexFunc(h, func(c durable.Checkpoint) bool { return c.Name == "quote" }); string(h[i].Output) != "30" {
			t.Errorf("the history is %+v", h)
		}
	})
}

// A repair of a live run waits until its running step has finished, and then the run goes on by itself.
func TestARepairOfALiveRunWaitsForItsStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		g := newGate()
		w := quoteOrder(&l, g)
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		<-g.entered
		waitFor(t, func() bool { return len(historyOf(t, e, "r")) == 2 }) // the step has its started marker
		override := func(ctx context.Context) chan error {
			result := make(chan error, 1)
			go func() {
				_, err := e.Override(ctx, "r", "quote", 20, durable.FromEnd())
				result <- err
			}()
			waitFor(t, func() bool { return orFail(e.Get(ctx, "r"))(t).Requested == durable.VerbPause })
			return result
		}
		impatient, cancel := context.WithCancel(ctx)
		result := override(impatient)
		cancel()
		var refused *durable.StateError
		if err := <-result; !errors.As(err, &refused) || !strings.Contains(refused.Detail, `"hold" still runs`) {
			t.Fatalf("an override that does not wait long enough: %v", err)
		}
		if info := orFail(e.Get(ctx, "r"))(t); info.Status != durable.StatusRunning || info.Requested != "" || info.Reason != "" {
			t.Fatalf("after that the run is %+v", info)
		}
		result = override(ctx)
		close(g.open)
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		wantResult(t, w, e, "r", "charged 20")
		l.want(t, "all together", "quote", "charge")
		if all := orFail(e.Generations(ctx, "r"))(t); len(all) != 2 || all[0].Status != durable.StatusSuperseded || !all[0].EndedAt.IsZero() {
			t.Errorf("the generations are %+v", all)
		}
	})
}

// With InterruptSteps a running step is interrupted. A step that runs at most once then has an unknown outcome, also if the repair executes
// again what began before it, or the step itself.
func TestARepairAtOnceInterruptsTheRunningStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for what, c := range map[string]struct {
			repair func(e *durable.Engine) (*durable.Repaired, error)
			want   []string
		}{
			"rerun": {func(e *durable.Engine) (*durable.Repaired, error) {
				return e.Rerun(within(t), "rerun", "a", durable.InterruptSteps())
			}, []string{"a", "once", "a#2"}},
			"override": {func(e *durable.Engine) (*durable.Repaired, error) {
				return e.Override(within(t), "override", "a", nil, durable.InterruptSteps())
			}, []string{"a", "once"}},
			"fork": {func(e *durable.Engine) (*durable.Repaired, error) {
				return e.Fork(within(t), "fork", durable.From("a"), durable.InterruptSteps())
			}, []string{"a", "once", "a#2"}},
			"fork from it": {func(e *durable.Engine) (*durable.Repaired, error) {
				return e.Fork(within(t), "fork from it", durable.From("once"), durable.InterruptSteps())
			}, []string{"a", "once"}},
		} {
			ctx := within(t)
			var l keyLedger
			g := newGate()
			w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
				if err := l.do(c, "a", nil); err != nil {
					return "", err
				}
				return "done", c.Do("once", func(ctx context.Context) error { l.note(ctx); return g.pass(ctx) }, durable.AtMostOnce())
			})
			e := engineOn(t, s, w)
			stop := running(t, e)
			run := orFail(w.Start(ctx, e, "", durable.ID(what)))(t)
			<-g.entered
			orFail(c.repair(e))(t)
			if _, err := run.Result(ctx); !errors.Is(err, durable.ErrOutcomeUnknown) {
				t.Fatalf("%s: the run ended with %v", what, err)
			}
			l.want(t, what, c.want...)
			orFail(e.Skip(ctx, what, "once", nil))(t) // somebody has found out that it took effect
			wantResult(t, w, e, what, "done")
			l.want(t, what+", after the skip")
			stop()
		}
	})
}

// Skip ends what a live run waits for: a backoff, a signal, a child and a sleep.
func TestSkipGivesAValueToAWait(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("never") })
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			a, err := c.Step("flaky", func(context.Context) (string, error) { return "", errDeclined }, durable.Retry(durable.RetryPolicy{Attempts: 2, Initial: time.Hour}))
			if err != nil {
				return "", err
			}
			b, err := c.Receive[string]("ok")
			if err != nil {
				return "", err
			}
			d, err := c.Child("kid", kid, "")
			if err != nil {
				return "", err
			}
			return a + b + d, c.Sleep("nap", time.Hour)
		})
		e := engineOn(t, s, w, kid)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		waitsAt := func(name string) {
			t.Helper()
			waitFor(t, func() bool {
				h := historyOf(t, e, "r")
				return len(h) > 0 && h[len(h)-1].Name == name && orFail(e.Get(ctx, "r"))(t).Status == durable.StatusWaiting
			})
		}
		waitsAt("flaky")
		orFail(e.Skip(ctx, "r", "flaky", "a"))(t)
		waitsAt("ok")
		orFail(e.Skip(ctx, "r", "ok", "b"))(t)
		waitsAt("kid")
		child := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		made := orFail(e.Skip(ctx, "r", "kid", "c"))(t)
		if !slices.Equal(made.Cancelled, []string{child}) {
			t.Errorf("the skip did %+v", made)
		}
		waitsAt("nap")
		awaitStatus(t, e, child, durable.StatusCancelled)
		orFail(e.Skip(ctx, "r", "nap", nil))(t)
		wantResult(t, w, e, "r", "abc")
	})
}

// A run that somebody had paused stays paused. What cannot be meant is refused, and leaves a live run alone.
func TestRepairsOfStepsThatCannotBeMeant(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return c.Receive[string]("go")
		})
		e := engineOn(t, s, w)
		stop := running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		stop()
		must(t)(e.Pause(ctx, "r", durable.Reason("ours")))
		orFail(e.Rerun(ctx, "r", "a"))(t)
		if info := orFail(e.Get(ctx, "r"))(t); info.Status != durable.StatusPaused || info.Reason != "ours" {
			t.Errorf("a run that was paused is %v: %q", info.Status, info.Reason)
		}
		must(t)(e.Resume(ctx, "r"))
		for what, c := range map[string]struct {
			want error
			call func() (*durable.Repaired, error)
		}{
			"no such step":              {durable.ErrNoStep, func() (*durable.Repaired, error) { return e.Rerun(ctx, "r", "b") }},
			"no such run":               {durable.ErrNotFound, func() (*durable.Repaired, error) { return e.Rerun(ctx, "q", "a") }},
			"a value that is waited":    {durable.ErrState, func() (*durable.Repaired, error) { return e.Override(ctx, "r", "go", "x") }},
			"a value of no JSON":        {durable.ErrNotEncodable, func() (*durable.Repaired, error) { return e.Skip(ctx, "r", "go", func() {}) }},
			"From in a rerun":           {durable.ErrInvalidConfig, func() (*durable.Repaired, error) { return e.Rerun(ctx, "r", "a", durable.From("a")) }},
			"From in an override":       {durable.ErrInvalidConfig, func() (*durable.Repaired, error) { return e.Override(ctx, "r", "a", 1, durable.From("a")) }},
			"InterruptSteps in a retry": {durable.ErrInvalidConfig, func() (*durable.Repaired, error) { return e.Retry(ctx, "r", durable.InterruptSteps()) }},
		} {
			if _, err := c.call(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
			if info := orFail(e.Get(ctx, "r"))(t); info.Status == durable.StatusPaused || info.Requested != "" {
				t.Errorf("%s: the run is %v", what, info.Status)
			}
		}
		old := store.Worker{ID: uuid.New(), Name: "host-7", StartedAt: time.Now(), State: store.WorkerRunning, SchemaVersion: store.FirstSchemaWithRepairs - 1}
		if _, err := s.RenewLeases(ctx, store.Heartbeat{Worker: old, LeaseUntil: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Rerun(ctx, "r", "a"); !errors.Is(err, durable.ErrSchema) {
			t.Errorf("while an older worker lives: %v", err)
		}
	})
}
