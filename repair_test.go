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

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// keyLedger notes which steps were executed, with their idempotency keys.
type keyLedger struct {
	mu    sync.Mutex
	calls []string // of each key the step, and "#" and the generation if the key has one
}

func (l *keyLedger) note(ctx context.Context) {
	run, step, _ := strings.Cut(durable.IdempotencyKey(ctx), ":")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, step+run[len(uuid.Nil.String()):])
}

func (l *keyLedger) want(t testing.TB, what string, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.calls, want) {
		t.Errorf("%s: the steps %q were executed, want %q", what, l.calls, want)
	}
	l.calls = nil
}

// do executes a step that notes itself, and returns err.
func (l *keyLedger) do(c *durable.Ctx, name string, err error, opts ...durable.StepOption) error {
	return c.Do(name, func(ctx context.Context) error { l.note(ctx); return err }, opts...)
}

// wantFailed waits until the run has failed.
func wantFailed(t testing.TB, run *durable.Run[string]) {
	t.Helper()
	if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) {
		t.Fatalf("the run ended with %v, want %v", err, errDeclined)
	}
}

func wantResult(t testing.TB, w *durable.Workflow[string, string], e *durable.Engine, id, want string) {
	t.Helper()
	run := orFail(w.Start(within(t), e, "", durable.ID(id)))(t)
	if got, err := run.Result(within(t)); err != nil || got != want {
		t.Fatalf("the run ended with %q, %v, want %q", got, err, want)
	}
}

// fixable returns an error until it is fixed.
type fixable struct{ fixed atomic.Bool }

func (f *fixable) err() error {
	if f.fixed.Load() {
		return nil
	}
	return errDeclined
}

// A retry executes the failed step again with its old key, and no other. The generation that failed stays as it was.
func TestRetryExecutesTheFailedStepOnly(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var bank fixable
		w := durable.Define("order", func(c *durable.Ctx, _ string) (string, error) {
			if err := l.do(c, "reserve", nil); err != nil {
				return "", err
			}
			_ = l.do(c, "optional", errors.New("handled"))
			if err := l.do(c, "charge", bank.err()); err != nil {
				return "", fmt.Errorf("the order: %w", err)
			}
			return "shipped", l.do(c, "ship", nil)
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, "", durable.ID("order-1"), durable.Tag("team.owner", "a")))(t)
		wantFailed(t, run)
		l.want(t, "at first", "reserve", "optional", "charge")
		plan := orFail(e.Retry(ctx, "order-1", durable.DryRun()))(t)
		if plan.Generation != 2 || plan.Kept != 2 || !slices.Equal(plan.Dropped, []string{"charge"}) || len(plan.Renewed) != 0 {
			t.Errorf("the plan is %+v", plan)
		}
		if n := len(orFail(e.Generations(ctx, "order-1"))(t)); n != 1 {
			t.Fatalf("a dry run made %d generations", n)
		}
		bank.fixed.Store(true)
		made := orFail(e.Retry(ctx, "order-1", durable.Actor("ada"), durable.Reason("the bank is back")))(t)
		if fmt.Sprint(made) != fmt.Sprint(plan) || made.ID != "order-1" || made.RunID != plan.RunID {
			t.Errorf("the retry did %+v, and the dry run said %+v", made, plan)
		}
		wantResult(t, w, e, "order-1", "shipped")
		l.want(t, "in the retry", "charge", "ship")
		all := orFail(e.Generations(ctx, "order-1"))(t)
		if len(all) != 2 {
			t.Fatalf("the generations are %+v", all)
		}
		if g := all[0]; g.Number != 1 || g.Status != durable.StatusFailed || !errors.Is(g.Err, errDeclined) || g.Err.Step != "charge" || g.EndedAt.IsZero() || g.Verb != "" {
			t.Errorf("the first is %+v", g)
		}
		if g := all[1]; g.Number != 2 || g.Status != durable.StatusCompleted || string(g.Output) != `"shipped"` || g.Verb != durable.VerbRetry || g.Actor != "ada" ||
			g.Reason != "the bank is back" || g.Kept != 2 || !slices.Equal(g.Dropped, []string{"charge"}) {
			t.Errorf("the second is %+v", g)
		}
		names := func(opts ...durable.HistoryOption) (all []string) {
			for _, c := range orFail(e.History(ctx, "order-1", opts...))(t) {
				all = append(all, c.Name+" "+string(c.Status))
			}
			return all
		}
		if got := names(durable.InGeneration(1)); !slices.Equal(got, []string{"reserve completed", "optional failed", "charge failed"}) {
			t.Errorf("the first generation has %q", got)
		}
		if got := names(); !slices.Equal(got, []string{"reserve completed", "optional failed", "charge completed", "ship completed"}) || !slices.Equal(got, names(durable.InGeneration(2))) {
			t.Errorf("the run has %q", got)
		}
		if _, err := e.History(ctx, "order-1", durable.InGeneration(3)); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("a generation that is not: %v", err)
		}
		info := orFail(e.Get(ctx, "order-1"))(t)
		if info.RunID != made.RunID || info.Tags["team.owner"] != "a" || info.Err != nil {
			t.Errorf("the run is %+v", info)
		}
		var events []string
		for event, err := range e.WatchEvents(ctx, "") {
			if events = append(events, fmt.Sprint(event.Type, event.Old, event.New, event.Actor)); err != nil || len(events) == 3 {
				break
			}
		}
		if !slices.Equal(events, []string{"failed", "repaired12ada", "completed"}) {
			t.Errorf("the events are %q", events)
		}
		var refused *durable.StateError
		if _, err := e.Retry(ctx, "order-1"); !errors.As(err, &refused) || refused.Status != durable.StatusCompleted || refused.Verb != durable.VerbRetry {
			t.Errorf("a retry of a completed run: %v", err)
		}
	})
}

