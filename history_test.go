package durable_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

var errFlaky = errors.New("flaky")

// checkpoint returns the checkpoint with the given name from the history of a run.
func checkpoint(t *testing.T, e *durable.Engine, id, name string) durable.Checkpoint {
	t.Helper()
	for _, c := range historyOf(t, e, id) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("run %q has no checkpoint %q", id, name)
	return durable.Checkpoint{}
}

// A history is in the order in which its calls began, over any number of executions.
func TestHistoryIsInTheOrderOfItsCalls(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for _, name := range []string{"z", "m", "a"} {
				if err := c.Do(name, func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			if _, err := c.Map("items", []int{1}, func(context.Context, int) (int, error) { return 1, nil }); err != nil {
				return 0, err
			}
			return 0, c.Do("b", func(context.Context) error { return nil })
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		if err := e.Signal(within(t), "run", "go", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		var names []string
		last := 0
		for _, c := range historyOf(t, e, "run") {
			names = append(names, c.Name)
			if c.Seq <= last {
				t.Errorf("%q has place %d after %d", c.Name, c.Seq, last)
			}
			last = c.Seq
		}
		if want := []string{"z", "m", "a", "go", "items", "items/0", "b"}; !slices.Equal(names, want) {
			t.Errorf("history %q, want %q", names, want)
		}
		var x durable.Exported
		if err := json.Unmarshal(read(e.Export(within(t), "run"))(t), &x); err != nil || len(x.History) != len(names) {
			t.Fatal(err, x.History)
		}
		for i, h := range x.History {
			if h.Name != names[i] {
				t.Errorf("the export has %q where History has %q", h.Name, names[i])
			}
		}
	})
}

// A sleep is shown as started until it is over, and ends then, or when its run ends before.
func TestSleepIsShownAsItIs(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, d time.Duration) (int, error) { return 0, c.Sleep("nap", d) })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		read(w.Start(within(t), e, time.Hour, durable.ID("long")))(t)
		read(w.Call(within(t), e, 20*time.Millisecond, durable.ID("short")))(t)
		awaitStatus(t, e, "long", durable.StatusWaiting)
		if c := checkpoint(t, e, "long", "nap"); c.Status != "started" || !c.EndedAt.IsZero() || c.NextAt.Sub(c.StartedAt) != time.Hour {
			t.Errorf("a sleep under way: %+v", c)
		}
		if c := checkpoint(t, e, "short", "nap"); c.Status != "completed" || !c.EndedAt.Equal(c.NextAt) {
			t.Errorf("a sleep that is over: %+v", c)
		}
		read(e.Cancel(within(t), "long"))(t)
		awaitStatus(t, e, "long", durable.StatusCancelled)
		info := read(e.Get(within(t), "long"))(t)
		if c := checkpoint(t, e, "long", "nap"); c.Status != "cancelled" || !c.EndedAt.Equal(info.EndedAt) {
			t.Errorf("a sleep whose run was cancelled at %v: %+v", info.EndedAt, c)
		}
	})
}

// A call that has no outcome when its run has ended, or its branch by a choice, is shown as cancelled, and is not in
// RunInfo.OpenCalls.
func TestCallsEndWithTheirRunOrBranch(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			loser := c.Go("loser", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
			winner := c.Go("winner", func(c *durable.Ctx) (int, error) { return c.Receive[int]("go") })
			if _, _, err := durable.Any(c, "which", durable.CancelLosers, loser, winner); err != nil {
				return 0, err
			}
			return 0, c.Do("fails", func(context.Context) error { return errFlaky }, durable.Retry(durable.Fixed(time.Hour, 3)))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "loser/never", durable.CheckpointStarted) // otherwise the choice could be recorded before the call has a row
		if err := e.Signal(within(t), "run", "go", 1); err != nil {
			t.Fatal(err)
		}
		ctx := within(t)
		for ctx.Err() == nil && !slices.ContainsFunc(historyOf(t, e, "run"), func(c durable.Checkpoint) bool { return c.Status == "backoff" }) {
		}
		chosen := checkpoint(t, e, "run", "which")
		if c := checkpoint(t, e, "run", "loser/never"); c.Status != "cancelled" || !c.EndedAt.Equal(chosen.EndedAt) {
			t.Errorf("the receive of a branch that a choice ended at %v: %+v", chosen.EndedAt, c)
		}
		info := read(e.Get(within(t), "run"))(t)
		if len(info.OpenCalls) != 1 || info.OpenCalls[0].Name != "fails" || info.LastFailure == nil || !strings.Contains(info.LastFailure.Err.Message, "flaky") {
			t.Errorf("it waits for %+v, last failure %+v", info.OpenCalls, info.LastFailure)
		}
		read(e.Cancel(within(t), "run"))(t)
		awaitStatus(t, e, "run", durable.StatusCancelled)
		ended := read(e.Get(within(t), "run"))(t).EndedAt
		c := checkpoint(t, e, "run", "fails")
		if c.Status != "cancelled" || !c.EndedAt.Equal(ended) || c.Err == nil {
			t.Errorf("the backoff of a run that was cancelled at %v: %+v", ended, c)
		}
	})
}

