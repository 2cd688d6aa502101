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

	"github.com/seed8ec063be/durable"
)

func signal(t testing.TB, e *durable.Engine, id, name string, payload any, opts ...durable.SignalOption) {
	t.Helper()
	if err := e.Signal(within(t), id, name, payload, opts...); err != nil {
		t.Fatal(err)
	}
}

// Signals that are sent before the wait are kept. They are received in order, and once, also if the run parks and is replayed.
func TestSignals(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, n int) ([]int, error) {
			var got []int
			for i := range n {
				v, err := c.Receive[int](fmt.Sprint("number ", i), durable.OnSignal("number"))
				if err != nil {
					return nil, err
				}
				got = append(got, v)
			}
			return got, nil
		})
		client := engineOn(t, s)
		run, err := w.Start(within(t), client, 5, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			signal(t, client, "run", "number", i)
		}
		signal(t, client, run.RunID(), "other", "not asked for")
		e := engineOn(t, s, w)
		stop := running(t, e)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		signal(t, e, "run", "number", 3, durable.SignalKey("three"))
		signal(t, e, "run", "number", 3, durable.SignalKey("three"))
		awaitStatus(t, e, "run", durable.StatusWaiting)
		stop()
		signal(t, client, "run", "number", 4)
		running(t, engineOn(t, s, w))
		if got, err := run.Result(within(t)); err != nil || !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
			t.Errorf("got %v, %v", got, err)
		}
		var state *durable.StateError
		if err := client.Signal(within(t), "run", "number", 5); !errors.As(err, &state) || state.Status != durable.StatusCompleted {
			t.Errorf("a signal to a completed run: %v", err)
		}
	})
}

func TestSignalRefusals(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s)
		if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		signal(t, e, "run", "go", 1, durable.SignalKey("k"))
		for name, c := range map[string]struct {
			err  error
			want error
		}{
			"unknown run":           {e.Signal(within(t), "nobody", "go", 1), durable.ErrNotFound},
			"no name":               {e.Signal(within(t), "run", "", 1), durable.ErrInvalidName},
			"a control character":   {e.Signal(within(t), "run", "\x1fx", 1), durable.ErrInvalidName},
			"no payload":            {e.Signal(within(t), "run", "go", make(chan int)), durable.ErrNotEncodable},
			"a large payload":       {e.Signal(within(t), "run", "go", strings.Repeat("x", 5<<20)), durable.ErrPayloadTooLarge},
			"an empty key":          {e.Signal(within(t), "run", "go", 1, durable.SignalKey("")), durable.ErrInvalidName},
			"a key, other payload":  {e.Signal(within(t), "run", "go", 2, durable.SignalKey("k")), durable.ErrIDConflict},
			"a key, other name":     {e.Signal(within(t), "run", "stop", 1, durable.SignalKey("k")), durable.ErrIDConflict},
			"a text that no token":  {e.Complete(within(t), "abc", 1), durable.ErrInvalidToken},
			"a token of another":    {e.Complete(within(t), "durable-AAAA", 1), durable.ErrInvalidToken},
			"the same key and text": {e.Signal(within(t), "run", "go", 1, durable.SignalKey("k")), nil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: got %v, want %v", name, c.err, c.want)
			}
		}
	})
}