// What a retry cannot mean is refused with a typed error, and nothing changes.
func TestRetryRefusesWhatCannotBeMeant(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return "", errDeclined
		})
		e := engineOn(t, s, w)
		stop := running(t, e)
		wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID("r")))(t))
		stop()
		for what, c := range map[string]struct {
			want error
			id   string
			opts []durable.ControlOption
		}{
			"the failure names no step": {durable.ErrFromRequired, "r", nil},
			"no such step":              {durable.ErrNoStep, "r", []durable.ControlOption{durable.From("b")}},
			"no such run":               {durable.ErrNotFound, "q", nil},
			"From twice":                {durable.ErrInvalidConfig, "r", []durable.ControlOption{durable.From("a"), durable.FromEnd()}},
			"an option of Resume":       {durable.ErrInvalidConfig, "r", []durable.ControlOption{durable.FreezeTimers()}},
			"an empty From":             {durable.ErrInvalidConfig, "r", []durable.ControlOption{durable.From("")}},
		} {
			if _, err := e.Retry(ctx, c.id, c.opts...); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", what, err, c.want)
			}
		}
		if _, err := e.Pause(ctx, "r", durable.From("a")); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a pause from a step: %v", err)
		}
		old := store.Worker{ID: uuid.New(), Name: "host-7", StartedAt: time.Now(), State: store.WorkerRunning, SchemaVersion: store.FirstSchemaWithRepairs - 1}
		if _, err := s.RenewLeases(ctx, store.Heartbeat{Worker: old, LeaseUntil: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Retry(ctx, "r", durable.FromEnd()); !errors.Is(err, durable.ErrSchema) || !strings.Contains(err.Error(), "host-7") {
			t.Errorf("while an older worker lives: %v", err)
		}
		if info := orFail(e.Get(ctx, "r"))(t); info.Status != durable.StatusFailed {
			t.Errorf("the run is %v", info.Status)
		}
	})
}

// From drops a step and what began later. What had completed is executed with a new key, also after a takeover.
func TestRetryFromAStepRenewsCompletedSteps(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var bank fixable
		g := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			for _, name := range []string{"a", "b"} {
				if err := l.do(c, name, nil); err != nil {
					return "", err
				}
			}
			if bank.fixed.Load() {
				if err := c.Do("gate", func(ctx context.Context) error { return g.pass(ctx) }); err != nil {
					return "", err
				}
			}
			return "done", l.do(c, "c", bank.err())
		})
		first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, first)
		wantFailed(t, orFail(w.Start(ctx, first, "", durable.ID("r")))(t))
		l.want(t, "at first", "a", "b", "c")
		bank.fixed.Store(true)
		made := orFail(first.Retry(ctx, "r", durable.From("b")))(t)
		if !slices.Equal(made.Dropped, []string{"b", "c"}) || !slices.Equal(made.Renewed, []string{"b"}) {
			t.Errorf("the retry did %+v", made)
		}
		<-g.entered
		stop()
		close(g.open)
		e := engineOn(t, s, w)
		running(t, e)
		wantResult(t, w, e, "r", "done")
		l.want(t, "in the retry", "b#2", "c")
	})
}

