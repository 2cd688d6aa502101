package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
)

func double(c *durable.Ctx, n int) (int, error) {
	return c.Step("double", func(context.Context) (int, error) { return 2 * n, nil })
}

func TestStartIsIdempotent(t *testing.T) {
	s := openStore(t)
	w := durable.Define("double", double)
	other := durable.Define("other", double)
	e := engineOn(t, s, w, other)
	running(t, e)
	first, err := w.Start(within(t), e, 21, durable.ID("order-42"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := first.Result(within(t)); got != 42 || err != nil {
		t.Fatalf("got %d, %v", got, err)
	}
	again, err := w.Start(within(t), e, 21, durable.ID("order-42"))
	if err != nil || again.RunID() != first.RunID() {
		t.Errorf("the same start again: %v, %v; want the same run", again, err)
	}
	if got, err := again.Result(within(t)); got != 42 || err != nil {
		t.Errorf("its result: %d, %v", got, err)
	}
	if _, err := w.Start(within(t), e, 22, durable.ID("order-42")); !errors.Is(err, durable.ErrIDConflict) {
		t.Errorf("another input: %v, want ErrIDConflict", err)
	}
	if _, err := other.Start(within(t), e, 21, durable.ID("order-42")); !errors.Is(err, durable.ErrIDConflict) || !strings.Contains(err.Error(), `"double"`) {
		t.Errorf("another workflow: %v, want ErrIDConflict naming it", err)
	}
}

func TestStartWithoutAnID(t *testing.T) {
	w := durable.Define("double", double)
	e := engineOn(t, openStore(t), w)
	run, err := w.Start(within(t), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	id, err := uuid.Parse(run.ID())
	if err != nil || id.Version() != 7 || run.ID() != run.RunID() {
		t.Errorf("ID %q, RunID %q: want one UUIDv7", run.ID(), run.RunID())
	}
	info, err := e.Get(within(t), run.ID())
	if err != nil || info.Status != durable.StatusPending || string(info.Input) != "1" {
		t.Errorf("got %+v, %v; want it pending: nobody runs the engine", info, err)
	}
	// A run that was started without an ID has its UUID as its ID: a start with that ID is a start of the same run.
	if again, err := w.Start(within(t), e, 1, durable.ID(run.ID())); err != nil || again.RunID() != run.RunID() {
		t.Errorf("started by its own UUID: %v, %v", again, err)
	}
}

func TestManyStartersOneRun(t *testing.T) {
	s := openStore(t)
	var executions atomic.Int32
	w := durable.Define("once", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("count", func(context.Context) (int, error) { return int(executions.Add(1)), nil })
	})
	engines := []*durable.Engine{engineOn(t, s, w), engineOn(t, s, w)}
	for _, e := range engines {
		running(t, e)
	}
	const ids, starters = 20, 8
	var wg sync.WaitGroup
	var mu sync.Mutex
	found := make(map[string]map[string]bool)
	for i := range ids * starters {
		wg.Go(func() {
			id := fmt.Sprint("id-", i%ids)
			run, err := w.Start(within(t), engines[i%2], 7, durable.ID(id))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := run.Result(within(t)); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if found[id] == nil {
				found[id] = make(map[string]bool)
			}
			found[id][run.RunID()] = true
		})
	}
	wg.Wait()
	for id, runs := range found {
		if len(runs) != 1 {
			t.Errorf("%s is %d runs", id, len(runs))
		}
	}
	if got := executions.Load(); got != ids {
		t.Errorf("the step ran %d times for %d runs", got, ids)
	}
}

func TestStartMany(t *testing.T) {
	s := openStore(t)
	w := durable.Define("double", double)
	e := engineOn(t, s, w)
	running(t, e)
	if _, err := w.Start(within(t), e, 100, durable.ID("taken")); err != nil {
		t.Fatal(err)
	}
	items := []durable.StartItem[int]{{Input: 1}, {ID: "two", Input: 2}, {ID: "taken", Input: 3}, {ID: "two", Input: 2}}
	runs, err := w.StartMany(within(t), e, items)
	if !errors.Is(err, durable.ErrIDConflict) || len(runs) != 4 || runs[2] != nil {
		t.Fatalf("got %v, %v; want a conflict of the third alone", runs, err)
	}
	if runs[1].RunID() != runs[3].RunID() {
		t.Error("one ID twice in a batch is two runs")
	}
	for i, want := range map[int]int{0: 2, 1: 4, 3: 4} {
		if got, err := runs[i].Result(within(t)); got != want || err != nil {
			t.Errorf("item %d: %d, %v; want %d", i, got, err, want)
		}
	}
	if _, err := w.StartMany(within(t), e, []durable.StartItem[int]{{Input: 1}, {ID: "bad\n", Input: 2}}); !errors.Is(err, durable.ErrInvalidName) || !strings.Contains(err.Error(), "item 1 of 2") {
		t.Errorf("a bad ID: %v", err)
	}
	if _, err := w.StartMany(within(t), e, []durable.StartItem[int]{{Input: 1}}, durable.ID("all")); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("one ID for all: %v", err)
	}
	if runs, err := w.StartMany(within(t), e, nil); runs != nil || err != nil {
		t.Errorf("no items: %v, %v", runs, err)
	}
	later, err := w.StartMany(within(t), e, []durable.StartItem[int]{{Input: 1}, {ID: "later", Input: 2}}, durable.Delay(time.Hour), durable.Tag("team.owner", "night"))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range later {
		info, err := e.Get(within(t), run.ID())
		if err != nil || info.Status != durable.StatusPending || info.WakeAt.Sub(info.CreatedAt) != time.Hour || info.Tags["team.owner"] != "night" {
			t.Errorf("started with a delay and a tag: %+v, %v", info, err)
		}
	}
}

func TestStartRefusesBadInput(t *testing.T) {
	s := openStore(t)
	e := engineOn(t, s)
	w := durable.Define("any", func(_ *durable.Ctx, in any) (any, error) { return in, nil })
	for name, c := range map[string]struct {
		in   any
		id   string
		want error
	}{
		"empty ID":   {1, "", durable.ErrInvalidName},
		"NUL":        {1, "a\x00", durable.ErrInvalidName},
		"long ID":    {1, strings.Repeat("x", durable.MaxNameBytes+1), durable.ErrInvalidName},
		"not UTF-8":  {1, "\xff", durable.ErrInvalidName},
		"a function": {func() {}, "a", durable.ErrNotEncodable},
		"too large":  {strings.Repeat("x", 5<<20), "a", durable.ErrPayloadTooLarge},
	} {
		if _, err := w.Start(within(t), e, c.in, durable.ID(c.id)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := e.Get(within(t), "a"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("a refused start left something: %v", err)
	}
}

func TestCallNeedsNoRun(t *testing.T) {
	s := openStore(t)
	w := durable.Define("double", double)
	e := engineOn(t, s, w)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if got, err := w.Call(within(t), e, i); got != 2*i || err != nil {
				t.Errorf("got %d, %v; want %d", got, err, 2*i)
			}
		})
	}
	wg.Wait()
	if workers, err := e.Workers(within(t)); err != nil || len(workers) != 0 {
		t.Errorf("workers left behind: %v, %v", workers, err)
	}
	if _, err := w.Call(within(t), engineOn(t, s), 1); !errors.Is(err, durable.ErrNotRegistered) {
		t.Errorf("without the workflow: %v, want ErrNotRegistered", err)
	}
}

