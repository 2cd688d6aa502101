package durable_test

import (
	"context"
	"encoding/json/v2"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// logged returns a configuration with a logger at Info, and the log that it writes.
func logged(cfg durable.Config) (durable.Config, *lines) {
	log := new(lines)
	cfg.Logger = slog.New(slog.NewJSONHandler(log, nil))
	return cfg, log
}

// only returns the one line with the message. It fails the test if there are more or none.
func (l *lines) only(t *testing.T, message string) map[string]any {
	t.Helper()
	var found []map[string]any
	for line := range strings.Lines(l.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d lines %q, want one, in:\n%s", len(found), message, l)
	}
	return found[0]
}

// none checks that no line has the message.
func (l *lines) none(t *testing.T, message string) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == message {
			t.Errorf("a line %q: %v", message, fields)
		}
	}
}

// await waits until a line has the message.
func (l *lines) await(t *testing.T, message string) {
	t.Helper()
	if !poll(within(t), func() bool { return strings.Contains(l.String(), message) }) {
		t.Fatalf("no line %q in:\n%s", message, l)
	}
}

// has checks a line's level and some of its fields.
func has(t *testing.T, line map[string]any, level string, fields map[string]any) {
	t.Helper()
	if line["level"] != level {
		t.Errorf("%q is written at %s, want %s", line["msg"], line["level"], level)
	}
	for key, want := range fields {
		if line[key] != want {
			t.Errorf("%q has %s=%v, want %v", line["msg"], key, line[key], want)
		}
	}
}

// A step that finally failed and the run that failed with it are logged once each, with the attempts. A later execution does not
// log them again. No line contains the values of the run.
func TestFailuresAreLoggedOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		held := newGate()
		w := durable.Define("pay", func(c *durable.Ctx, card string) (string, error) {
			_, err := c.Step("charge", func(context.Context) (string, error) { return card, errDeclined },
				durable.Retry(durable.Fixed(0, 3)))
			if herr := c.Do("hold", held.pass); herr != nil {
				return "", herr
			}
			return card, err
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, engineWith(t, s, cfg))
		if _, err := w.Start(within(t), engineWith(t, s, durable.Config{}), "4111-1111", durable.ID("order-42")); err != nil {
			t.Fatal(err)
		}
		<-held.entered
		stop()
		close(held.open)
		if _, err := w.Call(within(t), engineWith(t, s, cfg), "4111-1111", durable.ID("order-42")); err == nil {
			t.Fatal("it did not fail")
		}
		has(t, log.only(t, "a step failed"), "WARN", map[string]any{
			"step": "charge", "attempt": 3.0, "max_attempts": 3.0, "error": "card declined", "error_type": "test.declined", "name": "order-42", "workflow": "pay",
		})
		has(t, log.only(t, "a run failed"), "WARN", map[string]any{"name": "order-42", "workflow": "pay", "step": "charge", "error_type": "test.declined"})
		if strings.Contains(log.String(), "4111-1111") { // 4111 alone may be part of a time or of an ID
			t.Errorf("a payload is in the log:\n%s", log)
		}
	})
}

// A receive that fails because its time is over is logged; a receive that continues in another way is not.
func TestTimedOutReceivesAreLogged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.Receive[int]("maybe", durable.Within(time.Millisecond), durable.Else(1)); err != nil {
				return 0, err
			}
			_, err := c.Receive[int]("surely", durable.Within(time.Millisecond))
			return 0, err
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}})
		if _, err := w.Call(within(t), engineWith(t, s, cfg), 0); err == nil {
			t.Fatal("it did not fail")
		}
		has(t, log.only(t, "a receive timed out"), "WARN", map[string]any{"step": "surely"})
	})
}