// A run whose function failed by itself is executed from its end.
func TestRetryFromTheEndKeepsEverything(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var code fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := l.do(c, "a", nil); err != nil {
				return "", err
			}
			return "done", code.err()
		})
		e := engineOn(t, s, w)
		running(t, e)
		for _, id := range []string{"r1", "r2", "r3"} {
			wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID(id)))(t))
		}
		l.want(t, "at first", "a", "a", "a")
		code.fixed.Store(true)
		all, err := e.RetryAll(ctx, durable.Filter{Workflow: "w"})
		if err != nil || all.Matched != 3 || len(all.Repaired) != 0 || len(all.Refused) != 3 || !errors.Is(all.Refused[0].Err, durable.ErrFromRequired) || all.Refused[0].ID != "r3" {
			t.Errorf("RetryAll without FromEnd: %+v, %v", all, err)
		}
		if all, err = e.RetryAll(ctx, durable.Filter{Workflow: "w"}, durable.FromEnd()); err != nil || len(all.Repaired) != 3 || len(all.Refused) != 0 {
			t.Errorf("RetryAll: %+v, %v", all, err)
		}
		for _, id := range []string{"r1", "r2", "r3"} {
			wantResult(t, w, e, id, "done")
		}
		l.want(t, "in the retries")
		if _, err := e.RetryAll(ctx, durable.Filter{}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a filter without a condition: %v", err)
		}
	})
}

// A run in a queue with settings takes a place there again.
func TestRetryInAQueueWithSettings(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var bank fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return "done", l.do(c, "a", bank.err()) })
		e := engineOn(t, s, w)
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1, MaxExecutingPerKey: 1}); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		start := func(id string) *durable.Run[string] {
			t.Helper()
			return orFail(w.Start(ctx, e, "", durable.ID(id), durable.InQueue("mail"), durable.GroupKey("k")))(t)
		}
		for _, id := range []string{"a", "b"} {
			wantFailed(t, start(id))
		}
		bank.fixed.Store(true)
		for _, id := range []string{"a", "b"} {
			orFail(e.Retry(ctx, id))(t)
		}
		for _, id := range []string{"a", "b"} {
			if got, err := start(id).Result(ctx); got != "done" || err != nil {
				t.Errorf("run %s: %q, %v", id, got, err)
			}
		}
	})
}

// A refused retry says which calls the state of the run allows.
func TestARefusedRetrySaysWhatIsAllowed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("order", func(c *durable.Ctx, in string) (string, error) {
			if in == "waits" {
				return c.Receive[string]("go")
			}
			return in, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		for id, in := range map[string]string{"done": "x", "live": "waits", "cancelled": "waits"} {
			orFail(w.Start(ctx, e, in, durable.ID(id)))(t)
		}
		awaitStatus(t, e, "done", durable.StatusCompleted)
		awaitStatus(t, e, "live", durable.StatusWaiting)
		orFail(e.Cancel(ctx, "cancelled"))(t)
		awaitStatus(t, e, "cancelled", durable.StatusCancelled)
		for id, want := range map[string]string{
			"done":      "it is completed, and a retry is for runs that failed or expired: use Fork, Override or Rerun",
			"live":      "it is waiting, and a retry is for runs that failed or expired: use Fork, Override, Skip or Rerun",
			"cancelled": "it is cancelled, and those who cancelled it rely on its end: use Fork with NewID, which copies it to another run",
		} {
			state := new(durable.StateError)
			if _, err := e.Retry(ctx, id); !errors.As(err, &state) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("retry of %s: %v", id, err)
			}
		}
		if _, err := e.Rerun(ctx, "cancelled", "go"); err == nil || !strings.HasSuffix(err.Error(), "use Fork with NewID, which copies it to another run") {
			t.Errorf("rerun of a cancelled run: %v", err)
		}
		orFail(e.Fork(ctx, "done", durable.FromEnd()))(t)
		orFail(e.Fork(ctx, "cancelled", durable.FromEnd(), durable.NewID("copy")))(t)
	})
}
