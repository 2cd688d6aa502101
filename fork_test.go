package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A fork under the run's ID is its next generation: it begins at a step, with other values before.
func TestForkMakesTheNextGeneration(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := quoteOrder(&l, openGate())
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "charged 10")
		l.want(t, "at first", "quote", "charge")
		made := orFail(e.Fork(ctx, "r", durable.From("charge"), durable.OverrideStep("quote", 20)))(t)
		if made.ID != "r" || made.Generation != 2 || !slices.Equal(made.Dropped, []string{"charge"}) || !slices.Equal(made.Corrected, []string{"quote"}) {
			t.Errorf("the fork did %+v", made)
		}
		wantResult(t, w, e, "r", "charged 20")
		l.want(t, "after the fork", "charge#2")
		orFail(e.Fork(ctx, "r", durable.From("charge"), durable.OverrideStep("charge", "nothing")))(t)
		wantResult(t, w, e, "r", "nothing")
		l.want(t, "with a value for the step")
		if all := orFail(e.Generations(ctx, "r"))(t); len(all) != 3 || all[1].Verb != durable.VerbFork || all[1].From != "charge" {
			t.Errorf("the generations are %+v", all)
		}
		for what, opts := range map[string][]durable.ControlOption{
			"a value twice":            {durable.FromEnd(), durable.OverrideStep("quote", 1), durable.OverrideStep("quote", 2)},
			"InterruptSteps and NewID": {durable.FromEnd(), durable.InterruptSteps(), durable.NewID("q")},
		} {
			if _, err := e.Fork(ctx, "r", opts...); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := e.Fork(ctx, "r"); !errors.Is(err, durable.ErrFromRequired) {
			t.Errorf("without From: %v", err)
		}
		if _, err := e.Fork(ctx, "r", durable.NewID("")); !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("with an empty ID: %v", err)
		}
	})
}

// A fork under another ID is another run. The forked one does not change, and no key is used by both.
func TestForkUnderAnotherID(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(c *durable.Ctx, in string) (string, error) { return "kid " + in, nil })
		var mu sync.Mutex
		keys := make(map[string]int)
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
			a, err := c.Child("kid", kid, in)
			if err != nil {
				return "", err
			}
			b, err := c.Receive[string]("go")
			if err != nil {
				return "", err
			}
			return c.Step("join", func(ctx context.Context) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				keys[durable.IdempotencyKey(ctx)]++
				return a + " " + b, nil
			})
		})
		e := engineOn(t, s, w, kid)
		running(t, e)
		run := orFail(w.Start(ctx, e, "in", durable.ID("r"), durable.Tag("team.owner", "a"), durable.Timeout(time.Hour), durable.Priority(1)))(t)
		waitsForGo := func(id string) {
			t.Helper()
			waitFor(t, func() bool {
				info := orFail(e.Get(ctx, id))(t)
				return info.Status == durable.StatusWaiting && len(info.OpenCalls) == 1 && info.OpenCalls[0].Name == "go"
			})
		}
		waitsForGo("r")
		plan := orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("live"), durable.DryRun()))(t)
		made := orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("live"), durable.Actor("ada")))(t)
		if plan.RunID != "" || made.RunID == "" || plan.Kept != made.Kept || made.Kept != 1 || made.ID != "live" || made.Generation != 1 || !slices.Equal(made.Dropped, []string{"go"}) {
			t.Errorf("the fork did %+v, and the dry run said %+v", made, plan)
		}
		waitsForGo("live")
		info, was := orFail(e.Get(ctx, "live"))(t), orFail(e.Get(ctx, "r"))(t)
		if info.Tags["team.owner"] != "a" || info.Priority != 1 || !info.Deadline.Equal(info.CreatedAt.Add(time.Hour)) || string(info.Input) != `"in"` || !was.EndedAt.IsZero() {
			t.Errorf("the fork is %+v, and the forked run %+v", info, was)
		}
		signal(t, e, "r", "go", "first")
		signal(t, e, "live", "go", "second")
		if got := orFail(run.Result(ctx))(t); got != "kid in first" {
			t.Errorf("the forked run ended with %q", got)
		}
		result := func(id string) string {
			t.Helper()
			return orFail(orFail(w.Start(ctx, e, "in", durable.ID(id)))(t).Result(ctx))(t)
		}
		if got := result("live"); got != "kid in second" {
			t.Errorf("the fork ended with %q", got)
		}
		orFail(e.Fork(ctx, "r", durable.From("join"), durable.OverrideStep("go", "third"), durable.NewID("ended")))(t)
		if got := result("ended"); got != "kid in third" {
			t.Errorf("a fork of a completed run ended with %q", got)
		}
		if tree := orFail(e.Tree(ctx, "ended"))(t); len(tree.Children) != 0 {
			t.Errorf("the fork has the children %+v", tree.Children)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(keys) != 3 {
			t.Errorf("the keys are %v", keys)
		}
		if _, err := e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("live")); !errors.Is(err, durable.ErrIDConflict) {
			t.Errorf("a fork under an ID that is taken: %v", err)
		}
		var events []string
		for event, err := range e.WatchEvents(ctx, "") {
			if err != nil || event.Type == "repaired" {
				events = append(events, fmt.Sprint(event.RunID == made.RunID, event.Old == was.RunID, event.Actor))
				break
			}
		}
		if !slices.Equal(events, []string{"true trueada"}) {
			t.Errorf("the events are %q", events)
		}
	})
}

// A cancelled run can only be forked under another ID. Forks are possible while the run changes.
func TestForkOfACancelledRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return c.Receive[string]("go")
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		must(t)(e.Cancel(ctx, "r"))
		awaitStatus(t, e, "r", durable.StatusCancelled)
		if _, err := e.Fork(ctx, "r", durable.FromEnd(), durable.OverrideStep("go", "x")); !errors.Is(err, durable.ErrState) {
			t.Errorf("a fork of a cancelled run: %v", err)
		}
		orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.OverrideStep("go", "x"), durable.NewID("q")))(t)
		wantResult(t, w, e, "q", "x")
	})
}

// A rerun leaves a call behind those that it kept. A fork from that call keeps these, as the rerun did, and is not held for them.
func TestAForkOfARunWithARerunIsNotHeld(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			var all string
			for _, name := range []string{"a", "b", "c"} {
				v, err := c.Step(name, func(context.Context) (string, error) { return name, nil })
				if err != nil {
					return "", err
				}
				all += v
			}
			return all, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		wantResult(t, w, e, orFail(w.Start(ctx, e, "", durable.ID("source")))(t).ID(), "abc")
		orFail(e.Rerun(ctx, "source", "a"))(t)
		wantResult(t, w, e, "source", "abc")
		orFail(e.Fork(ctx, "source", durable.From("a"), durable.NewID("fork")))(t)
		waitFor(t, func() bool {
			info := orFail(e.Get(ctx, "fork"))(t)
			return info.Status == durable.StatusCompleted || info.Status == durable.StatusPaused
		})
		if info := orFail(e.Get(ctx, "fork"))(t); info.Status != durable.StatusCompleted {
			t.Errorf("the fork is %s: %s", info.Status, info.Reason)
		}
	})
}

// A dry run of a fork to another run describes one run, which is no child of itself.
func TestADryRunOfAForkToAnotherRunHasNoChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := quoted(&l)
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		plan := orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("copy"), durable.DryRun()))(t)
		if len(plan.Children) != 0 || plan.ID != "copy" || plan.RunID != "" {
			t.Errorf("%d children of %q, with the UUID %q", len(plan.Children), plan.ID, plan.RunID)
		}
	})
}