// The first and the last attempt that failed are kept. A step whose first attempt succeeds has none.
func TestFailedAttemptsAreKept(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var tries atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Do("fine", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			err := c.Do("flaky", func(ctx context.Context) error {
				if n := tries.Add(1); n < 4 {
					return errors.Join(errFlaky, errors.New(strings.Repeat("x", int(n))))
				}
				return nil
			}, durable.Retry(durable.Fixed(time.Millisecond, 5)))
			if err != nil {
				return 0, err
			}
			return 0, c.Do("broken", func(context.Context) error { return errFlaky })
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Name: "it"})
		running(t, e)
		if _, err := w.Call(within(t), e, 0, durable.ID("run")); err == nil {
			t.Fatal("it did not fail")
		}
		if c := checkpoint(t, e, "run", "fine"); c.FirstFailure != nil || c.LastFailure != nil {
			t.Errorf("a step that succeeded at first: %+v", c)
		}
		c := checkpoint(t, e, "run", "flaky")
		first, last := c.FirstFailure, c.LastFailure
		if c.Status != "completed" || c.Attempts != 4 || first == nil || last == nil || first.Attempt != 1 || last.Attempt != 3 {
			t.Fatalf("a step that succeeded at its fourth attempt: %+v, %+v, %+v", c, first, last)
		}
		for n, f := range map[string]*durable.FailedAttempt{"\nx": first, "\nxxx": last} {
			if f.Interrupted || f.Worker != "it" || f.WorkerID == "" || f.Err == nil || f.Err.Message != "flaky"+n || f.EndedAt.Before(f.StartedAt) || f.StartedAt.IsZero() {
				t.Errorf("a failed attempt: %+v, %+v", f, f.Err)
			}
		}
		if !first.StartedAt.Equal(c.StartedAt) || last.EndedAt.After(c.EndedAt) {
			t.Errorf("attempts from %v to %v of a step from %v to %v", first.StartedAt, last.EndedAt, c.StartedAt, c.EndedAt)
		}
		if c = checkpoint(t, e, "run", "broken"); c.Status != "failed" || c.LastFailure == nil || c.FirstFailure.Err == nil || c.LastFailure.Err.Message != "flaky" {
			t.Errorf("a step that failed for good: %+v", c)
		}
	})
}

