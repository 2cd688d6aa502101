package durabletest_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

type order struct {
	ID    string
	Items []int
}

// shop is a workflow and what may become of its code.
func shop(body func(c *durable.Ctx, o order) (int, error)) *durable.Workflow[order, int] {
	return durable.Define("shop", body)
}

func original(c *durable.Ctx, o order) (int, error) {
	sums, err := c.Map("items", o.Items, func(_ context.Context, n int) (int, error) { return n * 2, nil })
	if err != nil {
		return 0, err
	}
	if err := c.Sleep("cool down", day); err != nil {
		return 0, err
	}
	paid, err := step(c, "pay", sums[0]+sums[1])
	if err != nil {
		return 0, err
	}
	return c.Receive[int]("shipped", durable.Else(paid), durable.Within(10*day))
}

func exported(t *testing.T, e *durabletest.Engine, id string) []byte {
	t.Helper()
	b, err := e.Export(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExport(t *testing.T) {
	t.Parallel()
	w := shop(original)
	e := durabletest.New(t, w)
	if _, err := w.Call(quickly(t), e.Engine, order{"o", []int{1, 2}}, durable.ID("o-1")); err != nil {
		t.Fatal(err)
	}
	var x durable.Exported
	if err := json.Unmarshal(exported(t, e, "o-1"), &x); err != nil {
		t.Fatal(err)
	}
	if x.Format != durable.ExportFormat || x.Run.ID != "o-1" || x.Run.Workflow != "shop" || x.Run.Status != durable.StatusCompleted || string(x.Run.Output) != "6" {
		t.Errorf("%+v", x.Run)
	}
	var names []string
	for _, h := range x.History {
		names = append(names, h.Name+":"+h.Kind)
	}
	if want := []string{"items:map", "items/0:step", "items/1:step", "cool down:sleep", "pay:step", "shipped:receive"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if _, err := e.Export(t.Context(), "nobody"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	w := shop(original)
	e := durabletest.New(t, w)
	if _, err := w.Call(quickly(t), e.Engine, order{"o", []int{1, 2}}, durable.ID("ended")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(quickly(t), e.Engine, order{"o", []int{1, 2}}, durable.ID("waiting")); err != nil {
		t.Fatal(err)
	}
	e.Advance(2 * day)
	ended, waiting := exported(t, e, "ended"), exported(t, e, "waiting")
	for name, c := range map[string]struct {
		body         func(c *durable.Ctx, o order) (int, error)
		ended, waits string // the place and reason, empty for none
	}{
		"the same": {original, "", ""},
		"a step more at the end": {func(c *durable.Ctx, o order) (int, error) {
			n, err := original(c, o)
			if err != nil {
				return 0, err
			}
			return step(c, "mail", n)
		}, `at "mail": the run has ended`, ""},
		"a step renamed": {func(c *durable.Ctx, o order) (int, error) {
			sums, err := c.Map("items", o.Items, func(_ context.Context, n int) (int, error) { return n * 2, nil })
			if err != nil {
				return 0, err
			}
			if err := c.Sleep("cool down", day); err != nil {
				return 0, err
			}
			return step(c, "charge", sums[0])
		}, `which holds ["pay" "shipped"]`, `which holds ["pay" "shipped"]`},
		"another kind": {func(c *durable.Ctx, o order) (int, error) {
			return step(c, "cool down", 1)
		}, `is recorded as a sleep, and the code now asks for a step`, `is recorded as a sleep, and the code now asks for a step`},
		"another type": {func(c *durable.Ctx, o order) (int, error) {
			_, err := c.Step("pay", func(context.Context) (string, error) { return "", nil })
			return 0, err
		}, "no longer decodes", "no longer decodes"},
		"another result": {func(c *durable.Ctx, o order) (int, error) {
			n, err := original(c, o)
			return n + 1, err
		}, "the run's output is 6, and would be 7 now", ""},
		"a panic": {func(*durable.Ctx, order) (int, error) { panic("boom") }, "would fail (panic: boom)", "would fail (panic: boom)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for run, want := range map[string]string{string(ended): c.ended, string(waiting): c.waits} {
				v := durabletest.Replay(t, shop(c.body), []byte(run))
				if v.Diverged != (want != "") || !strings.Contains(v.String(), want) {
					t.Errorf("%v, want %q (%+v)", v, want, v)
				}
			}
		})
	}
}

func TestReplayDir(t *testing.T) {
	t.Parallel()
	w := shop(original)
	e := durabletest.New(t, w)
	dir := t.TempDir()
	for _, id := range []string{"a", "b"} {
		if _, err := w.Call(quickly(t), e.Engine, order{"o", []int{1, 2}}, durable.ID(id)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id+".json"), exported(t, e, id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	durabletest.ReplayDir(t, dir, w)
}

func TestStubsAndAssertions(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	w := shop(original)
	e := durabletest.New(t, w)
	stub := durabletest.Stub("pay", func(context.Context) (int, error) { return 77, nil })
	doubled := durabletest.Stub("items/*", func(context.Context) (int, error) { return 10, nil })
	e.Use(stub, doubled)
	ctx := quickly(t)
	if got, err := w.Call(ctx, e.Engine, order{"o", []int{1, 2}}, durable.ID("a")); got != 77 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if stub.CallCount() != 1 || doubled.CallCount() != 2 || e.StepAttempts("a", "pay") != 1 {
		t.Errorf("%d and %d calls, %d attempts", stub.CallCount(), doubled.CallCount(), e.StepAttempts("a", "pay"))
	}
	e.AssertStepsCompleted("a", "pay", "items/*", "cool down")
	e.AssertOnlyStepsCompleted("a", "pay", "items", "items/*", "cool down", "shipped")
	e.AssertNotCalled("a", "refund")
	if got := e.ExecutedSteps("a"); len(got) != 3 || got[2] != "pay" {
		t.Errorf("executed %q", got)
	}
	failing := durabletest.FailFirst("pay", 1, busy)
	e.Use(failing)
	if _, err := w.Call(ctx, e.Engine, order{"o", []int{1, 2}}, durable.ID("b")); err == nil {
		t.Error("it did not fail")
	}
	if failed := e.RequireStepFailed("b", "pay"); failed.Message != "busy" || failing.CallCount() != 1 {
		t.Errorf("%+v", failed)
	}
}

// A stub's registered errors are found as the step's own would be, and retries hold.
func TestStubErrors(t *testing.T) {
	t.Parallel()
	declined := durable.RegisterError("test.declined", errors.New("declined"))
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		_, err := c.Step("pay", func(context.Context) (int, error) { return 1, nil }, durable.Retry(durable.Fixed(day, 3)))
		if errors.Is(err, declined) {
			return -1, nil
		}
		return 1, err
	})
	e := durabletest.New(t, w)
	e.Use(durabletest.FailFirst("pay", 2, declined))
	if got, err := w.Call(quickly(t), e.Engine, 0, durable.ID("a")); got != 1 || err != nil || e.StepAttempts("a", "pay") != 3 {
		t.Errorf("got %d, %v after %d attempts", got, err, e.StepAttempts("a", "pay"))
	}
	e.Use(durabletest.FailFirst("pay", 3, declined))
	if got, err := w.Call(quickly(t), e.Engine, 0, durable.ID("b")); got != -1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}