// A failed compensation is logged by the execution in which it failed, and by no other.
func TestFailedCompensationsAreLoggedOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		held := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("second", held.pass); err != nil {
				return 0, err
			}
			if err := c.Compensate("first", func(context.Context) error { return errDeclined }); err != nil {
				return 0, err
			}
			return 0, errDeclined
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		e := engineWith(t, s, cfg)
		stop := running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		<-held.entered
		stop()
		close(held.open)
		if _, err := w.Call(within(t), engineWith(t, s, cfg), 0, durable.ID("a")); err == nil {
			t.Fatal("it did not fail")
		}
		has(t, log.only(t, "a compensation failed"), "ERROR", map[string]any{"step": "first", "attempt": 1.0, "max_attempts": 1.0})
	})
}

// A cancel is logged where it takes effect: by the process of the run, or by the process that requested it.
func TestCancelsAreLogged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		held := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("hold", held.pass) })
		client, asked := logged(durable.Config{})
		e := engineWith(t, s, client)
		if _, err := w.Start(within(t), e, 0, durable.ID("waits")); err != nil {
			t.Fatal(err)
		}
		must(t)(e.Cancel(within(t), "waits", durable.Reason("no stock"), durable.Actor("ada")))
		has(t, asked.only(t, "runs that were not executing were cancelled"), "INFO", map[string]any{"count": 1.0, "reason": "no stock", "actor": "ada"})

		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}})
		running(t, engineWith(t, s, cfg))
		run, err := w.Start(within(t), e, 0, durable.ID("works"))
		if err != nil {
			t.Fatal(err)
		}
		<-held.entered
		must(t)(e.Cancel(within(t), "works", durable.Reason("no stock"), durable.Actor("ada")))
		if _, err := run.Result(within(t)); err == nil {
			t.Fatal("it was not cancelled")
		}
		log.await(t, "a run was cancelled")
		has(t, log.only(t, "a run was cancelled"), "INFO", map[string]any{"name": "works", "reason": "cancelled by ada: no stock"})
		asked.only(t, "runs that were not executing were cancelled")
	})
}

// When a run killed its processes until it was paused, a line has the number of crashes.
func TestCrashLoopsAreLogged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		now, err := s.Now(within(t))
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(-time.Hour)
		id, name := store.NewRootIdentityAt("killer", now)
		owner := uuid.New()
		err = s.Commit(within(t), &store.Batch{Starts: []*store.StartWrite{{Run: store.Run{ // the owner is a process that died with the run
			UUID: id, Name: name, Workflow: "w", Queue: durable.DefaultQueue, Status: store.Running, Epoch: store.Epoch{Count: 1}, Owner: store.ValidNullUUID(owner),
			Input: []byte("0"), CreatedAt: now, StartedAt: now, WakeAt: now,
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{durable.Define("w", double)}, MaxCrashes: 1})
		e := engineWith(t, s, cfg)
		running(t, e)
		if !becomes(t, e, "killer", durable.StatusPaused) {
			t.Fatal("it was not paused")
		}
		log.await(t, "a run was paused")
		has(t, log.only(t, "a run was paused"), "WARN", map[string]any{"name": "killer", "workflow": "w", "crashes": 1.0, "max_crashes": 1.0})
	})
}

