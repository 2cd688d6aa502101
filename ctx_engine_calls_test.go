package durable_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
)

// seen collects the results that the executions of a workflow got.
type seen[T any] struct {
	mu  sync.Mutex
	all []T
}

func (s *seen[T]) add(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, v)
}

func (s *seen[T]) values() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// collector is a workflow that receives signals until it receives the text "end".
var collector = durable.Define("collector", func(c *durable.Ctx, _ int) ([]string, error) {
	var got []string
	for i := 0; ; i++ {
		text, err := c.Receive[string](string(rune('a'+i)), durable.OnSignal("note"))
		if err != nil {
			return nil, err
		}
		if text == "end" {
			return got, nil
		}
		got = append(got, text)
	}
})

var noted = durable.Define("noted", func(_ *durable.Ctx, text string) (string, error) { return text, nil })

// A run sends a signal, starts a run, sets tags, and calls Now and UUID. Each takes effect once, and every execution gets the
// same results.
func TestCallsOfARunTakeEffectOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		type values struct {
			now                 time.Time
			uuid, made, started string
		}
		var executions seen[values]
		w := durable.Define("caller", func(c *durable.Ctx, _ int) (int, error) {
			var v values
			var errs [8]error
			v.now, errs[0] = c.Now("now")
			v.uuid, errs[1] = c.UUID("uuid")
			errs[2] = c.SetTags("tags", map[string]string{"team.owner": "red", "team.gone": ""})
			errs[3] = c.Signal("note it", "sink", "note", "once")
			v.made, errs[4] = c.Start("made", noted, "a")
			v.started, errs[5] = c.Start("named", noted, "b", durable.ID("noted-b"))
			_, errs[6] = c.Go("branch", func(c *durable.Ctx) (int, error) { return 0, c.Signal("note it", "sink", "note", "in a branch") }).Wait()
			if err := errors.Join(errs[:]...); err != nil {
				return 0, err
			}
			executions.add(v)
			_, err := c.Receive[int]("go")
			return 0, err
		})
		ctx := within(t)
		var run *durable.Run[int]
		for range 2 { // the second Call replays
			before := len(executions.values())
			e := engineOn(t, s, w, collector, noted)
			stop := running(t, e)
			if _, err := collector.Start(ctx, e, 0, durable.ID("sink")); err != nil {
				t.Fatal(err)
			}
			var err error
			if run, err = w.Start(ctx, e, 0, durable.ID("caller")); err != nil {
				t.Fatal(err)
			}
			if before > 0 {
				if err := e.Signal(ctx, "caller", "go", 1); err != nil {
					t.Fatal(err)
				}
				if _, err := run.Result(ctx); err != nil {
					t.Fatal(err)
				}
			}
			waitFor(t, func() bool { return len(executions.values()) > before })
			stop()
		}
		all := executions.values()
		for _, v := range all[1:] {
			if v != all[0] {
				t.Errorf("an execution saw %+v, the first one %+v", v, all[0])
			}
		}
		first := all[0]
		if id, err := uuid.Parse(first.uuid); err != nil || id.Version() != 7 || first.now.Location() != time.UTC || first.now.IsZero() {
			t.Errorf("got %+v", first)
		}
		if first.made != run.RunID()+":made" || first.started != "noted-b" {
			t.Errorf("the started runs are %q and %q", first.made, first.started)
		}
		e := engineOn(t, s, w, collector, noted)
		running(t, e)
		if err := e.Signal(ctx, "sink", "note", "end"); err != nil {
			t.Fatal(err)
		}
		sink, err := collector.Handle(ctx, e, "sink")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sink.Result(ctx); err != nil || !slices.Equal(got, []string{"once", "in a branch"}) {
			t.Errorf("the other run received %q, %v", got, err)
		}
		for id, want := range map[string]string{first.made: "a", "noted-b": "b"} {
			h, err := noted.Handle(ctx, e, id)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := h.Result(ctx); got != want || err != nil {
				t.Errorf("run %q: %q, %v", id, got, err)
			}
		}
		page, err := e.List(ctx, durable.Filter{Workflow: "noted"}, durable.Page{})
		if err != nil || len(page.Runs) != 2 || page.Runs[0].Parent != "" || page.Runs[1].Parent != "" {
			t.Errorf("the runs started are %+v, %v", page.Runs, err)
		}
		info, err := e.Get(ctx, "caller")
		if err != nil || !maps.Equal(info.Tags, map[string]string{"team.owner": "red"}) {
			t.Errorf("tags %v, %v", info.Tags, err)
		}
		kinds := make(map[string]durable.Kind)
		for _, h := range historyOf(t, e, "caller") {
			kinds[h.Name] = h.Kind
		}
		want := map[string]durable.Kind{
			"now": "now", "uuid": "uuid", "tags": "tags", "note it": "signal", "made": "start", "named": "start", "branch/note it": "signal", "go": "receive",
		}
		if !maps.Equal(kinds, want) {
			t.Errorf("history holds %v", kinds)
		}
	})
}

