package durable_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The timeout of a child that is retried with its parent counts from when the retry is due, so the wait takes nothing of it.
func TestTheTimeoutOfAChildThatIsRetriedLater(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 1, err: errClosed}
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Do("charge", x.charge) })
		nested := durable.Define("nested", func(c *durable.Ctx, _ int) (int, error) {
			return c.Child("kid", kid, 0, durable.Timeout(20*time.Minute))
		})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Child("nested", nested, 0, durable.Timeout(30*time.Minute))
		}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
		e := engineOn(t, s, w, nested, kid)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(read(e.Generations(within(t), "a"))(t)) == 2 })
		due := read(e.Get(within(t), "a"))(t).WakeAt
		child := read(e.Tree(within(t), "a"))(t).Children[0]
		for _, c := range []struct {
			info    durable.RunInfo
			timeout time.Duration
		}{{child.RunInfo, 30 * time.Minute}, {child.Children[0].RunInfo, 20 * time.Minute}} {
			if want := due.Add(c.timeout); !c.info.Deadline.Equal(want) || !c.info.WakeAt.Equal(due) {
				t.Errorf("%s is due at %v and expires at %v, want %v and %v", c.info.Workflow, c.info.WakeAt, c.info.Deadline, due, want)
			}
		}
	})
}

// A retry or a copy of a run has the timeout that its start, or SetTimeout, has given it. Neither a delay, nor a pause that has frozen its timers,
// nor the time before SetTimeout, nor an earlier retry is part of it.
func TestARepairBeginsTheTimeoutAnew(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			return 0, c.Do("charge", func(context.Context) error { return errDeclined })
		}, durable.RetryRun(durable.Fixed(time.Millisecond, 2)))
		e := engineOn(t, s, w)
		stop := running(t, e)
		want := map[string]time.Duration{"plain": time.Hour, "delayed": time.Hour, "frozen": time.Hour, "set": 2 * time.Hour, "set first": 2 * time.Hour, "removed": 0, "folded": time.Hour}
		for _, id := range slices.Collect(maps.Keys(want)) {
			opts := []durable.StartOption{durable.ID(id), durable.Timeout(time.Hour)}
			switch id {
			case "delayed":
				opts = append(opts, durable.Delay(20*time.Millisecond))
			case "set first":
				opts = opts[:1]
			case "folded":
				opts = append(opts[1:], durable.Debounce("key", 20*time.Millisecond, time.Second))
			}
			run := read(w.Start(within(t), e, 0, opts...))(t)
			if id == "folded" { // its ID is generated
				want[run.ID()] = want[id]
				delete(want, id)
				id = run.ID()
			}
			waitsForSignal := func() bool {
				h := historyOf(t, e, id)
				return len(h) == 1 && read(e.Get(within(t), id))(t).Status == durable.StatusWaiting
			}
			waitFor(t, waitsForSignal)
			switch id {
			case "frozen":
				must(t)(e.Pause(within(t), id))
				must(t)(e.Resume(within(t), id, durable.FreezeTimers()))
			case "set", "set first", "removed":
				if err := e.SetTimeout(within(t), id, want[id]); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Signal(within(t), id, "go", 1); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, id, durable.StatusFailed)
		}
		stop()
		timeoutOf := func(id string) time.Duration {
			info := read(e.Get(within(t), id))(t)
			if info.Deadline.IsZero() {
				return 0
			}
			return info.Deadline.Sub(info.WakeAt)
		}
		for id, want := range want {
			if _, err := e.Retry(within(t), id); err != nil {
				t.Fatal(err)
			}
			if got := timeoutOf(id); got != want {
				t.Errorf("%s: a retry has the timeout %v, want %v", id, got, want)
			}
			if _, err := e.Fork(within(t), id, durable.FromEnd(), durable.NewID(id+" copy")); err != nil {
				t.Fatal(err)
			}
			if got := timeoutOf(id + " copy"); got != want {
				t.Errorf("%s: a copy has the timeout %v, want %v", id, got, want)
			}
		}
	})
}