// A pause that was requested before the run lost its worker is logged as a pause, not as a crash loop.
func TestRequestedPausesAreNotLoggedAsCrashLoops(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		now, err := s.Now(within(t))
		if err != nil {
			t.Fatal(err)
		}
		id, name := store.NewRootIdentityAt("orphan", now)
		err = s.Commit(within(t), &store.Batch{Starts: []*store.StartWrite{{Run: store.Run{ // the owner is a process that died with the run
			UUID: id, Name: name, Workflow: "w", Queue: durable.DefaultQueue, Status: store.Running, Epoch: store.Epoch{Count: 1}, Owner: store.ValidNullUUID(uuid.New()),
			Input: []byte("0"), CreatedAt: now, StartedAt: now, WakeAt: now.Add(200 * time.Millisecond),
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{durable.Define("w", double)}})
		e := engineWith(t, s, cfg)
		must(t)(e.Pause(within(t), "orphan", durable.Reason("stock-taking"), durable.Actor("ada")))
		running(t, e)
		log.await(t, "a run that lost its worker was paused, as requested before")
		has(t, log.only(t, "a run that lost its worker was paused, as requested before"), "INFO", map[string]any{"name": "orphan", "reason": "stock-taking", "actor": "ada"})
		log.none(t, "a run was paused")
	})
}

// A worker logs its name and its workflows when it starts, that it drains, and that it has stopped. An idle worker logs nothing
// in between.
func TestWorkersLifeIsLogged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		cfg, log := logged(durable.Config{
			Name: "shop-1", Version: "v1.2.3", Lease: 3 * time.Second, // so that it renews soon, and a slow disk does not end that
			Workflows: []durable.Definition{durable.Define("b", double), durable.Define("a", double), durable.Define("c", double)},
			Queues:    []string{durable.DefaultQueue, "slow"},
		})
		e := engineWith(t, s, cfg)
		stop := running(t, e)
		waitFor(t, func() bool { return e.Stats().Heartbeats > 0 })
		stop()
		started := log.only(t, "the worker has started")
		has(t, started, "INFO", map[string]any{"name": "shop-1", "version": "v1.2.3", "store": s.Name()})
		for key, want := range map[string][]any{"workflows": {"a", "b", "c"}, "queues": {durable.DefaultQueue, "slow"}} {
			got, ok := started[key].([]any)
			if !ok || len(got) != len(want) {
				t.Fatalf("%s are %v, want %v", key, started[key], want)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s are %v, want %v", key, got, want)
				}
			}
		}
		has(t, log.only(t, "the worker is draining"), "INFO", map[string]any{"count": 0.0, "worker": started["worker"]})
		has(t, log.only(t, "the worker has stopped"), "INFO", map[string]any{"count": 0.0, "worker": started["worker"]})
		if n := strings.Count(log.String(), "\n"); n != 3 {
			t.Errorf("an idle worker wrote %d lines, want 3:\n%s", n, log)
		}
	})
}

// When a step is renamed under a live run, the step is executed under both names, and the end of the run logs this.
func TestRecordedStepsThatWereNotCalledAreTold(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		version := func(step string) *durable.Workflow[int, int] {
			return durable.Define("pay", func(c *durable.Ctx, _ int) (int, error) {
				if err := c.Do("check", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				if err := c.Do(step, func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				return c.Receive[int]("go")
			}, durable.OnDrift(durable.DriftContinues))
		}
		old := version("charge")
		e := engineOn(t, s, old)
		stop := running(t, e)
		if _, err := old.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		if !becomes(t, e, "a", durable.StatusWaiting) {
			stop()
			t.Fatal("it does not wait")
		}
		stop()
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{version("charge card")}})
		e = engineWith(t, s, cfg)
		defer running(t, e)()
		if err := e.Signal(within(t), "a", "go", 7); err != nil {
			t.Fatal(err)
		}
		if !becomes(t, e, "a", durable.StatusCompleted) {
			t.Fatal("it does not end")
		}
		const line = "a run completed without calling recorded steps: if they were renamed, they ran again under their new names"
		log.await(t, line)
		if steps, _ := log.only(t, line)["steps"].([]any); len(steps) != 1 || steps[0] != "charge" {
			t.Errorf("the line names %v, want charge", steps)
		}
	})
}

// Run on an engine without workflows executes nothing, and says so once.
func TestRunWithoutWorkflowsIsLogged(t *testing.T) {
	const message = "Run was called on an engine without workflows, and executes nothing: list them in Config.Workflows, or leave Run out"
	onStores(t, func(t *testing.T, s durable.Store) {
		cfg, log := logged(durable.Config{})
		e := engineWith(t, s, cfg)
		stop := running(t, e)
		log.await(t, message)
		if workers := orFail(e.Workers(within(t)))(t); len(workers) != 0 {
			t.Errorf("it is registered: %+v", workers)
		}
		stop()
		has(t, log.only(t, message), "WARN", nil)
		cfg, log = logged(durable.Config{Workflows: []durable.Definition{durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })}})
		stop = running(t, engineWith(t, s, cfg))
		log.await(t, "the worker has started")
		stop()
		log.none(t, message)
	})
}
