package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

func TestList(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		a := durable.Define("a", func(*durable.Ctx, int) (int, error) { return 0, nil })
		b := durable.Define("b", func(*durable.Ctx, int) (int, error) { return 0, nil }, durable.Queue("slow"))
		client := engineOn(t, s)
		start := func(w *durable.Workflow[int, int], id string, opts ...durable.StartOption) {
			t.Helper()
			if _, err := w.Start(within(t), client, 0, append(opts, durable.ID(id))...); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 7 {
			start(a, fmt.Sprint("a-", i), durable.Tag("team.owner", "ann"), durable.Tag("team.kind", "test"))
		}
		start(b, "b-1", durable.Tag("team.owner", "bob"))
		if err := client.SetTags(within(t), "b-1", map[string]string{"team.owner": "ann", "team.late": "yes"}); err != nil {
			t.Fatal(err)
		}
		if err := client.SetTags(within(t), "a-0", map[string]string{"team.owner": ""}); err != nil {
			t.Fatal(err)
		}
		must(t)(client.Cancel(within(t), "a-6"))
		must(t)(client.Pause(within(t), "a-5"))
		uuidOf := func(id string) string {
			info, err := client.Get(within(t), id)
			if err != nil {
				t.Fatal(err)
			}
			return info.RunID
		}
		for name, c := range map[string]struct {
			f    durable.Filter
			want int
		}{
			"all":             {durable.Filter{}, 8},
			"workflow":        {durable.Filter{Workflow: "a"}, 7},
			"queue":           {durable.Filter{Queue: "slow"}, 1},
			"status":          {durable.Filter{Status: []durable.Status{durable.StatusCancelled, durable.StatusPaused}}, 2},
			"tag":             {durable.Filter{Tag: "team.owner"}, 7},
			"tag and value":   {durable.Filter{Tag: "team.owner", TagValue: "ann"}, 7},
			"tag set later":   {durable.Filter{Tag: "team.late", TagValue: "yes"}, 1},
			"another value":   {durable.Filter{Tag: "team.owner", TagValue: "bob"}, 0},
			"ID prefix":       {durable.Filter{IDPrefix: "a-"}, 7},
			"prefix of one":   {durable.Filter{IDPrefix: "a-3"}, 1},
			"a % is a letter": {durable.Filter{IDPrefix: "a%"}, 0},
			"older":           {durable.Filter{OlderThan: time.Hour}, 0},
			"younger":         {durable.Filter{CreatedAfter: time.Now().Add(-time.Hour), CreatedBefore: time.Now().Add(time.Hour)}, 8},
			"several":         {durable.Filter{Workflow: "a", Status: []durable.Status{durable.StatusPending}, Tag: "team.owner"}, 4},
			"roots":           {durable.Filter{Roots: true}, 8},
			"by UUID":         {durable.Filter{RunID: []string{uuidOf("a-1"), uuidOf("b-1"), uuidOf("a-1")}}, 2},
			"UUID and more":   {durable.Filter{RunID: []string{uuidOf("a-1"), uuidOf("b-1")}, Workflow: "b"}, 1},
			"no children":     {durable.Filter{Parent: []string{uuidOf("a-1")}}, 0},
		} {
			seen := map[string]bool{}
			page := durable.Page{Limit: 3}
			for {
				got, err := client.List(within(t), c.f, page)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, r := range got.Runs {
					if seen[r.ID] {
						t.Errorf("%s: %s twice", name, r.ID)
					}
					seen[r.ID] = true
				}
				if got.Next == "" {
					break
				}
				page.Cursor = got.Next
			}
			if len(seen) != c.want {
				t.Errorf("%s: %v, want %d", name, seen, c.want)
			}
		}
		for name, c := range map[string]struct {
			f    durable.Filter
			p    durable.Page
			want error
		}{
			"a bad cursor":      {durable.Filter{}, durable.Page{Cursor: "x"}, durable.ErrInvalidCursor},
			"a negative limit":  {durable.Filter{}, durable.Page{Limit: -1}, durable.ErrInvalidConfig},
			"a long page":       {durable.Filter{}, durable.Page{Limit: 1001}, durable.ErrInvalidConfig},
			"an unknown status": {durable.Filter{Status: []durable.Status{"asleep"}}, durable.Page{}, durable.ErrInvalidConfig},
			"a value alone":     {durable.Filter{TagValue: "x"}, durable.Page{}, durable.ErrInvalidConfig},
			"no UUID":           {durable.Filter{RunID: []string{"a-1"}}, durable.Page{}, durable.ErrInvalidConfig},
			"too many parents":  {durable.Filter{Parent: make([]string, 1001)}, durable.Page{}, durable.ErrInvalidConfig},
			"bytes":             {durable.Filter{Workflow: "\xff\x00"}, durable.Page{}, durable.ErrInvalidName},
		} {
			if _, err := client.List(within(t), c.f, c.p); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
		info, err := client.Get(within(t), "b-1")
		if err != nil || len(info.Tags) != 2 || info.Tags["team.owner"] != "ann" {
			t.Errorf("tags %v, %v", info.Tags, err)
		}
		if err := client.SetTags(within(t), "b-1", map[string]string{"owner": "x"}); !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("a tag without a namespace: %v", err)
		}
		if err := client.SetTags(within(t), "nobody", map[string]string{"a.b": "x"}); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("a tag of nobody: %v", err)
		}
	})
}

