package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// journey is a workflow that waits for a signal, and notes its begin, its compensation and its end.
type journey struct {
	mu    sync.Mutex
	notes []string
	*durable.Workflow[string, string]
}

func newJourney() *journey {
	j := new(journey)
	j.Workflow = durable.Define("journey", func(c *durable.Ctx, in string) (string, error) {
		if err := c.Compensate("undo", func(context.Context) error { j.note("undo " + in); return nil }); err != nil {
			return "", err
		}
		if err := c.Do("begin", func(context.Context) error { j.note("begin " + in); return nil }); err != nil {
			return "", err
		}
		word, err := c.Receive[string]("end")
		return in + " " + word, err
	})
	return j
}

func (j *journey) note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notes = append(j.notes, text)
}

func (j *journey) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.notes, ", ")
}

// Starts at the same time with one key create one run, whichever engines make them. When it has ended, the next start creates another.
func TestStartsWithOneKeyCreateOneLiveRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		j := newJourney()
		worker := engineOn(t, s, j)
		running(t, worker)
		engines := []*durable.Engine{worker, engineOn(t, s), engineOn(t, s)}
		for round := range 3 {
			var all sync.WaitGroup
			ids := make([]string, 12)
			for i := range ids {
				all.Go(func() {
					run, err := j.Start(ctx, engines[i%len(engines)], fmt.Sprint(round, " ", i), durable.Singleton("tenant 1"), durable.InQueue(fmt.Sprint("q", i%2)))
					if err != nil {
						t.Error(err)
						return
					}
					ids[i] = run.ID()
				})
			}
			all.Wait()
			slices.Sort(ids)
			if got := slices.Compact(ids); len(got) != 1 {
				t.Fatalf("round %d: starts lead to the runs %q", round, got)
			}
			other := orFail(j.Start(ctx, worker, "other", durable.Singleton("tenant 2")))(t)
			if other.ID() == ids[0] {
				t.Error("another key leads to the same run")
			}
			for _, id := range []string{ids[0], other.ID()} {
				if err := worker.Signal(ctx, id, "end", "ended"); err != nil {
					t.Fatal(err)
				}
				if _, err := orFail(j.Handle(ctx, worker, id))(t).Result(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		page := orFail(worker.List(ctx, durable.Filter{}, durable.Page{}))(t)
		if len(page.Runs) != 6 {
			t.Errorf("%d runs, want one for each key and round", len(page.Runs))
		}
	})
}

// A refused start names the live run, also when workflow code makes it, and in every replay.
func TestARefusedStartNamesTheLiveRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		j := newJourney()
		asks := durable.Define("asks", func(c *durable.Ctx, _ int) (string, error) {
			_, err := c.Start("ask", j.Workflow, "third", durable.Singleton("k", durable.SingletonRefuse))
			if failed, ok := errors.AsType[*durable.StepError](err); !ok || !errors.Is(err, durable.ErrLive) || !strings.Contains(failed.Message, `run "first"`) {
				return "", fmt.Errorf("not refused: %w", err)
			}
			if !c.Replaying() {
				if err := c.Sleep("nap", 30*time.Millisecond); err != nil {
					return "", err
				}
			}
			return c.Start("joins", j.Workflow, "fourth", durable.Singleton("k"))
		}, durable.OnDrift(durable.DriftContinues)) // a replay does not sleep
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{j, asks}, ParkAfter: time.Millisecond})
		running(t, e)
		orFail(j.Start(ctx, e, "first", durable.Singleton("k", durable.SingletonRefuse), durable.ID("first")))(t)
		_, err := j.Start(ctx, e, "second", durable.Singleton("k", durable.SingletonRefuse), durable.ID("second"))
		live, ok := errors.AsType[*durable.LiveError](err)
		if !ok || !errors.Is(err, durable.ErrLive) || live.ID != "first" || live.Key != "k" || live.Workflow != "journey" || !strings.Contains(err.Error(), `"first"`) {
			t.Fatalf("%+v, %v", live, err)
		}
		if _, err := e.Get(ctx, "second"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("the refused run: %v", err)
		}
		if again := orFail(j.Start(ctx, e, "first", durable.Singleton("k", durable.SingletonRefuse), durable.ID("first")))(t); again.ID() != "first" {
			t.Errorf("the same start again leads to %s", again.ID())
		}
		if _, err := j.Start(ctx, e, "another", durable.Singleton("k"), durable.ID("first")); !errors.Is(err, durable.ErrIDConflict) {
			t.Errorf("another start with the ID: %v", err)
		}
		run := orFail(asks.Start(ctx, e, 0))(t)
		if id, err := run.Result(ctx); id != "first" || err != nil {
			t.Errorf("joined %q, %v", id, err)
		}
		if err := e.Signal(ctx, "first", "end", "now"); err != nil {
			t.Fatal(err)
		}
		if _, err := orFail(j.Handle(ctx, e, "first"))(t).Result(ctx); err != nil {
			t.Fatal(err)
		}
		orFail(j.Start(ctx, e, "second", durable.Singleton("k", durable.SingletonRefuse), durable.ID("second")))(t)
	})
}