// Many senders send at once, with two engines: each signal is received once.
func TestManySenders(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const senders, each = 8, 10
		w := durable.Define("w", func(c *durable.Ctx, n int) (map[string]int, error) {
			seen := make(map[string]int)
			for i := range n {
				v, err := c.Receive[string](fmt.Sprint(i), durable.OnSignal("v"))
				if err != nil {
					return nil, err
				}
				seen[v]++
			}
			return seen, nil
		})
		e, client := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		run, err := w.Start(within(t), e, senders*each, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		var sending sync.WaitGroup
		for sender := range senders {
			sending.Go(func() {
				from := []*durable.Engine{e, client}[sender%2]
				for i := range each {
					if err := from.Signal(within(t), "run", "v", fmt.Sprint(sender, "-", i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		sending.Wait()
		seen, err := run.Result(within(t))
		if err != nil || len(seen) != senders*each {
			t.Errorf("%d signals received, %v", len(seen), err)
		}
	})
}

func TestReceiveTimeouts(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		helper := durable.Define("helper", func(_ *durable.Ctx, text string) (string, error) { return "asked: " + text, nil })
		opts := map[string][]durable.ReceiveOption{
			"fail":   nil,
			"else":   {durable.Else("nobody")},
			"cancel": {durable.ElseCancel()},
			"expire": {durable.ElseExpire()},
			"start":  {durable.ElseStart(helper, "please look")},
			"signal": {durable.ElseSignal("boss", "late", "please look")},
		}
		var undone atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, kind string) (string, error) {
			if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return "", err
			}
			return c.Receive[string]("answer", append(opts[kind], durable.Within(150*time.Millisecond))...)
		})
		boss := durable.Define("boss", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("late") })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, helper, boss}, ParkAfter: 20 * time.Millisecond})
		running(t, e)
		told, err := boss.Start(within(t), e, 0, durable.ID("boss"))
		if err != nil {
			t.Fatal(err)
		}
		runs := make(map[string]*durable.Run[string])
		for kind := range opts {
			if runs[kind], err = w.Start(within(t), e, kind, durable.ID(kind)); err != nil {
				t.Fatal(err)
			}
		}
		result := func(kind string) (string, error) { return runs[kind].Result(within(t)) }
		var failed *durable.RunError
		if _, err := result("fail"); !errors.Is(err, durable.ErrTimeout) || !errors.As(err, &failed) || failed.Status != durable.StatusFailed || failed.Step != "answer" {
			t.Errorf("fail: %v", err)
		}
		if got, err := result("else"); got != "nobody" || err != nil {
			t.Errorf("else: %q, %v", got, err)
		}
		if _, err := result("cancel"); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("cancel: %v", err)
		}
		if _, err := result("expire"); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("expire: %v", err)
		}
		if undone.Load() != 3 {
			t.Errorf("%d of 3 compensated", undone.Load())
		}
		if got, err := told.Result(within(t)); got != "please look" || err != nil {
			t.Errorf("the other run was told %q, %v", got, err)
		}
		id := runs["start"].RunID() + ":answer"
		started, err := helper.Handle(within(t), e, id)
		for errors.Is(err, durable.ErrNotFound) && within(t).Err() == nil {
			started, err = helper.Handle(within(t), e, id)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := started.Result(within(t)); got != "asked: please look" || err != nil {
			t.Errorf("the escalation returned %q, %v", got, err)
		}
		for _, kind := range []string{"start", "signal"} { // the receives continue to wait
			signal(t, e, kind, "answer", "at last")
			if got, err := result(kind); got != "at last" || err != nil {
				t.Errorf("%s: %q, %v", kind, got, err)
			}
		}
	})
}

func TestReceiveRefusals(t *testing.T) {
	for name, opts := range map[string][]durable.ReceiveOption{
		"else without a bound": {durable.Else("x")},
		"else of another type": {durable.Within(time.Second), durable.Else(1)},
		"a signal without one": {durable.OnSignal("")},
	} {
		_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("r", opts...) })
		if !errors.Is(err, durable.ErrInvalidConfig) && !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("outer", func(context.Context) (string, error) { return c.Receive[string]("inner") })
	})
	if !errors.Is(err, durable.ErrNestedStep) {
		t.Errorf("a receive inside a step: %v", err)
	}
}

// An outside system completes a token before the wait or after its begin, once or several times.
func TestCallback(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		tokens := make(chan string, 10)
		w := durable.Define("w", func(c *durable.Ctx, _ int) ([]bool, error) {
			a, b := c.Callback[bool]("a"), c.Callback[bool]("b")
			err := c.Do("send", func(context.Context) error {
				tokens <- a.Token()
				tokens <- b.Token()
				return nil
			})
			if err != nil {
				return nil, err
			}
			first, err := a.Wait(durable.Within(time.Hour))
			if err != nil {
				return nil, err
			}
			second, err := b.Wait()
			return []bool{first, second}, err
		})
		e, client := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		run, err := w.Start(within(t), e, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, b := <-tokens, <-tokens
		for range 2 {
			if err := client.Complete(within(t), b, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Complete(within(t), b, false); !errors.Is(err, durable.ErrIDConflict) || !strings.Contains(err.Error(), "another value before") {
			t.Errorf("another value: %v", err)
		}
		awaitStatus(t, e, run.ID(), durable.StatusWaiting)
		if err := client.Complete(within(t), a, false); err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); err != nil || !slices.Equal(got, []bool{false, true}) {
			t.Errorf("got %v, %v", got, err)
		}
		if err := client.Complete(within(t), a, false); err != nil {
			t.Errorf("the same value once more, after the run's end: %v", err)
		}
	})
}