func TestControlByFilter(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		client := engineOn(t, s)
		const n = 250
		items := make([]durable.StartItem[int], n)
		for i := range items {
			items[i] = durable.StartItem[int]{ID: fmt.Sprint("r-", i), Input: i}
		}
		if _, err := w.StartMany(within(t), client, items); err != nil {
			t.Fatal(err)
		}
		f := durable.Filter{Workflow: "w"}
		if got := must(t)(client.PauseAll(within(t), f, durable.DryRun())); !counts(got, n, 0, 0) {
			t.Errorf("dry run: %+v", got)
		}
		if got := must(t)(client.PauseAll(within(t), f, durable.Reason("outage"))); got.Done != n {
			t.Errorf("pause: %+v", got)
		}
		if got := must(t)(client.ResumeAll(within(t), durable.Filter{IDPrefix: "r-1"})); got.Done != 111 {
			t.Errorf("resume: %+v", got)
		}
		if got := must(t)(client.CancelAll(within(t), durable.Filter{Status: []durable.Status{durable.StatusPaused}})); got.Done != n-111 {
			t.Errorf("cancel: %+v", got)
		}
		if _, err := client.CancelAll(within(t), durable.Filter{}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("cancel of everything: %v", err)
		}
	})
}

func TestWatch(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, fail bool) (int, error) {
			if fail {
				return 0, errDeclined
			}
			return c.Receive[int]("go")
		})
		e := engineOn(t, s, w)
		running(t, e)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		events := make(chan durable.Event, 100)
		watched := make(chan error, 1)
		go func() {
			for event, err := range e.WatchEvents(ctx, "") {
				if err != nil {
					watched <- err
					return
				}
				events <- event
			}
		}()
		for _, id := range []string{"done", "cancelled"} {
			if _, err := w.Start(within(t), e, false, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Start(within(t), e, true, durable.ID("failed")); err != nil {
			t.Fatal(err)
		}
		next := func(id string, want durable.EventType) durable.Event {
			t.Helper()
			select {
			case got := <-events:
				if got.ID != id || got.Type != want || got.Workflow != "w" || got.At.IsZero() {
					t.Errorf("got %+v, want %s %s", got, id, want)
				}
				return got
			case <-within(t).Done():
				t.Fatalf("no event %s %s", id, want)
				return durable.Event{}
			}
		}
		first := next("failed", durable.EventFailed)
		awaitStatus(t, e, "cancelled", durable.StatusWaiting)
		must(t)(e.Cancel(within(t), "cancelled"))
		next("cancelled", durable.EventCancelled)
		awaitStatus(t, e, "done", durable.StatusWaiting)
		must(t)(e.Pause(within(t), "done"))
		next("done", durable.EventPaused)
		must(t)(e.Resume(within(t), "done"))
		signal(t, e, "done", "go", 1)
		next("done", durable.EventCompleted)
		rest, err := e.Events(within(t), durable.Page{Cursor: first.Cursor, Limit: 2})
		if err != nil || len(rest) != 2 || rest[0].ID != "cancelled" || rest[1].Type != durable.EventPaused {
			t.Errorf("events after the first: %+v, %v", rest, err)
		}
		if _, err := e.Events(within(t), durable.Page{Cursor: "no cursor"}); !errors.Is(err, durable.ErrInvalidCursor) {
			t.Errorf("a bad cursor: %v", err)
		}
		if _, err := e.Events(within(t), durable.Page{Limit: -1}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("no events asked for: %v", err)
		}
		cancel()
		if err := <-watched; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch ended with %v", err)
		}
	})
}

// The progress of a Map can be read while it runs.
func TestMapProgress(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
			_, err := c.Map("all", make([]int, n), func(ctx context.Context, _ int) (int, error) {
				if durable.IdempotencyKey(ctx)[36:] == ":all/30" {
					return 0, g.pass(ctx)
				}
				return 0, nil
			}, durable.Parallel(1))
			return n, err
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 50, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		info, err := e.Get(within(t), "run")
		if err != nil || len(info.Progress) != 1 || info.Progress[0] != (durable.MapProgress{Name: "all", Done: 30, Total: 50}) {
			t.Errorf("progress %+v, %v", info.Progress, err)
		}
		close(g.open)
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		info, err = e.Get(within(t), "run")
		if err != nil || len(info.Progress) != 1 || info.Progress[0].Done != 50 {
			t.Errorf("progress at the end %+v, %v", info.Progress, err)
		}
	})
}
