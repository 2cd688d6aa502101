package durable_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A page of a history has an outline of all calls, and the calls of the page with their errors and short outputs.
func TestHistoryPage(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			for i := range 5 {
				if _, err := c.Step(fmt.Sprint("s", i), func(context.Context) (string, error) { return strings.Repeat("x", 100*i), nil }); err != nil {
					return 0, err
				}
			}
			_, err := c.Map("items", []int{1, 2}, func(context.Context, int) (int, error) { return 7, nil })
			_ = c.Do("declined", func(context.Context) error { return errors.New("no") }, durable.Retry(durable.NoRetry))
			return 0, err
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		running(t, e)
		read(w.Call(within(t), e, 0, durable.ID("run")))(t)
		all := historyOf(t, e, "run")
		part := func(part durable.HistoryPart) *durable.HistoryPage {
			return read(e.HistoryPage(within(t), "run", part))(t)
		}

		page := part(durable.HistoryPart{From: 1, Limit: 3})
		if len(page.Outline) != len(all) || len(page.Calls) != 3 {
			t.Fatalf("%d of %d calls, %d of them in the page", len(page.Outline), len(all), len(page.Calls))
		}
		for i, c := range page.Outline {
			want := all[i]
			if want.Kind != durable.KindMap {
				want.Output = nil
			}
			want.Err, want.FirstFailure, want.LastFailure = nil, nil, nil
			if !reflect.DeepEqual(c, want) {
				t.Errorf("the outline of call %d is %+v, not %+v", i, c, want)
			}
		}
		for i, c := range page.Calls {
			want := all[1+i]
			if stored := 100*(1+i) + 2; c.OutputSize < 20 || c.OutputSize > stored+100 {
				t.Errorf("call %s has a size of %d", c.Name, c.OutputSize)
			}
			if c.OutputSize > 256 {
				want.Output = nil
			}
			if !reflect.DeepEqual(c.Checkpoint, want) {
				t.Errorf("call %d is %+v, not %+v", i, c.Checkpoint, want)
			}
		}
		if got := part(durable.HistoryPart{Call: "s4"}); len(got.Calls) != 1 || !reflect.DeepEqual(got.Calls[0].Checkpoint, all[4]) {
			t.Errorf("the opened call is %+v", got.Calls)
		}
		last := part(durable.HistoryPart{From: 5, MaxOutput: -1})
		for i, c := range last.Calls {
			want := all[5+i]
			if want.Kind != durable.KindMap {
				want.Output = nil
			}
			if !reflect.DeepEqual(c.Checkpoint, want) {
				t.Errorf("call %d is %+v, not %+v", 5+i, c.Checkpoint, want)
			}
		}
		if got := part(durable.HistoryPart{From: 100}); len(got.Outline) != len(all) || len(got.Calls) != 0 {
			t.Errorf("behind the end are %+v", got.Calls)
		}
		for _, c := range []struct {
			id   string
			part durable.HistoryPart
			want error
		}{
			{"run", durable.HistoryPart{From: -1}, durable.ErrInvalidConfig},
			{"run", durable.HistoryPart{Limit: 1001}, durable.ErrInvalidConfig},
			{"run", durable.HistoryPart{Call: "nothing"}, durable.ErrNoStep},
			{"other", durable.HistoryPart{}, durable.ErrNotFound},
		} {
			if _, err := e.HistoryPage(within(t), c.id, c.part); !errors.Is(err, c.want) {
				t.Errorf("%+v of %s returned %v", c.part, c.id, err)
			}
		}
		if _, err := e.HistoryPage(within(t), "run", durable.HistoryPart{Call: "1"}); err == nil || !strings.Contains(err.Error(), `did you mean "items/1"?`) {
			t.Errorf("the error of an unknown call names no others: %v", err)
		}
	})
}