// A start that replaces begins when the run before has ended, compensations included. One waits, and the newest wins. What waits can
// be paused, which does not let it begin, and cancelled.
func TestAStartReplacesTheLiveRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		j := newJourney()
		e := engineOn(t, s, j)
		stop := running(t, e)
		first := orFail(j.Start(ctx, e, "1", durable.Singleton("k")))(t)
		waitFor(t, func() bool { return j.all() == "begin 1" })
		if _, err := e.Pause(ctx, first.ID()); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return orFail(e.Get(ctx, first.ID()))(t).Status == durable.StatusPaused })
		stop() // so that what waits stays so
		client := engineOn(t, s)
		replaced := orFail(j.Start(ctx, client, "2", durable.Singleton("k", durable.SingletonReplace)))(t)
		if joined := orFail(j.Start(ctx, client, "joins", durable.Singleton("k")))(t); joined.ID() != replaced.ID() {
			t.Errorf("a start joins %s, want the run that waits, %s", joined.ID(), replaced.ID())
		}
		last := orFail(j.Start(ctx, client, "3", durable.Singleton("k", durable.SingletonReplace), durable.Timeout(time.Hour)))(t)
		if info := orFail(client.Get(ctx, replaced.ID()))(t); info.Status != durable.StatusCancelled || info.Cancellation == nil || info.Cancellation.Actor != "durable" || !strings.Contains(info.Cancellation.Reason, `"k"`) {
			t.Errorf("the start that was replaced while it waited: %+v", info)
		}
		if info := orFail(client.Get(ctx, last.ID()))(t); info.Status != durable.StatusPending || !info.WakeAt.IsZero() || !info.Deadline.IsZero() {
			t.Errorf("the start that waits: %+v", info)
		}
		if _, err := client.Pause(ctx, last.ID()); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resume(ctx, last.ID()); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		if _, err := first.Result(ctx); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the first: %v", err)
		}
		waitFor(t, func() bool { return strings.Contains(j.all(), "begin 3") })
		if got, want := j.all(), "begin 1, undo 1, begin 3"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if info := orFail(e.Get(ctx, last.ID()))(t); info.Deadline.Before(info.StartedAt.Add(time.Hour - time.Minute)) {
			t.Errorf("the timeout counts from another time than the begin %v: %v", info.StartedAt, info.Deadline)
		}
		// The one that waits is cancelled: then the next start waits, and begins.
		gone := orFail(j.Start(ctx, client, "4", durable.Singleton("k", durable.SingletonReplace)))(t)
		_, _ = client.Cancel(ctx, gone.ID())
		orFail(j.Start(ctx, client, "5", durable.Singleton("k", durable.SingletonReplace)))(t)
		waitFor(t, func() bool { return strings.Contains(j.all(), "begin 5") })
	})
}

// Bad settings are errors that name the field and what to do.
func TestBadFoldingOptionsAreRefused(t *testing.T) {
	ctx := within(t)
	j := newJourney()
	e := engineOn(t, openStore(t), j)
	start := func(opts ...durable.StartOption) error {
		_, err := j.Start(ctx, e, "x", opts...)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		is   error
		text string
	}{
		"empty key":        {start(durable.Singleton("")), durable.ErrInvalidName, "the name of a key is empty"},
		"long key":         {start(durable.Debounce(strings.Repeat("k", 1<<20), 1, 1)), durable.ErrInvalidName, "1048576 bytes"},
		"control":          {start(durable.Throttle("a\x00", 1, time.Hour)), durable.ErrInvalidName, "control character"},
		"mode":             {start(durable.Singleton("k", "other")), durable.ErrInvalidConfig, "SingletonJoin"},
		"two modes":        {start(durable.Singleton("k", durable.SingletonJoin, durable.SingletonRefuse)), durable.ErrInvalidConfig, "give it one"},
		"two folds":        {start(durable.Singleton("k"), durable.Throttle("k", 1, time.Hour)), durable.ErrInvalidConfig, "Singleton and Throttle are given together"},
		"no quiet":         {start(durable.Debounce("k", 0, time.Hour)), durable.ErrInvalidConfig, "quiet"},
		"no bound":         {start(durable.Debounce("k", time.Hour, 0)), durable.ErrInvalidConfig, "atMost"},
		"debounce with ID": {start(durable.Debounce("k", 1000, 1000), durable.ID("a")), durable.ErrInvalidConfig, "ID or Delay"},
		"delayed debounce": {start(durable.Debounce("k", 1000, 1000), durable.Delay(1)), durable.ErrInvalidConfig, "ID or Delay"},
		"no starts":        {start(durable.Throttle("k", 0, time.Hour)), durable.ErrInvalidConfig, "n must be between 1 and 1000"},
		"many starts":      {start(durable.Throttle("k", 1001, time.Hour)), durable.ErrInvalidConfig, "shorten the period"},
		"no period":        {start(durable.Throttle("k", 1, -1)), durable.ErrInvalidConfig, "period"},
	} {
		if !errors.Is(c.err, c.is) || !strings.Contains(c.err.Error(), c.text) || len(c.err.Error()) > 1000 {
			t.Errorf("%s: %.1000v", name, c.err)
		}
	}
	if _, err := j.StartMany(ctx, e, []durable.StartItem[string]{{}}, durable.Singleton("k")); !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), "call Start for each item") {
		t.Errorf("StartMany: %v", err)
	}
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (string, error) {
		return c.Child("kid", j.Workflow, "x", durable.Singleton("k"))
	})
	if err == nil || !strings.Contains(err.Error(), "use Ctx.Start") {
		t.Errorf("a child: %v", err)
	}
}
