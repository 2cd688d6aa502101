package durable_test

import (
	"bytes"
	"context"
	"encoding/json/v2"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
)

// The ID of a child, wherever it is returned, addresses the child, and never a root run whose ID is the child's name.
func TestAChildsNameIsNoAddress(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const name = "order-42"
		var log bytes.Buffer
		inner := durable.Define("inner", func(c *durable.Ctx, _ int) (string, error) {
			_, err := c.Receive[int]("go")
			return c.ID(), err
		})
		outer := durable.Define("outer", func(c *durable.Ctx, _ int) (string, error) {
			return c.Go("a/b%", func(c *durable.Ctx) (string, error) { return c.Child(name, inner, 0) }).Wait()
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{inner, outer}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		stop := running(t, e)
		root, err := inner.Start(within(t), e, 0, durable.ID(name))
		if err != nil {
			t.Fatal(err)
		}
		parent, err := outer.Start(within(t), e, 0, durable.ID("parent"))
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "parent", durable.StatusWaiting)

		const shown = "a%2Fb%25/" + name
		var child *durable.RunInfo
		page, err := e.List(within(t), durable.Filter{Workflow: "inner"}, durable.Page{})
		if err != nil || len(page.Runs) != 2 {
			t.Fatal(page, err)
		}
		for i := range page.Runs {
			if page.Runs[i].Parent != "" {
				child = &page.Runs[i]
			}
		}
		if child.ID != child.RunID || child.Name != shown {
			t.Errorf("the child is listed as %q (%q), want its UUID, and %q", child.ID, child.Name, shown)
		}
		tree, err := e.Tree(within(t), "parent")
		if err != nil || len(tree.Children) != 1 || tree.Children[0].ID != child.RunID || tree.Children[0].Name != shown {
			t.Errorf("the tree: %+v, %v", tree, err)
		}
		if info, err := e.Get(within(t), child.ID); err != nil || info.RunID != child.RunID || info.Name != shown {
			t.Errorf("Get: %+v, %v", info, err)
		}
		if info, err := e.Get(within(t), name); err != nil || info.RunID != root.RunID() || info.Name != "" || info.ID != name {
			t.Errorf("Get of the root: %+v, %v", info, err)
		}
		if page, err := e.List(within(t), durable.Filter{IDPrefix: name}, durable.Page{}); err != nil || len(page.Runs) != 1 || page.Runs[0].RunID != root.RunID() {
			t.Errorf("the runs whose IDs begin so: %+v, %v", page.Runs, err)
		}
		handle, err := inner.Handle(within(t), e, child.ID)
		if err != nil || handle.ID() != child.RunID {
			t.Errorf("the handle: %v, %v", handle, err)
		}
		b, err := e.Export(within(t), child.ID)
		var x durable.Exported
		if err := errors.Join(err, json.Unmarshal(b, &x)); err != nil || x.Run.ID != child.RunID || x.Run.Name != shown {
			t.Errorf("the export: %+v, %v", x.Run, err)
		}
		if history := historyOf(t, e, "parent"); len(history) != 1 || history[0].Name != shown {
			t.Errorf("the parent's history: %+v", history)
		}

		must(t)(e.Cancel(within(t), child.ID))
		_, err = parent.Result(within(t))
		var failed *durable.RunError
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		_, err = handle.Result(within(t))
		if !errors.As(err, &failed) || failed.ID != child.RunID || failed.Name != shown || failed.Status != durable.StatusCancelled {
			t.Errorf("the child's error: %+v", err)
		}
		if info, err := e.Get(within(t), name); err != nil || info.Cancellation != nil || info.Status != durable.StatusWaiting && info.Status != durable.StatusRunning {
			t.Errorf("the root that nobody cancelled: %+v, %v", info, err)
		}
		seen := 0
		for event, err := range e.WatchEvents(within(t), "") {
			if err != nil {
				t.Fatal(err)
			}
			if event.RunID == child.RunID && (event.ID != child.RunID || event.Name != shown) || event.RunID != child.RunID && event.Name != "" {
				t.Errorf("the event %+v", event)
			}
			if seen++; seen == 2 {
				break
			}
		}
		signal(t, e, name, "go", 1)
		if id, err := root.Result(within(t)); err != nil || id != name {
			t.Errorf("the root knows itself as %q, %v", id, err)
		}
		stop()
		if text := log.String(); strings.Contains(text, "\x1f") || strings.Contains(text, `\x1f`) {
			t.Errorf("the log: %s", text)
		}
	})
}

// A child's own function, and errors about the child, identify it by its UUID.
func TestAChildKnowsItselfByItsUUID(t *testing.T) {
	inner := durable.Define("inner", func(c *durable.Ctx, _ int) (string, error) {
		for range 2 {
			if _, err := c.Step("twice", func(context.Context) (int, error) { return 0, nil }); err != nil {
				if !errors.Is(err, durable.ErrDuplicateStep) || !strings.Contains(err.Error(), c.RunID()) {
					return "", err
				}
				return c.ID(), nil
			}
		}
		return "", nil
	})
	outer := durable.Define("outer", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", inner, 0) })
	e := engineOn(t, openStore(t), outer, inner)
	got, err := outer.Call(within(t), e, 0)
	if _, parsed := uuid.Parse(got); err != nil || parsed != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// A start whose ID is the UUID of another run is refused, because that ID would address both runs.
func TestAnIDThatIsAnothersUUIDIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", double)
		e := engineOn(t, s)
		first, err := w.Start(within(t), e, 1, durable.ID("first"))
		if err != nil {
			t.Fatal(err)
		}
		unnamed, err := w.Start(within(t), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Start(within(t), e, 1, durable.ID(first.RunID())); !errors.Is(err, durable.ErrIDConflict) || !strings.Contains(err.Error(), "UUID") {
			t.Errorf("the UUID of a run with another ID: %v", err)
		}
		if again, err := w.Start(within(t), e, 1, durable.ID(unnamed.RunID())); err != nil || again.RunID() != unnamed.RunID() {
			t.Errorf("the UUID of a run without an ID: %v", err)
		}
		runs, err := w.StartMany(within(t), e, []durable.StartItem[int]{{ID: "second"}, {ID: first.RunID()}})
		if !errors.Is(err, durable.ErrIDConflict) || len(runs) != 2 || runs[0] == nil || runs[1] != nil {
			t.Errorf("one of many: %v, %v", runs, err)
		}
		own := uuid.Must(uuid.NewV7()).String()
		for range 2 {
			if run, err := w.Start(within(t), e, 1, durable.ID(own)); err != nil || run.ID() != own {
				t.Errorf("a UUID of the caller's own: %v", err)
			}
		}
	})
}
