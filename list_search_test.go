package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Lists by version, worker and end have the runs that they name, and a search that is bounded in time goes on from where it stopped.
func TestListByVersionWorkerAndEnd(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		done := durable.Define("done", func(*durable.Ctx, int) (int, error) { return 1, nil })
		reached, hold := make(chan struct{}), make(chan struct{})
		held := durable.Define("held", func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("hold", func(ctx context.Context) error {
				close(reached)
				select {
				case <-hold:
				case <-ctx.Done():
				}
				return nil
			})
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{done, held}, Version: "v7"})
		running(t, e)
		t.Cleanup(func() { close(hold) })
		const runs = 200
		for i := range runs {
			read(done.Call(within(t), e, i, durable.ID(fmt.Sprint("done-", i))))(t)
		}
		read(held.Start(within(t), e, 0, durable.ID("held")))(t)
		select {
		case <-reached:
		case <-within(t).Done():
			t.Fatal("the run is not executed")
		}
		list := func(f durable.Filter) []durable.RunInfo {
			t.Helper()
			return read(e.List(within(t), f, durable.Page{Limit: 1000}))(t).Runs
		}
		worker := read(e.Workers(within(t)))(t)[0].ID
		if got := list(durable.Filter{Owner: worker}); len(got) != 1 || got[0].ID != "held" || got[0].Owner != worker {
			t.Errorf("the worker executes %+v", got)
		}
		if got, none := list(durable.Filter{Version: "v7"}), list(durable.Filter{Version: "v"}); len(got) != runs+1 || len(none) != 0 {
			t.Errorf("%d runs have the version, and %d a prefix of it", len(got), len(none))
		}
		middle := read(e.Get(within(t), "done-100"))(t).EndedAt
		before, after := list(durable.Filter{EndedBefore: middle}), list(durable.Filter{EndedAfter: middle})
		if len(before)+len(after) > runs-1 || len(before) < 50 || len(after) < 50 {
			t.Errorf("%d runs ended before the run in the middle, and %d after it", len(before), len(after))
		}
		if got := list(durable.Filter{EndedAfter: before[0].EndedAt, EndedBefore: middle.Add(time.Microsecond), Workflow: "held"}); len(got) != 0 {
			t.Errorf("a run that has not ended is listed: %+v", got)
		}

		for _, f := range []durable.Filter{{Workflow: "done"}, {IDPrefix: "done-"}, {Workflow: "done", IDPrefix: "done-", Version: "v7"}} {
			seen, parts := make(map[string]bool), 0
			for cursor := ""; parts == 0 || cursor != ""; parts++ {
				page := read(e.List(within(t), f, durable.Page{Limit: 1000, Cursor: cursor, MaxTime: 1}))(t)
				for _, r := range page.Runs {
					seen[r.ID] = true
				}
				if cursor = page.Next; (cursor == "") != page.SearchedTo.IsZero() || parts > runs {
					t.Fatalf("%+v: part %d continues at %q and has come to %v", f, parts, cursor, page.SearchedTo)
				}
			}
			if len(seen) != runs {
				t.Errorf("%+v: the search has found %d runs in %d parts", f, len(seen), parts)
			}
		}
		if page := read(e.List(within(t), durable.Filter{Workflow: "done"}, durable.Page{Limit: 7, MaxTime: time.Minute}))(t); len(page.Runs) != 7 || page.Next == "" || !page.SearchedTo.IsZero() {
			t.Errorf("a full page has %d runs, continues at %q and has come to %v", len(page.Runs), page.Next, page.SearchedTo)
		}
		if _, err := e.List(within(t), durable.Filter{Owner: "worker-1"}, durable.Page{}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("an owner that is no UUID gives %v", err)
		}
	})
}