// When a process dies during an attempt, the worker that takes the run over records the time and the dead worker with the
// attempt. RunInfo.Loss names the dead worker, and Crashes counts the crash until there is a new checkpoint.
func TestDeathsAreKept(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		held := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Do("first", held.pass, durable.Retry(durable.Fixed(0, 3))); err != nil {
				return 0, err
			}
			return 0, c.Do("second", held.pass)
		})
		at := dbNow(t, s)
		dead, id := store.NewUUID(0), store.NewUUID(7)
		epoch := store.Epoch{}.Next(1)
		began := at.Add(-time.Minute)
		batch := &store.Batch{
			Starts: []*store.StartWrite{{Run: store.Run{
				UUID: id, Name: id.String(), Workflow: "w", Queue: "default", Status: store.Running, Epoch: epoch, Owner: store.ValidNullUUID(dead), Input: []byte("0"),
				CreatedAt: began, StartedAt: began, WakeAt: at.Add(-time.Second),
			}}},
			Steps: []*store.StepWrite{{Step: store.Step{
				Run: id, Seq: store.EncodeSeq(4, false), Name: "first", Kind: store.KindStep, Status: store.StepStarted, Attempt: 1, Epoch: epoch, StartedAt: began,
				Failures: []byte(`{"open":{"attempt":1,"worker":"host:1","worker_id":"` + dead.String() + `","started_at":"` + began.Format(time.RFC3339Nano) + `"}}`),
			}}},
		}
		if err := s.Commit(within(t), batch); err != nil {
			t.Fatal(err)
		}
		e := engineOn(t, s, w)
		running(t, e)
		<-held.entered
		ctx := within(t)
		for ctx.Err() == nil && checkpoint(t, e, id.String(), "first").Attempts < 2 { // until the started marker of the second attempt is written
		}
		check := func(f *durable.FailedAttempt) {
			t.Helper()
			if f == nil || !f.Interrupted || f.Err != nil || f.Attempt != 1 || f.Worker != "host:1" || f.WorkerID != dead.String() || !f.StartedAt.Equal(began) {
				t.Errorf("the attempt that died: %+v", f)
			}
		}
		info := read(e.Get(within(t), id.String()))(t)
		check(info.LastFailure)
		if info.Crashes != 1 || info.LastLeaseLoss == nil || info.LastLeaseLoss.Worker != dead.String() || info.LastLeaseLoss.At.Before(at) {
			t.Errorf("after a crash: %d crashes, %+v", info.Crashes, info.LastLeaseLoss)
		}
		held.open <- struct{}{}
		<-held.entered // the first step is recorded
		info = read(e.Get(within(t), id.String()))(t)
		if info.Crashes != 0 || info.LastLeaseLoss == nil || info.LastFailure != nil {
			t.Errorf("after a new checkpoint: %d crashes, %+v, %+v", info.Crashes, info.LastLeaseLoss, info.LastFailure)
		}
		c := checkpoint(t, e, id.String(), "first")
		check(c.FirstFailure)
		close(held.open)
		awaitStatus(t, e, id.String(), durable.StatusCompleted)
		if c.Seq != 4 || c.Attempts != 2 || checkpoint(t, e, id.String(), "second").Seq <= 4 {
			t.Errorf("the step that was executed again: %+v", c)
		}
	})
}

// The checkpoint of a Map shows whether its items are done.
func TestHistoryShowsHowFarAMapIs(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		w := durable.Define("w", func(c *durable.Ctx, kind string) (int, error) {
			_, err := c.Map("m", []int{1, 2, 3}, func(ctx context.Context, i int) (int, error) {
				switch {
				case kind == "fails" && i == 2:
					return 0, errDeclined
				case kind != "fails" && i == 3:
					return i, g.pass(ctx)
				}
				return i, nil
			})
			return 0, err
		})
		e := engineOn(t, s, w)
		running(t, e)
		status := func(id string) durable.Checkpoint {
			for _, c := range historyOf(t, e, id) {
				if c.Kind == durable.KindMap {
					return c
				}
			}
			return durable.Checkpoint{}
		}
		for _, kind := range []string{"done", "cancelled", "fails"} {
			if _, err := w.Start(within(t), e, kind, durable.ID(kind)); err != nil {
				t.Fatal(err)
			}
			if kind == "fails" {
				continue
			}
			<-g.entered
			waitFor(t, func() bool { return status(kind).Status != "" })
			if got := status(kind); got.Status != "started" || !got.EndedAt.IsZero() {
				t.Errorf("%s, under way: %+v", kind, got)
			}
		}
		must(t)(e.Cancel(within(t), "cancelled"))
		awaitStatus(t, e, "cancelled", durable.StatusCancelled)
		close(g.open)
		awaitStatus(t, e, "done", durable.StatusCompleted)
		awaitStatus(t, e, "fails", durable.StatusFailed)
		for kind, want := range map[string]durable.CheckpointStatus{"done": "completed", "cancelled": "cancelled", "fails": "failed"} {
			if got := status(kind); got.Status != want || got.EndedAt.IsZero() {
				t.Errorf("%s: %+v, want it %s", kind, got, want)
			}
		}
	})
}