// The failure of such a call is recorded: in a replay, errors.Is and errors.As find the same errors.
func TestFailedCallsOfARunReplay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var executions seen[string]
		w := durable.Define("caller", func(c *durable.Ctx, _ int) (int, error) {
			tell := func(what string, err error, sentinel error) {
				step, ok := errors.AsType[*durable.StepError](err)
				if !ok || !errors.Is(err, sentinel) {
					t.Errorf("%s: %v, want a *StepError that is %v", what, err, sentinel)
				} else {
					executions.add(step.Error())
				}
			}
			tell("a missing run", c.Signal("missing", "nobody", "note", 1), durable.ErrNotFound)
			err := c.Signal("ended", "over", "note", 1)
			tell("an ended run", err, durable.ErrState)
			if state, ok := errors.AsType[*durable.StateError](err); !ok || *state != (durable.StateError{ID: "over", Verb: "signal", Status: durable.StatusCompleted, Detail: "completed"}) {
				t.Errorf("the state is %+v, %v", state, ok)
			}
			tell("a key that was used", c.Signal("used", "sink", "note", "other", durable.SignalKey("k")), durable.ErrIDConflict)
			_, err = c.Start("conflict", noted, "another", durable.ID("over"))
			tell("an ID that was used", err, durable.ErrIDConflict)
			if err := c.Signal("same", "sink", "note", "first", durable.SignalKey("k")); err != nil {
				t.Errorf("the same signal with its key: %v", err)
			}
			if _, err := c.Start("again", noted, "x", durable.ID("over")); err != nil {
				t.Errorf("the same start: %v", err)
			}
			executions.add("to the end")
			_, err = c.Receive[int]("go")
			return 0, err
		})
		ctx := within(t)
		e := engineOn(t, s, w, collector, noted)
		stop := running(t, e)
		if _, err := noted.Call(ctx, e, "x", durable.ID("over")); err != nil {
			t.Fatal(err)
		}
		if _, err := collector.Start(ctx, e, 0, durable.ID("sink")); err != nil {
			t.Fatal(err)
		}
		if err := e.Signal(ctx, "sink", "note", "first", durable.SignalKey("k")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(ctx, e, 0, durable.ID("caller")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(executions.values()) == 5 })
		stop()
		e = engineOn(t, s, w, collector, noted)
		running(t, e)
		if err := e.Signal(ctx, "caller", "go", 1); err != nil {
			t.Fatal(err)
		}
		h, err := w.Handle(ctx, e, "caller")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Result(ctx); err != nil {
			t.Fatal(err)
		}
		if all := executions.values(); len(all)%5 != 0 || !slices.Equal(all[:5], all[len(all)-5:]) {
			t.Errorf("the executions saw %q", all)
		}
	})
}

// The handle has the child's UUID in every execution, also if the child's end is recorded. Signal and Cancel of the handle
// address the child by it.
func TestChildHandle(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var executions seen[[2]string]
		w := durable.Define("parent", func(c *durable.Ctx, _ int) (string, error) {
			sink, err := c.StartChild("sink", collector, 0)
			if err != nil {
				return "", err
			}
			other, err := c.StartChild("other", collector, 0)
			if err != nil {
				return "", err
			}
			executions.add([2]string{sink.ID(), other.ID()})
			if err := errors.Join(sink.Signal("one", "note", "1"), sink.Signal("two", "note", "2"), sink.Signal("end", "note", "end"),
				other.Cancel("stop", durable.Reason("not needed"))); err != nil {
				return "", err
			}
			got, err := sink.Wait()
			if err != nil {
				return "", err
			}
			var ended *durable.RunError
			if _, err := other.Wait(); errors.Is(err, durable.ErrSuspended) {
				return "", err // it waited for long enough to leave memory
			} else if !errors.As(err, &ended) || ended.Status != durable.StatusCancelled || !strings.Contains(ended.Message, "not needed") || ended.ID != other.ID() {
				t.Errorf("the cancelled child: %v", err)
			}
			if err := sink.Signal("late", "note", "3"); !errors.Is(err, durable.ErrState) {
				t.Errorf("a signal to a child that has ended: %v", err)
			}
			if err := errors.Join(sink.Cancel("late cancel"), other.Cancel("again")); err != nil {
				t.Errorf("a cancel of children that have ended: %v", err)
			}
			if _, err := c.Receive[int]("go"); err != nil {
				return "", err
			}
			return strings.Join(got, " "), nil
		})
		ctx := within(t)
		e := engineOn(t, s, w, collector)
		stop := running(t, e)
		if _, err := w.Start(ctx, e, 0, durable.ID("parent")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			return slices.ContainsFunc(historyOf(t, e, "parent"), func(h durable.Checkpoint) bool { return h.Name == "go" })
		})
		stop()
		e = engineOn(t, s, w, collector)
		running(t, e)
		if err := e.Signal(ctx, "parent", "go", 1); err != nil {
			t.Fatal(err)
		}
		h, err := w.Handle(ctx, e, "parent")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := h.Result(ctx); got != "1 2" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		all := executions.values()
		for _, ids := range all {
			if ids != all[0] {
				t.Errorf("the handles are of %q, and were of %q", ids, all[0])
			}
		}
		tree, err := e.Tree(ctx, "parent")
		if err != nil || len(tree.Children) != 2 {
			t.Fatalf("tree %+v, %v", tree, err)
		}
		for _, child := range tree.Children {
			if len(all) < 2 || child.RunID != all[0][0] && child.RunID != all[0][1] {
				t.Errorf("the child %s is not among %q", child.RunID, all)
			}
		}
	})
}