func TestHandle(t *testing.T) {
	w, other := durable.Define("double", double), durable.Define("other", double)
	e := engineOn(t, openStore(t), w, other)
	if _, err := w.Call(within(t), e, 4, durable.ID("x")); err != nil {
		t.Fatal(err)
	}
	run, err := w.Handle(within(t), e, "x")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); got != 8 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	byUUID, err := w.Handle(within(t), e, run.RunID())
	if err != nil || byUUID.ID() != "x" {
		t.Errorf("by UUID: %v, %v", byUUID, err)
	}
	if _, err := other.Handle(within(t), e, "x"); !errors.Is(err, durable.ErrIDConflict) {
		t.Errorf("as another workflow: %v", err)
	}
	if _, err := w.Handle(within(t), e, "unknown"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// The error for an output that does not decode any more names the step, and both types.
func TestDivergedOutput(t *testing.T) {
	s := openStore(t)
	before := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("value", func(context.Context) (string, error) { return "text", nil })
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{before}, Grace: -1})
	hold := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		v, err := c.Step("value", func(context.Context) (string, error) { return "text", nil })
		if err != nil {
			return "", err
		}
		return v, c.Do("hold", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	})
	first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{hold}, Grace: -1})
	stop := running(t, first)
	if _, err := hold.Start(within(t), first, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	awaitCheckpoint(t, e, "a", "value", "completed")
	stop()
	after := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		n, err := c.Step("value", func(context.Context) (int, error) { return 1, nil })
		return fmt.Sprint(n), err
	}, durable.OnDrift(durable.DriftContinues))
	_, err := after.Call(within(t), engineOn(t, s, after), 0, durable.ID("a"))
	if !errors.Is(err, durable.ErrDiverged) {
		t.Fatalf("got %v, want ErrDiverged", err)
	}
	for _, part := range []string{`"value"`, `"a"`, "int"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}

func TestResultEndsWithItsContext(t *testing.T) {
	w := durable.Define("double", double)
	e := engineOn(t, openStore(t), w)
	run, err := w.Start(within(t), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Result(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// If the context of a Result ends, the error says what the run was doing.
func TestResultTellsTheStateWhenItsContextEnds(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("alone", func(*durable.Ctx, int) (int, error) { return 0, nil })
		client := engineOn(t, s)
		run, err := w.Start(within(t), client, 0, durable.ID("a"))
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("the caller has left")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		_, err = run.Result(ctx)
		if !errors.Is(err, gone) || !strings.Contains(err.Error(), "which is pending") {
			t.Errorf("got %v, want the context's cause and the state", err)
		}
	})
}

func TestHandleOfANilWorkflow(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var w *durable.Workflow[int, int]
		if _, err := w.Handle(t.Context(), engineOn(t, s), "a"); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("got %v, want ErrInvalidConfig", err)
		}
	})
}