// In a cancelled run, a call that is not recorded has no effect; recorded calls are still replayed.
func TestCallsOfACancelledRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var executions seen[error]
		reached := newGate()
		w := durable.Define("caller", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Signal("before", "sink", "note", "before"); err != nil {
				t.Errorf("the recorded call: %v", err)
			}
			if err := c.Do("hold", reached.pass); err == nil {
				t.Error("the step was not ended")
			}
			executions.add(c.Signal("after", "sink", "note", "after"))
			_, err := c.Start("start", noted, "x")
			executions.add(err)
			executions.add(c.SetTags("tags", map[string]string{"a.b": "c"}))
			_, err = c.Now("now")
			executions.add(err)
			return 0, err
		})
		ctx := within(t)
		e := engineOn(t, s, w, collector, noted)
		running(t, e)
		if _, err := collector.Start(ctx, e, 0, durable.ID("sink")); err != nil {
			t.Fatal(err)
		}
		run, err := w.Start(ctx, e, 0, durable.ID("caller"))
		if err != nil {
			t.Fatal(err)
		}
		<-reached.entered
		must(t)(e.Cancel(ctx, "caller"))
		if _, err := run.Result(ctx); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the run ended with %v", err)
		}
		all := executions.values()
		if len(all) != 4 || slices.ContainsFunc(all, func(err error) bool { return !errors.Is(err, durable.ErrCancelled) }) {
			t.Errorf("the calls returned %v", all)
		}
		if err := e.Signal(ctx, "sink", "note", "end"); err != nil {
			t.Fatal(err)
		}
		sink, err := collector.Handle(ctx, e, "sink")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sink.Result(ctx); err != nil || !slices.Equal(got, []string{"before"}) {
			t.Errorf("the other run received %q, %v", got, err)
		}
		page, err := e.List(ctx, durable.Filter{Workflow: "noted"}, durable.Page{})
		if err != nil || len(page.Runs) != 0 {
			t.Errorf("runs were started: %+v, %v", page.Runs, err)
		}
	})
}

// These calls belong to the workflow function: inside a step they are refused.
func TestCallsOfARunInsideAStep(t *testing.T) {
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("outer", func(context.Context) error {
			_, now := c.Now("now")
			_, id := c.UUID("uuid")
			_, start := c.Start("start", noted, "x")
			for _, err := range []error{now, id, start, c.Signal("signal", "x", "y", 1), c.SetTags("tags", nil)} {
				if !errors.Is(err, durable.ErrNestedStep) {
					t.Errorf("inside a step: %v", err)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// An argument that cannot be encoded, or an invalid name, returns an error at once, and nothing is recorded.
func TestCallsOfARunThatCannotBe(t *testing.T) {
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		_, empty := c.Start("start", &durable.Workflow[int, int]{}, 1)
		for want, err := range map[error]error{
			durable.ErrNotEncodable:  c.Signal("payload", "x", "y", func() {}),
			durable.ErrInvalidName:   errors.Join(c.Signal("signal", "x", "", 1), c.SetTags("tag", map[string]string{"plain": "x"})),
			durable.ErrInvalidConfig: empty,
		} {
			if step, ok := errors.AsType[*durable.StepError](err); !errors.Is(err, want) || ok {
				t.Errorf("got %v (%v), want %v", err, step, want)
			}
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
}
